"""The executor of tool calls: it runs the bytes that were consented to, or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final

from holdfast.core.approval import mode_of
from holdfast.core.interactions.calls import bind_consent, call_name
from holdfast.errors import ForbiddenError
from holdfast.forms.secrets import is_plain
from holdfast.i18n.message import msg
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.record import constructor
from holdfast.model.values import Json
from holdfast.work.confidence import Hide, in_confidence
from holdfast.work.tools import CallInfo, PythonTool, Tool, ToolRegistry, ToolSpec, kept

_AUTO: Final = ApprovalMode.AUTO
_call_info: Final = constructor(CallInfo)


def call_tool(tools: ToolRegistry, effect: f.CallTool) -> Awaitable[Any]:
    """What the tool returns, which the caller has yet to make strict."""
    find, name = tools.find, effect.tool
    tool = find(name) or tools.get(name)
    rule, work = tool.spec.approval, effect.work
    if rule.mode is not _AUTO or rule.when is not None:
        _check_mode(tool.spec, effect)
    if effect.consent is not None:
        _check_consent(tool.spec, effect)
    args = effect.args
    if is_plain(args):
        call = _call_info(work.key, work.run_id, work.attempt)
        if type(tool) is PythonTool:  # it has no secrets, and leaves the dict as it is
            return tool.call(args, call)
        if not getattr(tool, "secrets", None):
            return tool.call({**args}, call)
    return call_with_secrets(tools, tool, args, work, work.key)


def call_with_secrets(
    tools: ToolRegistry, tool: Tool, args: Mapping[str, Json], work: f.Work, key: str
) -> Awaitable[Json]:
    """Call a tool with what its arguments refer to; what comes back has none of it."""

    async def call(filled: Json, hide: Hide) -> Json:
        called = CallInfo(key, work.run_id, work.attempt, hide)
        return kept(tool.spec.name, await tool.call(filled, called))

    own = getattr(tool, "secrets", ())
    return in_confidence(tools.secrets, work.run_id, args, call, own)


def _check_mode(spec: ToolSpec, effect: f.CallTool) -> None:
    """What its author has disabled does not run, whatever was decided before that."""
    if mode_of(spec.approval, effect.args) is ApprovalMode.DISABLED:
        raise ForbiddenError(msg("the tool {tool} is disabled", tool=effect.tool))


def _check_consent(spec: ToolSpec, effect: f.CallTool) -> None:
    """The executor's own look at what a person agreed to, just before the call."""
    work = effect.work
    call = call_name(work.run_id, work.step_id, work.firing)
    if bind_consent(call, effect.tool, spec.version, effect.args) != effect.consent:
        raise ForbiddenError(msg("consent to {tool} does not fit what would run", tool=effect.tool))
