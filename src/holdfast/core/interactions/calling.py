"""Whether a tool call may start: a policy in, a decision out. The machines carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from holdfast.core.interactions.consent import bind_consent, call_name
from holdfast.core.interactions.opening import NO_FIELDS
from holdfast.core.interactions.proposals import missing_arguments, unknown_arguments
from holdfast.forms.from_tools import form_from_schema
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Form
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject


@record
class Start:
    consent: str | None = None


@record
class NeedArguments:
    form: Form


@record
class NeedConsent:
    consent: str


@record
class Refuse:
    message: str


CallVerdict: TypeAlias = Start | NeedArguments | NeedConsent | Refuse

_AUTO: Final = ApprovalMode.AUTO
_DISABLED: Final = ApprovalMode.DISABLED
_UNASKED: Final = Start()


def judge_call(
    call: tuple[str, str, int],
    tool: str,
    args: Mapping[str, Json],
    facts: ToolFacts,
    mode: ApprovalMode,
    consent: str | None = None,
    fields: Form = NO_FIELDS,
) -> CallVerdict:
    """`call` is the run, the step and its firing. `consent` holds only for the very bytes and
    the very tool that were shown.

    What has been disabled since does not run, whoever consented to it; and nobody is asked
    about a call that the tool's schema shuts out.
    """
    if mode is _DISABLED:
        return Refuse(f"the tool {tool} is disabled")
    if facts.known is not None and not args.keys() <= facts.known:
        return Refuse(_shut_out(tool, unknown_arguments(facts, args), facts.parameters))
    if consent is not None and consent == _bound(call, tool, facts, args):
        return Start(consent)
    complete = args.keys() >= facts.required and None not in args.values()
    if not complete and (missing := missing_arguments(facts.parameters, args)):
        return NeedArguments(form_from_schema(facts.parameters, missing, facts.fields, fields))
    if mode is _AUTO:
        return _UNASKED
    return NeedConsent(_bound(call, tool, facts, args))


def _bound(
    call: tuple[str, str, int], tool: str, facts: ToolFacts, args: Mapping[str, Json]
) -> str:
    return bind_consent(call_name(*call), tool, facts.version, args)


def _shut_out(tool: str, unknown: list[str], parameters: JsonObject) -> str:
    known = ", ".join(parameters.get("properties", {})) or "no arguments at all"
    return f"the tool {tool} does not take {', '.join(unknown)}; it takes {known}"
