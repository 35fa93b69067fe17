"""The options of a question as buttons: label, look, and what each does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from holdfast.console.repair_words import REPAIRS
from holdfast.console.words import OPTIONS
from holdfast.interactions.cards import (
    CONFIRM_OPTIONS,
    PROVIDE_OPTION,
    SKIP_OPTION,
    call_of,
    consequence,
    takes_the_form,
)
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

STANDARD: Final[Mapping[str, str]] = {
    "Provide": "provide",
    "Skip": "skip",
    "Confirm": "confirm",
    "Reject": "reject",
    "Approve and run": "approve",
    "Ask again with feedback": "retry",
    "Reject and stop everything": "terminate",
    "It happened": "happened",
    "Run it again": "run_again",
    "Stop": "stop",
    "Do not answer": "decline",
}
"""The labels of standard options, and their keys in the catalogue."""

_SELF_EVIDENT: Final = frozenset(
    (one.label, one.action) for one in (PROVIDE_OPTION, SKIP_OPTION, *CONFIRM_OPTIONS)
)
"""Standard options whose labels say what they do, where they run no call."""

_GOES_ON: Final = frozenset({InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO})


@dataclass(frozen=True, slots=True)
class OptionView:
    """`tone` is how its button looks, `again` whether a press asks for confirmation.

    `fills`: the form is sent with it. `consequence` says what it does, and is empty where the label
    says it already.
    """

    option: InteractionOption
    word: str
    tone: str
    again: bool
    fills: bool
    consequence: str

    @property
    def label(self) -> str:
        return OPTIONS.get(self.word, self.option.label)


def options_of(request: InteractionRequest, *, repairs: bool = False) -> tuple[OptionView, ...]:
    """If exactly one option goes on, its button is the primary one. `repairs`: what is asked about
    is a repair."""
    ways_on = sum(one.action in _GOES_ON for one in request.options)
    leads = ways_on == 1
    return tuple(_option(request, one, leads=leads, repairs=repairs) for one in request.options)


def going_on(one: OptionView) -> bool:
    return one.option.action in _GOES_ON


def _option(
    request: InteractionRequest, option: InteractionOption, *, leads: bool, repairs: bool
) -> OptionView:
    approval = request.type is InteractionType.TOOL_APPROVAL
    goes_on = option.action in _GOES_ON
    consents = goes_on and (approval or repairs)
    again = option.action is InteractionAction.TERMINATE or (option.is_dangerous and not consents)
    first = leads or option.action is InteractionAction.PROVIDE_INFO
    return OptionView(
        option=replace(option, description="") if repairs else option,
        word=STANDARD.get(option.label, ""),
        tone="danger" if again else "primary" if goes_on and first else "",
        again=again,
        fills=takes_the_form(request, option),
        consequence=_of_repair(option) if repairs else _consequence(request, option),
    )


def _of_repair(option: InteractionOption) -> str:
    return REPAIRS.get(option.action, "")


def _consequence(request: InteractionRequest, option: InteractionOption) -> str:
    evident = call_of(request) is None and (option.label, option.action) in _SELF_EVIDENT
    return "" if evident else consequence(request, option)
