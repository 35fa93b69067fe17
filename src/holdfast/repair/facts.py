"""What a run's events teach: a fold that yields small facts.

A run has trouble from its first failed attempt, or its first case, on (`in_trouble`). Until then it
teaches nothing, and need not be followed: a fold that begins with the state right before
(`past_of`) yields the same facts as one over all events.

A failure counts from the first time that a step fails so. Each further attempt says how long the
failure lasted, or that it was over, up to the moment when a person or a repair takes a hand in it:
what recovers then did not recover by itself.

A repair counts when the run is done and every check of its outcome was passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.causes import judged
from holdfast.core.run.tables import StepStatus
from holdfast.model import events as e
from holdfast.model.record import record, replacing
from holdfast.model.recorded import Event
from holdfast.model.recovery import passed_at
from holdfast.model.repair import Level
from holdfast.model.retry import Failure
from holdfast.model.values import JsonObject
from holdfast.repair.lessons import key_of
from holdfast.repair.relative import relative


@record
class Tried:
    """A further attempt of a failed call, begun `since` seconds after its first failure, when
    `passed` buckets were behind it."""

    tool: str
    fingerprint: str
    cause: str
    passed: int
    since: float
    won: bool
    run_id: str
    step_id: str
    at: float


@record
class Left:
    """A failed call is not tried again by itself, or fails otherwise by now."""

    tool: str
    fingerprint: str
    run_id: str
    step_id: str
    at: float


@record
class Took:
    """A call that succeeded, and how long that took."""

    tool: str
    seconds: float
    run_id: str
    at: float


@record
class Mended:
    """What became of a repair."""

    key: str
    operations: tuple[JsonObject, ...]
    level: Level
    won: bool
    run_id: str
    at: float


@record
class ThoughtFailed:
    case_id: str
    reason: str
    run_id: str
    at: float


Fact: TypeAlias = Tried | Left | Took | Mended | ThoughtFailed


@record
class Trouble:
    """A step's failure, since it first failed so."""

    tool: str
    fingerprint: str
    cause: str
    since: float
    passed: int = 0


@record
class Repair:
    """A patch, as a lesson would have it."""

    key: str
    operations: tuple[JsonObject, ...]
    level: Level


@record
class Past:
    """What must be remembered of a run. `started` has the moments at which the calls in flight
    began, `patched_at` the last moment at which the plan was changed, `verified` whether the run is
    done and its outcome was found good."""

    in_trouble: bool = False
    started: Mapping[str, float] = field(default_factory=dict)
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    repairs: Mapping[str, Repair] = field(default_factory=dict)
    proven: tuple[str, ...] = ()
    patched_at: float | None = None
    verified: bool | None = None


NO_PAST: Final = Past()

_with = replacing(Past)
_trouble_with = replacing(Trouble)

Told: TypeAlias = tuple[Past, tuple[Fact, ...]]
_Teller: TypeAlias = Callable[[Past, PlanState, float, Any], Told]


def in_trouble(state: PlanState) -> bool:
    """Whether anything has failed in it for which more was done."""
    return state.retried > 0 or bool(state.repair.cases)


def past_of(state: PlanState) -> Past:
    """Of a run that is not in trouble yet."""
    running = [one for one in state.steps.items() if one[1].status is StepStatus.RUNNING]
    calls = (one for one in running if _tool(state, one[0]) and not one[1].pure)
    return Past(started={step_id: step.clock for step_id, step in calls})


def facts_of(past: Past, state: PlanState, at: float, event: Event) -> Told:
    """What one more event teaches; `state` is the run's before it."""
    teller = _TELLERS.get(type(event))
    return (past, ()) if teller is None else teller(past, state, at, event)


def _tool(state: PlanState, step_id: str) -> str:
    compiled = state.plan.listeners.get(step_id)
    return (compiled.tool if compiled is not None else None) or ""


def _begun(past: Past, state: PlanState, at: float, event: e.ListenerStarted) -> Told:
    if event.pure or not _tool(state, event.listener_id):
        return past, ()  # no call: only the output of one is determined
    return _with(past, started={**past.started, event.listener_id: at}), ()


def _failed_attempt(past: Past, state: PlanState, at: float, event: e.AttemptFailed) -> Told:
    past, facts = _failed(past, state, at, event.step_id, event.failure)
    return _with(past, in_trouble=True), facts


def _failed_for_now(past: Past, state: PlanState, at: float, event: e.ListenerFailed) -> Told:
    """The first of all failures is looked at when the planner has it tried again. Where only the
    output could not be determined the call itself has succeeded."""
    step_id = event.listener_id
    facts: tuple[Fact, ...] = ()
    if event.kept:
        past, facts = _answered(past, state, at, step_id)
    elif step_id in past.troubles:
        past, facts = _failed(past, state, at, step_id, event.failure)
    past = _with(past, started=_without(past.started, step_id))
    if not event.handled and not event.final:
        return past, facts
    past, more = _left(past, state, at, [step_id])
    return past, (*facts, *more)


def _retried(past: Past, state: PlanState, at: float, event: e.PlannerRetried) -> Told:
    """What is tried again with a repair does not recover by itself."""
    past, step = _with(past, in_trouble=True), state.steps[event.listener_id]
    if event.listener_id in past.troubles or at == past.patched_at:
        return past, ()
    if step.failure is None or step.carried is not None:
        return past, ()
    return _failed(past, state, at, event.listener_id, step.failure)


def _failed(past: Past, state: PlanState, at: float, step_id: str, failure: Failure) -> Told:
    tool, known = _tool(state, step_id), past.troubles.get(step_id)
    started, past = past.started.get(step_id), _with(past, started=_without(past.started, step_id))
    if not tool:
        return past, ()
    failure = judged(failure, tool)
    cause = failure.cause.value if failure.cause is not None else ""
    now = Trouble(tool, failure.fingerprint, cause, at)
    if known is None or (known.tool, known.fingerprint) != (tool, failure.fingerprint):
        past, facts = _left(past, state, at, [step_id])
        return _with(past, troubles={**past.troubles, step_id: now}), facts
    if started is None:
        return past, ()
    fact = _tried(known, started, state.run_id, step_id, at, won=False)
    passed = max(known.passed, passed_at(fact.since))
    troubles = {**past.troubles, step_id: _trouble_with(known, passed=passed)}
    return _with(past, troubles=troubles), (fact,)


def _tried(
    trouble: Trouble, started: float, run_id: str, step_id: str, at: float, *, won: bool
) -> Tried:
    of = (trouble.tool, trouble.fingerprint, trouble.cause, trouble.passed)
    return Tried(*of, started - trouble.since, won, run_id, step_id, at)


def _succeeded(past: Past, state: PlanState, at: float, event: e.ListenerSucceeded) -> Told:
    return _answered(past, state, at, event.listener_id)


def _checked(past: Past, state: PlanState, at: float, event: e.CheckConcluded) -> Told:
    if event.verdict == "verified":
        return _answered(past, state, at, event.listener_id)
    past = _with(past, started=_without(past.started, event.listener_id))
    return _left(past, state, at, [event.listener_id])


def _answered(past: Past, state: PlanState, at: float, step_id: str) -> Told:
    """A result that a person told of comes of no call in flight."""
    started, trouble = past.started.get(step_id), past.troubles.get(step_id)
    if started is None:
        return _left(past, state, at, [step_id])
    facts: list[Fact] = []
    if past.in_trouble:
        facts.append(Took(_tool(state, step_id), max(0.0, at - started), state.run_id, at))
    if trouble is not None:
        facts.append(_tried(trouble, started, state.run_id, step_id, at, won=True))
    troubles, started_ = _without(past.troubles, step_id), _without(past.started, step_id)
    return _with(past, started=started_, troubles=troubles), tuple(facts)


def _returned(past: Past, state: PlanState, at: float, event: Any) -> Told:
    """The call is not in flight any more, and its step neither failed nor done."""
    return _with(past, started=_without(past.started, event.step_id)), ()


def _skipped(past: Past, state: PlanState, at: float, event: e.ListenerSkipped) -> Told:
    return _left(past, state, at, [event.listener_id])


def _gave_up(past: Past, state: PlanState, at: float, event: e.PlannerGaveUp) -> Told:
    return _left(past, state, at, event.failed)


def _taken_over(past: Past, state: PlanState, at: float, event: Event) -> Told:
    """A person, or a repair, has taken a hand in it."""
    return _left(past, state, at, tuple(past.troubles))


def _left(past: Past, state: PlanState, at: float, step_ids: Iterable[str]) -> Told:
    found = [(one, past.troubles[one]) for one in step_ids if one in past.troubles]
    if not found:
        return past, ()
    gone = {name for name, _ in found}
    troubles = {name: one for name, one in past.troubles.items() if name not in gone}
    facts = (Left(one.tool, one.fingerprint, state.run_id, name, at) for name, one in found)
    return _with(past, troubles=troubles), tuple(facts)


def _opened(past: Past, state: PlanState, at: float, event: e.CaseOpened) -> Told:
    return _with(past, in_trouble=True), ()


def _patched(past: Past, state: PlanState, at: float, event: e.PlanPatched) -> Told:
    past, facts = _taken_over(_with(past, patched_at=at), state, at, event)
    repair = _repair_of(state, event)
    if repair is not None:
        past = _with(past, repairs={**past.repairs, event.patch_id: repair})
    return past, facts


def _repair_of(state: PlanState, event: e.PlanPatched) -> Repair | None:
    """None where no lesson can be made of it, or none that would ever be found again."""
    case = state.repair.cases.get(event.case_id)
    if case is None or case.failure is None or case.listener_id not in state.plan.listeners:
        return None
    tool, proposal = _tool(state, case.listener_id), case.proposal
    failure = judged(case.failure, tool or None)
    operations = relative(event.operations, state, case.listener_id)
    if not failure.fingerprint or operations is None or proposal is None:
        return None
    versions = proposal.verdict.versions
    if tool and tool not in versions:
        return None
    key = key_of(state, case.listener_id, versions.get(tool, ""), failure.fingerprint)
    return Repair(key, operations, proposal.verdict.level)


def _proven(past: Past, state: PlanState, at: float, event: e.RepairProven) -> Told:
    return _learned(_with(past, proven=(*past.proven, event.patch_id)), state, at)


def _completed(past: Past, state: PlanState, at: float, event: e.RunCompleted) -> Told:
    verified = all(one == "verified" for one in event.verification.values())
    return _learned(_with(past, verified=verified), state, at)


def _learned(past: Past, state: PlanState, at: float) -> Told:
    """Which of the two events comes first does not matter."""
    if not past.verified:
        return past, ()
    repairs = [past.repairs[one] for one in past.proven if one in past.repairs]
    facts = tuple(_mended(one, state, at, won=True) for one in repairs)
    return _with(past, proven=()), facts


def _disproven(past: Past, state: PlanState, at: float, event: e.RepairDisproven) -> Told:
    repair = past.repairs.get(event.patch_id)
    return past, () if repair is None else (_mended(repair, state, at, won=False),)


def _mended(repair: Repair, state: PlanState, at: float, *, won: bool) -> Mended:
    return Mended(repair.key, repair.operations, repair.level, won, state.run_id, at)


def _thought(past: Past, state: PlanState, at: float, event: e.DiagnosisReceived) -> Told:
    if event.diagnosis is not None or event.lost:
        return past, ()
    return past, (ThoughtFailed(event.case_id, event.reason, state.run_id, at),)


def _without(known: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {one: value for one, value in known.items() if one != name} if name in known else known


_TELLERS: Final[Mapping[type, _Teller]] = {
    e.ListenerStarted: _begun,
    e.AttemptFailed: _failed_attempt,
    e.ListenerFailed: _failed_for_now,
    e.PlannerRetried: _retried,
    e.ListenerSucceeded: _succeeded,
    e.CheckConcluded: _checked,
    e.StepReleased: _returned,
    e.OutcomeLost: _returned,
    e.QuestionOpened: _returned,
    e.ListenerSkipped: _skipped,
    e.PlannerGaveUp: _gave_up,
    e.RunResumed: _taken_over,
    e.TasksEdited: _taken_over,
    e.ListenersReset: _taken_over,
    e.CancelRequested: _taken_over,
    e.CaseOpened: _opened,
    e.PlanPatched: _patched,
    e.RepairProven: _proven,
    e.RepairDisproven: _disproven,
    e.RunCompleted: _completed,
    e.DiagnosisReceived: _thought,
}
