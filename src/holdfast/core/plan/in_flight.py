"""What became of the work that a run had in flight at some event, as its later journal tells.

A firing is *in flight* from its start on, until its work answers: it succeeds, it says why it
failed, or a person says what became of it. Meanwhile it may have taken effect. What succeeds under
the same firing later, however late, is its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from holdfast.core.interactions.checks import HAPPENED
from holdfast.core.plan.state import PlanState, is_taken_over
from holdfast.core.run.state import QuestionState, StepState
from holdfast.core.run.steps import repeatable
from holdfast.core.run.tables import StepStatus
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import REPAIR, RUN_AGAIN
from holdfast.model.record import record, replacing
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


@record
class Firing:
    """What is known of a firing. `sent`: it may have taken effect; `result`: it has."""

    sent: bool
    result: tuple[Json] | None
    generation: int
    idempotent: bool
    args: Mapping[str, Json] | None
    calls: tuple[RecordedCall, ...]
    calling: tuple[str, Mapping[str, Json], bool] | None
    child_id: str | None

    @property
    def repeatable(self) -> bool:
        """It may be sent again under the same key."""
        return self.calling[2] if self.calling else self.idempotent

    @property
    def in_doubt(self) -> bool:
        return self.sent and self.result is None


_with = replacing(Firing)


def known_of(
    state: PlanState,
    listener_id: str,
    late: Iterable[e.LateResultKept],
    later: Iterable[e.PlanEvent],
) -> Firing:
    """What is known of a listener's present firing, of one in flight by what happened later too."""
    step = state.steps[listener_id]
    firing = Firing(
        sent=_in_flight(state, listener_id, step),
        result=step.carried,
        generation=step.generation,
        idempotent=step.idempotent,
        args=step.args,
        calls=step.calls,
        calling=step.calling,
        child_id=step.child_id,
    )
    told = chain(late, later if firing.sent else ()) if step.claim else ()
    for event in told:
        if _place(event) == (listener_id, step.firing):
            firing = _after(firing, event)
    return firing


def _in_flight(state: PlanState, listener_id: str, step: StepState) -> bool:
    if not step.claim or step.pure or step.carried is not None:
        return False
    if step.child_id is not None:
        return True
    if step.failure is not None and step.failure.kind is not FailureKind.UNKNOWN:
        return False
    return _unanswered(state, listener_id, step)


def _unanswered(state: PlanState, listener_id: str, step: StepState) -> bool:
    """What was asked since its start says more than the step: an unknown outcome stays so until a
    person tells it or has the call made again, and work that lacked something had answered."""
    asked = _asked(state, listener_id, step)
    if asked is None:
        unsettled = step.status is StepStatus.RUNNING or is_taken_over(state, listener_id, step)
        return unsettled or repeatable(step)
    match asked.purpose:
        case "unknown":
            return asked.option_id not in (HAPPENED, RUN_AGAIN)
        case "missing":
            return False
        case _:  # it was to be sent once more
            return repeatable(step)


def _asked(state: PlanState, listener_id: str, step: StepState) -> QuestionState | None:
    """The last question about this very start."""
    place = listener_id, step.firing
    asked = (one for one in state.questions.values() if (one.step_id, one.firing) == place)
    since = (one for one in asked if one.opened_seq > step.claim and one.purpose != REPAIR)
    return max(since, key=lambda one: one.opened_seq, default=None)


def _place(event: e.PlanEvent) -> tuple[str | None, int | None]:
    step_id = getattr(event, "step_id", None) or getattr(event, "listener_id", None)
    return step_id, getattr(event, "firing", None)


def _after(firing: Firing, event: e.PlanEvent) -> Firing:
    """What one more event says of the same firing. A result is its last word."""
    if firing.result is not None:
        return firing
    match event:
        case (
            e.ListenerSucceeded(result=result)
            | e.LateResultKept(result=result)
            | e.ListenerFailed(kept=True, result=result)
            | e.ChildHeard(status=RunStatus.DONE, result=result)
        ):
            return _with(firing, result=(result,))
        case e.ListenerFailed(failure=failure) | e.AttemptFailed(failure=failure):
            known = failure.kind is not FailureKind.UNKNOWN and firing.child_id is None
            return _with(firing, sent=firing.sent and not known, calling=None)
        case e.ListenerStarted():
            more = {"generation": event.generation, "args": event.args}
            return _with(firing, sent=True, idempotent=event.idempotent, **more)
        case e.StepReleased() if not firing.repeatable:
            return _with(firing, sent=False, calling=None)
        case e.QuestionOpened(purpose="missing"):
            return _with(firing, sent=False)
        case e.FunctionCalled(function=function, args=args, idempotent=idempotent):
            return _with(firing, sent=True, calling=(function, args, idempotent))
        case e.FunctionReturned(result=result) if firing.calling is not None:
            function, args, _ = firing.calling
            returned = RecordedCall(function, args, result)
            return _with(firing, calls=(*firing.calls, returned), calling=None)
        case _:
            return firing
