"""What a run is about, and its result; secret inputs are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.briefing import came_of, last_tasks
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.language.display import pretty
from holdfast.model.form import FieldType
from holdfast.model.message import UserSaid
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.views.reader import RunVersion

LONGEST_WORDS: Final = 2_000
SHORT: Final = 200
_FAILURES: Final = frozenset({"error_info", "failed_listener_id", "failed_listener_ids"})
_RETRIES: Final = frozenset({"retry_count", "max_retries", "retry_times"})


@dataclass(frozen=True, slots=True)
class NamedText:
    """A name and a value; pages fold `long` ones."""

    name: str
    text: str

    @property
    def long(self) -> bool:
        return len(self.text) > SHORT or "\n" in self.text


@dataclass(frozen=True, slots=True)
class About:
    """`words` is a plan's prompt, the first message of a chat, or a goal."""

    words: NamedText | None
    inputs: tuple[NamedText, ...]
    results: tuple[NamedText, ...] = ()

    @property
    def answer(self) -> NamedText | None:
        """The result in words, which has no name."""
        return next((one for one in self.results if not one.name), None)

    @property
    def named_results(self) -> tuple[NamedText, ...]:
        return tuple(one for one in self.results if one.name)


def about(run: RunVersion) -> About:
    state, done = run.state, run.state.status is RunStatus.DONE
    if isinstance(state, PlanState):
        inputs = tuple(_inputs(state))
        return About(_words(state.prompt), inputs, tuple(_results(state)) if done else ())
    if isinstance(state, ReactState):
        answer = (NamedText("", _bounded(state.answer)),) if done and state.answer else ()
        return About(_words(_first_message(state)), (), answer)
    assert isinstance(state, ConversationState)
    return About(_words(state.text), (), tuple(_outcome(state)) if done else ())


def _words(text: str) -> NamedText | None:
    return NamedText("", _bounded(text)) if text.strip() else None


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_WORDS else f"{text[:LONGEST_WORDS]}…"


def _inputs(state: PlanState) -> Iterator[NamedText]:
    known = state.main_task.context
    for field in state.plan.plan.inputs.fields:
        if field.name in known and field.type is not FieldType.SECRET:
            yield NamedText(field.label or field.name, _spelled(known[field.name]))


def _results(state: PlanState) -> Iterator[NamedText]:
    """What the main task's context has gained, without the planner's own keys."""
    gained = state.main_task.context
    counted = _RETRIES if gained.keys() >= _RETRIES else frozenset()
    given = {field.name for field in state.plan.plan.inputs.fields} | _FAILURES | counted
    for name, value in gained.items():
        if name not in given:
            yield NamedText(name, _spelled(value))


def _first_message(state: ReactState) -> str:
    said = [one.text for one in state.messages if isinstance(one, UserSaid)]
    return said[-1] if said else ""


def _outcome(state: ConversationState) -> Iterator[NamedText]:
    """The model's answer, else the results of the last tasks; and what was skipped."""
    if state.answer:
        yield NamedText("", _bounded(state.answer))
    for task in last_tasks(state):
        answered = state.answer and not task.skipped
        if not answered and task.result not in (None, {}, ""):
            yield NamedText(task.id, _bounded(came_of(task)))


def _spelled(value: Json) -> str:
    if isinstance(value, str):
        return _bounded(value)
    short = json.dumps(value, ensure_ascii=False)
    return short if len(short) <= SHORT else pretty(value)
