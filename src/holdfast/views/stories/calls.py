"""What the later events of a call lack, remembered from those before: who said that it took effect,
which try is under way, and the result that an earlier try brought too late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from holdfast.core.interactions.checks import HAPPENED
from holdfast.model import agent_events as r
from holdfast.model import conversation_events as v
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.values import Json

_UNKNOWN = "unknown"
_Start: TypeAlias = e.ListenerStarted | r.CallStarted | v.TaskStarted


class Asked(Protocol):
    """A question as its event or its run's state has it; `purpose` says what the answer is for."""

    @property
    def request(self) -> InteractionRequest: ...

    @property
    def step_id(self) -> str: ...

    @property
    def purpose(self) -> str: ...


@dataclass(slots=True)
class Calls:
    """By step: a further start of its work begins anew."""

    _confirmed: dict[str, str] = field(default_factory=dict)
    _tries: dict[str, _Start] = field(default_factory=dict)
    _late: dict[str, Json] = field(default_factory=dict)

    def confirmed_by(self, step_id: str) -> str:
        """Who said that the call took effect, and told its result; empty where it told its own."""
        return self._confirmed.get(step_id, "")

    def repeats(self, step_id: str) -> bool:
        """Whether a further try is under way, so that a late result is that of an earlier one."""
        return step_id in self._tries and self._tries[step_id].attempt > 1

    def waits_for_former(self, step_id: str) -> bool:
        """Whether that further try takes the result of an earlier one, which may not run twice."""
        return self.repeats(step_id) and not self._tries[step_id].idempotent

    def takes_late(self, step_id: str, result: Json) -> bool:
        """Whether a result is the one that an earlier try brought."""
        known = step_id in self._late and self.waits_for_former(step_id)
        return known and self._late[step_id] == result

    def note(self, event: Event, asked: Mapping[str, Asked]) -> None:
        """Remember what the events after this one may lack."""
        match event:
            case (
                e.ListenerStarted(listener_id=step_id, pure=False)
                | r.CallStarted(step_id=step_id)
                | v.TaskStarted(step_id=step_id)
            ):
                self._tries[step_id] = event
                self._confirmed.pop(step_id, None)
                self._late.pop(step_id, None)
            case e.LateResultKept(step_id=step_id, result=result):
                self._late[step_id] = result
            case e.QuestionAnswered(question_id=question_id, option_id=chosen, by=by):
                about = asked.get(question_id)
                if about is not None and (about.purpose, chosen) == (_UNKNOWN, HAPPENED):
                    self._confirmed[about.step_id] = by
            case (
                e.ListenerSucceeded(listener_id=step_id)
                | e.ListenerFailed(listener_id=step_id)
                | e.ListenerSkipped(listener_id=step_id)
                | r.StepEnded(step_id=step_id)
                | v.TaskFinished(step_id=step_id)
                | v.TaskBroke(step_id=step_id)
            ):
                self._tries.pop(step_id, None)
            case _:
                return
