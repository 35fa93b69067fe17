"""The attempts of a step: each start of its work, as the journal has it, and how it ended.

Attempts are counted within a round; the planner's retry begins the next round, and a resume begins
with the first one again. To take up what a sub-run returned is no attempt, nor is a start that was
never handed over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model import events as e
from holdfast.model.conversation_events import TaskBroke, TaskFinished, TaskStarted
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """`number` of `most` in its round; `how` is `running`, `waiting` for a
    person, `done` or `failed`, and `message` says why."""

    number: int
    most: int
    round: int
    firing: int
    began: float
    ended: float | None = None
    how: str = "running"
    message: str = ""
    input: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    attempts: int
    rounds: int


def attempts(
    state: RunState, records: Iterable[Record], step_ids: Collection[str]
) -> Mapping[str, tuple[Attempt, ...]]:
    """Of these records only those that name one of the steps are decoded."""
    logs = {one: _Log(most_attempts(state, one)) for one in step_ids}
    names = [json.dumps(one, ensure_ascii=False) for one in logs]
    for record in records:
        if any(name in record.payload for name in names):
            event = decode(record)
            if log := logs.get(_step_of(event)):
                log.add(event, record.at)
    return {one: tuple(log.attempts) for one, log in logs.items()}


def most_attempts(state: RunState, step_id: str) -> int:
    """How many attempts a round has; 0 where none is set."""
    if isinstance(state, PlanState):
        named = (one for one in state.plan.plan.listeners if one.listener_id == step_id)
        return next((one.retry.attempts for one in named), 0)
    if isinstance(state, ConversationState):
        return state.settings.retry.attempts
    return 0


def in_vain(made: Sequence[Attempt]) -> Count:
    """The attempts since the step last succeeded, and the rounds that they were made in."""
    last = max((place for place, one in enumerate(made, 1) if one.how == "done"), default=0)
    since = made[last:]
    return Count(len(since), len({one.firing for one in since}))


@dataclass(slots=True)
class _Log:
    """`begun`: the last of the attempts is under way."""

    most: int
    attempts: list[Attempt] = field(default_factory=list)
    begun: bool = False
    concluding: bool = False
    next_round: int = 1

    def add(self, event: Event, at: float) -> None:
        match event:
            case e.PlannerRetried():
                self.next_round = event.retry_count + 1
            case e.ChildHeard(status=RunStatus.DONE):
                self.concluding = True
            case e.ListenerStarted(child_id=None) if self.concluding:
                self.concluding = False
            case e.ListenerStarted() | TaskStarted():
                self._begin(event, at)
            case e.StepReleased() if self.begun:
                self.attempts.pop()
                self.begun = False
            case _ if self.begun and (ending := _ending(event)):
                self.attempts[-1] = replace(self.attempts[-1], ended=at, **ending)
                self.begun = False

    def _begin(self, event: e.ListenerStarted | TaskStarted, at: float) -> None:
        given = pretty(dict(event.args)) if event.args else None
        begun = Attempt(event.attempt, self.most, self._round(event.firing), event.firing, at)
        self.attempts.append(replace(begun, input=given))
        self.begun = True

    def _round(self, firing: int) -> int:
        if self.attempts and self.attempts[-1].firing == firing:
            return self.attempts[-1].round
        number, self.next_round = self.next_round, 1
        return number


def _ending(event: Event) -> dict[str, Any]:
    match event:
        case e.ListenerSucceeded(result=result) | TaskFinished(result=result):
            return {"how": "done", "output": None if result is None else pretty(result)}
        case e.ListenerFailed(failure=failure) | TaskBroke(failure=failure):
            return {"how": "failed", "message": failure.message}
        case e.AttemptFailed(failure=failure):
            return {"how": "failed", "message": failure.message}
        case e.OutcomeLost(reason=reason):
            return {"how": "failed", "message": reason}
        case e.QuestionOpened(request=request):
            return {"how": "waiting", "message": request.title}
        case e.CheckConcluded():
            how = "failed" if event.verdict == "failed" else "done"
            return {"how": how, "message": event.message, "output": pretty(event.result)}
        case _:
            return {}


def _step_of(event: Event) -> str:
    return getattr(event, "step_id", None) or getattr(event, "listener_id", None) or ""


def pretty(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
