"""Every state and command, every table and every pair in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest
from machine import Machine
from small_plans import ASK, CALL, CODE, WILL, compiled, give_up, on, only, reply, started, succeed

from holdfast.core.decider import SAID
from holdfast.core.plan.tables import COMMANDS, TASK, next_task
from holdfast.core.run.tables import (
    INSTANCE,
    QUESTION,
    STEP,
    Signal,
    StepMove,
    StepStatus,
    Verdict,
    close_question,
    next_instance,
    next_step,
)
from holdfast.errors import CallerError, IllegalTransition, NotAllowed
from holdfast.model import commands as c
from holdfast.model.fork import Fork
from holdfast.model.interaction import InteractionStatus
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.repair import Diagnosis, Look, PlanPatch, Proposal
from holdfast.model.repair import Verdict as Judged
from holdfast.model.retry import Cause, Retry

PLAN = (
    on("L001", "001 Running", CALL, "002"),
    on("L002", "002 Done", ASK, "003"),
    on("L003", "003 Done", CODE, "001"),
)


def paused() -> Machine:
    machine = started(*PLAN)
    succeed(machine)
    return machine


def continued() -> Machine:
    machine = paused()
    (asked,) = machine.state.open_questions
    machine.submit(c.Answer(asked, WILL, data={"colour": "red"}))
    return machine


def failed() -> Machine:
    machine = started(*PLAN)
    give_up(machine)
    return machine


def cancelling() -> Machine:
    machine = started(*PLAN)
    machine.submit(c.Cancel(WILL))
    return machine


def cancelled() -> Machine:
    machine = cancelling()
    machine.report(only(machine), c.NotSent())
    return machine


def done() -> Machine:
    machine = paused()
    reply(machine, data={"colour": "red"})
    machine.settle()
    return machine


IN_STATUS: dict[PlanInstanceStatus, Callable[[], Machine]] = {
    PlanInstanceStatus.NOT_STARTED: lambda: Machine(compiled(*PLAN)),
    PlanInstanceStatus.RUNNING: lambda: started(*PLAN),
    PlanInstanceStatus.PAUSE: paused,
    PlanInstanceStatus.CONTINUE: continued,
    PlanInstanceStatus.ERROR: failed,
    PlanInstanceStatus.CANCELLING: cancelling,
    PlanInstanceStatus.CANCELLED: cancelled,
    PlanInstanceStatus.DONE: done,
}

SAMPLES: dict[type, c.Command] = {
    type(command): command
    for command in (
        c.StartRun("small", by=WILL),
        c.StartFork(Fork("inst_000009", 1, "small"), WILL),
        c.StartStep("L001"),
        c.ReportOutcome("L001", 1, 2, c.Succeeded({"x": 1})),
        c.Advise("L001", 1, Retry(3)),
        c.ReportDiagnosis("case_1", 0, Look(Diagnosis(Cause.UNKNOWN, "it is not known"))),
        c.ProposePatch(Proposal(PlanPatch("p1", "another base", ()), Judged("")), WILL),
        c.ReviewProposal("case_1", {}),
        c.WakeEarly("L001"),
        c.Answer("asked by nobody", WILL),
        c.KeepDraft("asked by nobody", WILL),
        c.Resume(WILL),
        c.Skip("L001", WILL),
        c.MarkDone("002", WILL),
        c.EditContext("002", {"x": 1}, WILL),
        c.RerunFrom("L001", WILL),
        c.Cancel(WILL),
        c.HearChild("child", 1, "L001", 1, "done"),
        c.Tick(),
        c.Recover(),
    )
}


def test_the_command_table_knows_every_command_and_every_status() -> None:
    assert set(COMMANDS) == set(get_args(c.PlanCommand)) == set(SAMPLES)
    assert all(set(row) == set(PlanInstanceStatus) for row in COMMANDS.values())
    assert set(IN_STATUS) == set(PlanInstanceStatus)


@pytest.mark.parametrize("status", PlanInstanceStatus)
@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_every_status_meets_every_command_as_the_table_says(
    status: PlanInstanceStatus, kind: type
) -> None:
    machine = IN_STATUS[status]()
    before = machine.state
    assert before.status is status
    refusal = f"{SAID.get(kind.__name__, kind.__name__)} is not possible"
    match COMMANDS[kind][status]:
        case Verdict.REFUSE:
            with pytest.raises(NotAllowed, match=refusal):
                machine.submit(SAMPLES[kind])
            assert machine.state == before
        case Verdict.IGNORE:
            decision = machine.submit(SAMPLES[kind])
            assert (decision.events, decision.effects) == ((), ())
            assert decision.state is before
        case Verdict.ACCEPT:
            met = machine.tries(SAMPLES[kind])
            assert not (isinstance(met, CallerError) and refusal in str(met))


@pytest.mark.parametrize(("status", "signal"), list(product(PlanInstanceStatus, Signal)))
def test_an_instance_moves_by_its_table_only(status: PlanInstanceStatus, signal: Signal) -> None:
    if signal in INSTANCE[status]:
        assert next_instance(status, signal) is INSTANCE[status][signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot {signal}"):
            next_instance(status, signal)


@pytest.mark.parametrize(("status", "move"), list(product(StepStatus, StepMove)))
def test_a_step_moves_by_its_table_only(status: StepStatus, move: StepMove) -> None:
    if move in STEP[status]:
        assert next_step(status, move) is STEP[status][move]
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot {move}"):
            next_step(status, move)


@pytest.mark.parametrize(("status", "wanted"), list(product(TaskStatus, TaskStatus)))
def test_a_task_moves_by_its_table_only(status: TaskStatus, wanted: TaskStatus) -> None:
    if wanted in TASK[status]:
        assert next_task(status, wanted) is wanted
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot become {wanted}"):
            next_task(status, wanted)


@pytest.mark.parametrize(("status", "closed"), list(product(InteractionStatus, InteractionStatus)))
def test_a_question_closes_once(status: InteractionStatus, closed: InteractionStatus) -> None:
    if closed in QUESTION[status]:
        assert close_question(status, closed) is closed
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot become {closed}"):
            close_question(status, closed)


def test_ends_are_ends() -> None:
    assert not INSTANCE[PlanInstanceStatus.DONE]
    assert not INSTANCE[PlanInstanceStatus.CANCELLED]
    assert not STEP[StepStatus.STOPPED]
    assert not TASK[TaskStatus.CANCELLED]
    closed = set(InteractionStatus) - {InteractionStatus.OPEN}
    assert not any(QUESTION[status] for status in closed)
