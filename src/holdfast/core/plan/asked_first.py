"""What a question says that a repair has put before a step: what it is for, and what had failed.

A patch need not say it, and could not well: the words of one failure have no place in operations,
which other runs may learn. What a service said stands as a quotation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import NEW_STEP
from holdfast.i18n.message import msg
from holdfast.language.display import clip
from holdfast.model.form import Form
from holdfast.model.record import record

_LONGEST_QUOTATION: Final = 500


@record
class Words:
    """Ours, where the question's author has none; each may be empty."""

    title: str = ""
    message: str = ""
    details: str = ""


_NONE: Final = Words()


def words_of(state: PlanState, listener_id: str, form: Form) -> Words:
    if state.origin is None or listener_id in state.origin.listeners:
        return _NONE
    waiting = next(_waiting(state, state.plan.listeners[listener_id].target), None)
    if waiting is None:
        return _NONE
    tool, failure = waiting.tool or waiting.id, state.steps.get(waiting.id, NEW_STEP).failure
    if failure is None:
        return Words(msg("{tool} needs more", tool=tool))
    said = msg("In the words of {tool}: “{text}”", tool=tool, text=_quotation(failure.message))
    title = msg("{tool} failed: what is it given now?", tool=tool)
    names = ", ".join(one.label or one.name for one in form.fields)
    needed = msg("Needed before {id} is tried again: {names}", id=waiting.id, names=names)
    return Words(title, needed if names else "", said)


def _waiting(state: PlanState, task_id: str | None) -> Iterator[CompiledListener]:
    """The listeners that fire when the answer is there."""
    for one in state.plan.plan.listeners:
        if one.trigger_task_id == (task_id,):
            yield state.plan.listeners[one.listener_id]


def _quotation(text: str) -> str:
    """On one line, and without the quotation marks that are to stand around it."""
    plain = " ".join(text.split()).replace("“", "'").replace("”", "'")
    return clip(plain, _LONGEST_QUOTATION)
