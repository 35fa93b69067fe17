"""Whether a tool call may start: a policy in, a decision out. The machines carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.core.forms.from_tools import form_from_schema
from holdfast.core.interactions.consent import bind_consent
from holdfast.core.interactions.opening import NO_FIELDS
from holdfast.core.interactions.proposals import missing_arguments, unknown_arguments
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Form
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject


@record
class Start:
    args: Mapping[str, Json]
    consent: str | None = None


@record
class NeedArguments:
    form: Form


@record
class NeedConsent:
    args: Mapping[str, Json]
    consent: str


@record
class Refuse:
    message: str


CallVerdict: TypeAlias = Start | NeedArguments | NeedConsent | Refuse


def judge_call(
    call: str,
    tool: str,
    args: Mapping[str, Json],
    facts: ToolFacts,
    mode: ApprovalMode,
    consent: str | None = None,
    fields: Form = NO_FIELDS,
) -> CallVerdict:
    """`consent` holds only for the very bytes and the very tool that were shown.

    What has been disabled since does not run, whoever consented to it; and nobody is asked
    about a call that the tool's schema shuts out.
    """
    if mode is ApprovalMode.DISABLED:
        return Refuse(f"the tool {tool} is disabled")
    if unknown := unknown_arguments(facts.parameters, args):
        return Refuse(_shut_out(tool, unknown, facts.parameters))
    if consent is not None and consent == bind_consent(call, tool, facts.version, args):
        return Start(args, consent)
    if missing := missing_arguments(facts.parameters, args):
        return NeedArguments(form_from_schema(facts.parameters, missing, facts.fields, fields))
    if mode is ApprovalMode.AUTO:
        return Start(args)
    return NeedConsent(args, bind_consent(call, tool, facts.version, args))


def _shut_out(tool: str, unknown: list[str], parameters: JsonObject) -> str:
    known = ", ".join(parameters.get("properties", {})) or "no arguments at all"
    return f"the tool {tool} does not take {', '.join(unknown)}; it takes {known}"
