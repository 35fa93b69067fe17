"""The executor of tool calls: it runs the bytes that were consented to, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from holdfast.core.approval import mode_of
from holdfast.core.interactions.consent import bind_consent, call_name
from holdfast.errors import ForbiddenError
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.values import Json
from holdfast.work.confidence import in_confidence
from holdfast.work.tools import CallInfo, ToolRegistry


async def call_tool(tools: ToolRegistry, effect: f.CallTool) -> Json:
    check_mode(tools, effect)
    check_consent(tools, effect)
    work = effect.work
    call = CallInfo(work.key, work.run_id, work.attempt)
    return await call_with_secrets(tools, effect.tool, effect.args, call)


async def call_with_secrets(
    tools: ToolRegistry, name: str, args: Mapping[str, Json], call: CallInfo
) -> Json:
    """Call a tool with what its arguments refer to; what comes back has none of it."""
    tool = tools.get(name)

    async def with_values(filled: Json, hide: Callable[[str], str]) -> Json:
        told = call if hide is call.hide else replace(call, hide=hide)
        return await tool.call(filled, told)

    own = getattr(tool, "secrets", ())
    return await in_confidence(tools.secrets, call.run_id, args, with_values, own)


def check_mode(tools: ToolRegistry, effect: f.CallTool) -> None:
    """What its author has disabled does not run, whatever was decided before that."""
    rule = tools.get(effect.tool).spec.approval
    if mode_of(rule, effect.args) is ApprovalMode.DISABLED:
        raise ForbiddenError(f"the tool {effect.tool} is disabled")


def check_consent(tools: ToolRegistry, effect: f.CallTool) -> None:
    """The executor's own look at what a person agreed to, just before the call."""
    if effect.consent is None:
        return
    work = effect.work
    call = call_name(work.run_id, work.step_id, work.firing)
    version = tools.get(effect.tool).spec.version
    if bind_consent(call, effect.tool, version, effect.args) != effect.consent:
        raise ForbiddenError(f"consent to {effect.tool} does not fit what would run")
