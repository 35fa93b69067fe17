"""How long a failed step waits for its next try, and what a resume does to the counts."""

from __future__ import annotations

import pytest
from machine import Machine
from small_plans import (
    CALL,
    CALLING_CODE,
    CODE,
    COLOUR,
    KEYED,
    PERMANENT,
    TRANSIENT,
    WILL,
    compiled,
    events,
    fail,
    give_up,
    on,
    only,
    question,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import ToolAction
from holdfast.model.retry import Failure, FailureKind, GiveUp, Retry, RetryPolicy

STEADY = RetryPolicy(jitter=0)
ONCE = RetryPolicy(attempts=1)


def busy(seconds: float) -> c.Failed:
    return c.Failed(Failure(FailureKind.TRANSIENT, "429", seconds))


def one_call(retry: RetryPolicy = STEADY) -> Machine:
    return started(on("L001", "001 Running", CALL, "001", retry=retry))


def waits(machine: Machine) -> list[float]:
    """Seconds from each failure to the next try, as the journal has them."""
    kinds = (e.AttemptFailed, e.PlannerRetried)
    pairs = zip(machine.records, events(machine, e.PlanEvent), strict=True)  # type: ignore[arg-type]
    return [one.retry_at - record.at for record, one in pairs if isinstance(one, kinds)]


def fail_for_good(machine: Machine, outcome: c.Outcome = TRANSIENT, most: int = 3) -> None:
    """It fails at every try, and the planner grants so many rounds more."""
    while machine.state.status == "running":
        if machine.consultations:
            machine.consult(Retry(most))
        elif machine.flying:
            fail(machine, outcome)
        else:
            machine.fire_timer()
            machine.start_ready()


class TestBackoff:
    def test_goes_on_across_the_planners_retries(self) -> None:
        machine = one_call()
        fail_for_good(machine, most=3)
        assert waits(machine) == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
        assert len(events(machine, e.ListenerStarted)) == 12
        assert machine.state.status == "error"

    def test_a_retry_of_the_planner_sits_in_backoff_until_its_timer(self) -> None:
        machine = one_call(RetryPolicy(attempts=1, jitter=0))
        fail(machine, TRANSIENT)
        machine.consult(Retry(1))
        (retried,) = events(machine, e.PlannerRetried)
        assert (retried.retry_at, retried.why) == (machine.now + 0.5, "backoff after 1 try")
        step = machine.state.steps["L001"]
        assert (step.status, step.firing, step.why) == ("backoff", 2, retried.why)
        assert statuses(machine)["001"] == "Retrying"
        assert not machine.ready()
        machine.reload()
        machine.submit(c.Recover())
        assert machine.state.timers["retry:L001"] == retried.retry_at
        machine.now = retried.retry_at
        machine.submit(c.Tick())
        assert machine.ready() == ["L001"]
        assert machine.state.steps["L001"].why == ""

    def test_the_time_of_a_retry_is_shown_in_the_context(self) -> None:
        machine = one_call(RetryPolicy(attempts=1, initial=60, jitter=0))
        fail(machine, TRANSIENT)
        machine.consult(Retry(1))
        assert machine.state.main_task.context["retry_times"] == ["2023-11-14T22:14:20.000+00:00"]

    def test_a_policy_without_waits_has_none(self) -> None:
        machine = one_call(RetryPolicy(attempts=1, initial=0))
        fail(machine, TRANSIENT)
        machine.consult(Retry(1))
        (retried,) = events(machine, e.PlannerRetried)
        assert retried.retry_at is None
        assert machine.ready() == ["L001"]

    def test_what_fails_before_its_first_try_waits_as_after_one(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001", retry=STEADY))
        machine.tools.clear()
        fail(machine)
        machine.consult(Retry(1))
        machine.fire_timer()
        machine.start_ready()
        machine.consult(Retry(2))
        assert waits(machine) == [0.5, 0.5]

    def test_the_planners_own_delay_goes_before_the_curve(self) -> None:
        machine = one_call()
        fail(machine, PERMANENT)
        machine.consult(Retry(1, 90, "the depot opens at nine"))
        (retried,) = events(machine, e.PlannerRetried)
        assert retried.retry_at == machine.now + 90
        assert retried.why == "the depot opens at nine"

    def test_the_planners_reason_stands_beside_that_of_the_curve(self) -> None:
        machine = one_call()
        fail(machine, PERMANENT)
        machine.consult(Retry(1, why="it hung"))
        assert events(machine, e.PlannerRetried)[0].why == "it hung; backoff after 1 try"

    def test_a_planner_that_gives_up_says_why(self) -> None:
        machine = one_call()
        fail(machine, PERMANENT)
        machine.consult(GiveUp("the badge is lost"))
        (gave_up,) = events(machine, e.PlannerGaveUp)
        assert gave_up.why == "the badge is lost"
        info = machine.state.main_task.context["error_info"]
        assert info["message"] == "L001 failed: no such thing; the badge is lost"


class TestRetryAfter:
    def test_a_try_waits_as_the_service_asked(self) -> None:
        machine = one_call()
        fail(machine, busy(30))
        (failed,) = events(machine, e.AttemptFailed)
        assert failed.retry_at == machine.now + 30
        assert failed.why == "the service asked for 30 s"
        assert failed.failure.retry_after == 30

    def test_so_does_a_retry_of_the_planner(self) -> None:
        machine = one_call(RetryPolicy(attempts=1, jitter=0))
        fail(machine, busy(120))
        machine.consult(Retry(1))
        assert waits(machine) == [120]
        assert events(machine, e.PlannerRetried)[0].why == "the service asked for 120 s"

    def test_a_wish_below_the_backoff_changes_nothing(self) -> None:
        machine = one_call(RetryPolicy(initial=10, jitter=0))
        fail(machine, busy(1))
        assert waits(machine) == [10]
        assert events(machine, e.AttemptFailed)[0].why == "backoff after 1 try"

    def test_what_is_tried_again_at_once_waits_for_nothing(self) -> None:
        machine = one_call(RetryPolicy(initial=0, jitter=0))
        fail(machine, TRANSIENT)
        assert [one.why for one in events(machine, e.AttemptFailed)] == [""]

    @pytest.mark.parametrize("asked", [0.6, 30.0])
    def test_jitter_never_calls_before_the_time(self, asked: float) -> None:
        for seed in range(20):
            machine = one_call(RetryPolicy(jitter=1))
            machine.run_id = f"inst_{seed:06d}"
            machine.__post_init__()
            machine.submit(c.StartRun("small", "go", by=WILL))
            machine.start_ready()
            fail(machine, busy(asked))
            assert waits(machine)[-1] >= asked

    def test_beyond_the_longest_wait_a_person_decides(self) -> None:
        machine = one_call(RetryPolicy(jitter=0, longest_wait=100))
        fail(machine, busy(101))
        assert not events(machine, e.AttemptFailed)
        machine.consult(Retry(3))
        assert machine.state.status == "error"
        info = machine.state.main_task.context["error_info"]
        told = "the service asked for 101 s, and longest_wait is 100 s"
        assert info["message"] == f"L001 failed: 429; {told}"

    def test_the_planners_own_delay_goes_before_that_bound(self) -> None:
        machine = one_call(RetryPolicy(jitter=0, longest_wait=100))
        fail(machine, busy(101))
        machine.consult(Retry(3, 101))
        assert waits(machine) == [101]

    def test_a_backoff_that_may_grow_longer_lets_a_service_ask_for_as_much(self) -> None:
        machine = one_call(RetryPolicy(jitter=0, maximum=9_000))
        fail(machine, busy(9_000))
        assert waits(machine) == [9_000]


class TestPeople:
    def in_backoff(self) -> Machine:
        machine = started(
            on("L001", "001 Running", CALL, "002", retry=RetryPolicy(attempts=1, initial=60)),
            on("L002", "002 Done", CODE, "001"),
        )
        fail(machine, TRANSIENT)
        machine.consult(Retry(3))
        return machine

    def test_may_skip_what_waits_for_the_planners_retry(self) -> None:
        machine = self.in_backoff()
        machine.submit(c.Skip("L001", WILL))
        assert statuses(machine)["002"] == "Skipped"
        assert not machine.state.timers

    def test_may_run_it_at_once(self) -> None:
        machine = self.in_backoff()
        machine.submit(c.RerunFrom("L001", WILL))
        assert machine.ready() == ["L001"]
        assert not machine.state.timers
        machine.settle()
        assert machine.state.status == "done"

    def test_may_cancel_the_run(self) -> None:
        machine = self.in_backoff()
        machine.submit(c.Cancel(WILL))
        assert machine.state.status == "cancelled"

    def test_cannot_resume_what_goes_on_by_itself(self) -> None:
        with pytest.raises(NotAllowed):
            self.in_backoff().submit(c.Resume(WILL))


class TestResume:
    """Two branches: one has failed for good, the other waits for its next try."""

    def branches(self, outcome: c.Outcome, *advice: Retry) -> Machine:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "001 Running", KEYED, "003", retry=RetryPolicy(attempts=2, jitter=0)),
        )
        broken, waiting = sorted(machine.flying.values(), key=lambda one: one.work.step_id)
        machine.report(waiting, outcome)
        for one in advice:
            machine.consult(one)
        machine.report(broken, PERMANENT)
        machine.consult(0)
        assert machine.state.steps["L002"].status is StepStatus.BACKOFF
        return machine

    @pytest.mark.parametrize(
        ("outcome", "advice"),
        [(TRANSIENT, ()), (PERMANENT, (Retry(3),))],
        ids=["between two attempts", "before a retry of the planner"],
    )
    def test_resets_the_counts_of_a_sibling_that_waits(
        self, outcome: c.Outcome, advice: tuple[Retry, ...]
    ) -> None:
        machine = self.branches(outcome, *advice)
        machine.submit(c.Resume(WILL))
        step = machine.state.steps["L002"]
        counts = (step.attempt, step.tried, step.retries, step.retry_times)
        assert counts == (0, 0, 0, ())
        assert machine.ready() == ["L001", "L002"], "and it need not wait any longer"
        assert not machine.state.timers

    def test_begins_the_backoff_anew(self) -> None:
        machine = self.branches(TRANSIENT)
        machine.submit(c.Resume(WILL))
        before = len(waits(machine))
        machine.start("L002")
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.start("L002")
        fail(machine, TRANSIENT)
        machine.consult(Retry(1))
        assert waits(machine)[before:] == [0.5, 1]

    def test_what_is_in_flight_is_at_its_first_try_then(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "001 Running", KEYED, "003", retry=RetryPolicy(attempts=2)),
        )
        broken, flying = sorted(machine.flying.values(), key=lambda one: one.work.step_id)
        machine.report(flying, TRANSIENT)
        machine.fire_timer()
        machine.start("L002")
        machine.report(broken, PERMANENT)
        machine.consult(0)
        machine.submit(c.Resume(WILL))
        assert machine.state.steps["L002"].attempt == 1
        fail(machine, TRANSIENT)
        assert machine.state.steps["L002"].status is StepStatus.BACKOFF, "it has a second try"


class TestRefusedValues:
    """A person gave a value, and the tool refused it for good."""

    PAY = ToolAction("needs_amount")
    WRONG = c.Failed(Failure(FailureKind.PERMANENT, "no such amount"))

    def given(self, outcome: c.Outcome = WRONG) -> Machine:
        machine = Machine(compiled(on("L001", "001 Running", self.PAY, "001", retry=ONCE)))
        parameters = {"properties": {"amount": {"type": "string"}}, "required": ["amount"]}
        machine.tools["needs_amount"] = c.ToolFacts(parameters)
        machine.submit(c.StartRun("small", "go", by=WILL))
        machine.start_ready()
        reply(machine, data={"amount": "12"})
        give_up(machine, outcome)
        return machine

    def message(self, machine: Machine) -> str:
        return str(machine.state.main_task.context["error_info"]["message"])

    def test_the_error_says_how_to_be_asked_again(self) -> None:
        told = "L001 failed: no such amount; resume the run: it asks again for amount"
        assert self.message(self.given()) == told

    def test_a_resume_asks_again_and_shows_why(self) -> None:
        machine = self.given()
        machine.submit(c.Resume(WILL))
        assert events(machine, e.RunResumed)[0].anew == ("L001",)
        machine.start_ready()
        assert machine.state.status == "pause"
        assert question(machine).message.endswith("Feedback on the last answer: no such amount")
        reply(machine, data={"amount": "13"})
        assert only(machine).args == {"amount": "13"}
        succeed(machine)
        assert machine.state.status == "done"

    def test_after_an_outage_the_value_is_kept(self) -> None:
        machine = self.given(TRANSIENT)
        assert "asks again" not in self.message(machine)
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        assert only(machine).args == {"amount": "12"}

    def test_what_was_never_called_with_it_has_not_refused_it(self) -> None:
        machine = self.given(TRANSIENT)
        machine.tools.pop("needs_amount")
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        machine.consult(0)
        assert "asks again" not in self.message(machine)

    def test_calls_that_were_made_with_the_value_keep_it(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001", retry=ONCE))
        machine.report(only(machine), c.Missing(COLOUR))
        reply(machine, data={"colour": "red"})
        machine.report(only(machine), c.CallWanted(0, "plain", {"n": 1}, False))
        machine.report(only(machine), c.CallReturned(0, {"x": 1}))
        give_up(machine)
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        effect = only(machine)
        assert effect.provided == {"colour": "red"}  # type: ignore[union-attr]
