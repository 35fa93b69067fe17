"""Whether a tool call may start: a policy in, a decision out. The machines carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.core.forms.from_tools import form_from_schema
from holdfast.core.interactions.consent import bind_consent
from holdfast.core.interactions.proposals import missing_arguments
from holdfast.core.run.state import StepState
from holdfast.errors import FormRejected
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Form
from holdfast.model.record import record
from holdfast.model.values import Json

_NO_FIELDS = Form()


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


def consented(call: str, step: StepState, tool: str, facts: ToolFacts) -> Start | None:
    """Consent holds only for the very bytes and the very tool that were shown."""
    if step.consent is None or step.args is None:
        return None
    fits = bind_consent(call, tool, facts.version, step.args) == step.consent
    return Start(step.args, step.consent) if fits else None


def judge_call(
    call: str,
    tool: str,
    args: Mapping[str, Json],
    facts: ToolFacts,
    mode: ApprovalMode,
    enrich: Form = _NO_FIELDS,
) -> CallVerdict:
    if mode is ApprovalMode.DISABLED:
        return Refuse(f"the tool {tool} is disabled")
    if missing := missing_arguments(facts.parameters, args):
        return _form(facts, missing, enrich)
    if mode is ApprovalMode.AUTO:
        return Start(args)
    return NeedConsent(args, bind_consent(call, tool, facts.version, args))


def _form(facts: ToolFacts, missing: list[str], enrich: Form) -> CallVerdict:
    try:
        return NeedArguments(form_from_schema(facts.parameters, missing, enrich))
    except FormRejected:
        return Refuse(f"required arguments are missing: {', '.join(missing)}")
