"""Four eyes: who wants what a run does, so that another person approves its calls.

Values are not traced. A person who started the run, spoke in it, gave it values, changed it, paused
it or had it go on, ended it, or registered the plan it follows wants all that it does afterwards,
and all that the tree of runs does to which it belongs. Only a yes or no without further words adds
nothing, where there was no other yes or no to choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.core.run.state import (
    ANSWERED,
    CHANGED,
    REGISTERED,
    RESUMED,
    SPOKE,
    STARTED,
    QuestionState,
    RunState,
    S,
    wants,
)
from holdfast.errors import NotPermitted
from holdfast.i18n.message import msg
from holdfast.model.events import QuestionAnswered
from holdfast.model.interaction import InteractionAction, InteractionOption, InteractionType

HOW: Final[Mapping[str, str]] = {
    STARTED: msg("you started this run"),
    SPOKE: msg("you spoke in this run"),
    ANSWERED: msg("you answered a question of this run with more than a yes or no"),
    CHANGED: msg("you changed this run"),
    RESUMED: msg("you had this run go on"),
    REGISTERED: msg("you registered a plan that this run uses"),
}

_APPROVAL: Final = InteractionType.TOOL_APPROVAL
_REJECT: Final = InteractionAction.REJECT_WITH_REASON
_YES_OR_NO: Final = (InteractionAction.APPROVE_AND_EXECUTE, _REJECT)
_BARE_ON_APPROVAL: Final = (*_YES_OR_NO, InteractionAction.PROVIDE_INFO)
_TERMINATE: Final = InteractionAction.TERMINATE
LEADS_TO_THE_CALL: Final = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def answered(state: S, question: QuestionState, event: QuestionAnswered) -> S:
    return state if _is_bare(question, event) else wants(state, event.by, ANSWERED)


def _is_bare(question: QuestionState, event: QuestionAnswered) -> bool:
    """A yes or no, and nothing that could find its way into a call."""
    if question.purpose in ("unknown", "failed") or event.feedback or event.wish:
        return False
    action = event.action or action_of(question, event.option_id)
    if question.purpose == "approval":
        unchanged = event.args is None or event.args == question.args
        return unchanged and action in _BARE_ON_APPROVAL
    bare = action in _YES_OR_NO and not event.data and event.values.keys() <= {"option"}
    return bare and not _is_choice(question, action)


def _is_choice(question: QuestionState, action: InteractionAction | None) -> bool:
    """Whether other options would have said yes too, or no: which of them was taken may flow on."""
    ways = [one.action for one in question.request.options]
    if action is _REJECT:
        return ways.count(action) > 1
    return len(ways) - ways.count(_REJECT) - ways.count(_TERMINATE) > 1


def option_of(question: QuestionState, option_id: str | None) -> InteractionOption | None:
    return next((one for one in question.request.options if one.option_id == option_id), None)


def action_of(question: QuestionState, option_id: str | None) -> InteractionAction | None:
    option = option_of(question, option_id)
    return None if option is None else option.action


def asked_of(
    state: RunState, kind: InteractionType, purpose: str, wanted_by: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """What a question about a call says of who wants it; None where two eyes are enough."""
    about_a_call = kind is _APPROVAL or purpose == "unknown"
    if wanted_by is None or not about_a_call:
        return None
    return {**wanted_by, **state.wanting}


def asked_before(state: RunState, former_consent: str | None) -> Mapping[str, str] | None:
    """What the question said whose call is now asked anew: four eyes outlive the setting."""
    if former_consent is None:
        return None
    former = (one for one in state.questions.values() if one.consent == former_consent)
    return next((one.wanted_by for one in former if one.wanted_by is not None), None)


def wanting_now(
    state: RunState, question: QuestionState, wanted_by: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """Who may not approve the call: who wanted it when it was asked, or has come to since."""
    approval = question.request.type is _APPROVAL
    if not approval or (question.wanted_by is None and wanted_by is None):
        return None
    return {**(question.wanted_by or {}), **(wanted_by or {}), **state.wanting}


def refuse_who_wants_it(
    wanted_by: Mapping[str, str] | None, by: str, action: InteractionAction
) -> None:
    if wanted_by is not None and by in wanted_by and action in LEADS_TO_THE_CALL:
        raise NotPermitted(refusal(wanted_by[by]))


def refuse_beforehand(wanted_by: Mapping[str, str] | None) -> None:
    """The person who consented beforehand could be the next to speak."""
    if wanted_by is not None:
        raise NotPermitted(
            msg(
                "four eyes are wanted here: every call is approved by itself, by another person "
                "than who wants it, and none beforehand"
            )
        )


def refusal(how: str) -> str:
    """Why a person who wants a call may not approve it, in words for that person."""
    return msg("{how}, and so want this call: another person must approve it", how=HOW[how])
