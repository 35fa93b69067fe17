"""Forks: what was done counts as done, what was not is done now, and nobody guesses the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from dice import Dice
from forked import FORK, forked, history, origin_of, over
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    CALLING_CODE,
    CHILD,
    CODE,
    GUARDED,
    KEYED,
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
from test_machine_properties import live_on, play

from holdfast.core.plan.decide import blank, replay
from holdfast.core.plan.forking import (
    Origin,
    children_in_doubt,
    fork_of,
    may_be_started_anew,
    refuse_alive,
)
from holdfast.core.plan.tables import COMMANDS
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.repair.rehearsal import rehearse
from holdfast.core.run.state import CHANGED, STARTED
from holdfast.core.run.tables import INSTANCE, Signal, StepStatus
from holdfast.core.run.tables import Verdict as Welcome
from holdfast.core.storing import plan_digest
from holdfast.errors import NotAllowed, NotFound
from holdfast.forms.secrets import reference_of
from holdfast.i18n.catalogue import said
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.fork import Fork, ForkedStep
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking, InteractionType
from holdfast.model.plan import (
    AgentAction,
    Check,
    CodeAction,
    PlanInstanceStatus,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.repair import PlanPatch, Proposal, Verdict
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import Parent
from holdfast.model.values import Json

CHAIN = (
    on("L001", "001 Running", CALL, "002", context={"x": "{{result.x}}"}),
    on("L002", "002 Done", KEYED, "003"),
    on("L003", "003 Done", CALL, "001"),
)
LOST = c.Lost("no answer")


def seq_of(machine: Machine, kind: type[e.PlanEvent], nth: int = 1, **like: object) -> int:
    """The number of the nth such event."""
    found = [
        seq
        for seq, (_, event) in enumerate(history(machine), 1)
        if isinstance(event, kind)
        and all(getattr(event, name) == value for name, value in like.items())
    ]
    return found[nth - 1]


def states(machine: Machine) -> dict[str, str]:
    return {one: step.status.value for one, step in sorted(machine.state.steps.items())}


def tools_called(machine: Machine) -> list[str]:
    return [one.listener_id for one in events(machine, e.ListenerStarted) if not one.pure]


def cancelled(machine: Machine, outcome: c.Outcome = LOST) -> Machine:
    """The run is cancelled while its one piece of work is in flight."""
    effect = only(machine)
    machine.submit(c.Cancel(WILL))
    machine.report(effect, outcome)
    assert machine.state.status is PlanInstanceStatus.CANCELLED
    return machine


def failed_second() -> Machine:
    machine = started(*CHAIN)
    succeed(machine)
    give_up(machine)
    return machine


def end(machine: Machine, dice: Dice) -> None:
    """The run comes to its end, or is cancelled and nothing is waited for."""
    try:
        refuse_alive(machine.state)
    except NotAllowed:
        if dice.chance(3):
            live_on(machine)
            return
        machine.tries(c.Cancel(WILL, "enough", 0.0))
        machine.submit(c.Tick())
        live_on(machine)


@pytest.mark.timeout(1800)
@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.binary(min_size=100, max_size=300))
def test_a_fork_of_any_life_at_any_event_does_nothing_again_and_comes_to_its_end(
    script: bytes,
) -> None:
    """The machine compares replay with live state at every decision, and `ForkAuditor` knows what
    the origin has done."""
    dice, machine = Dice(script[::-1]), play(script)
    end(machine, dice)
    for seq in range(1, len(machine.records) + 1):
        untouched = children_in_doubt(origin_of(machine, seq)) if dice.chance(2) else ()
        fork = forked(machine, seq, untouched=untouched)
        fork.reload()
        live_on(fork)
        fork.reload()
        further = forked(fork, 1 + dice.number(len(fork.records)), run_id="inst_000003")
        live_on(further)


class TestWhatIsTakenOver:
    def test_done_stays_done_and_what_failed_fires_with_a_key_of_its_own(self) -> None:
        fork = forked(over(failed_second()))
        assert states(fork) == {"L001": "done", "L002": "ready"}
        assert statuses(fork) == {"001": "Running", "002": "Done", "003": "NotStarted"}
        fork.start_ready()
        assert only(fork).work.key == f"{FORK}:L002:1:0"
        succeed(fork)
        succeed(fork)
        assert fork.state.status is PlanInstanceStatus.DONE
        assert tools_called(fork) == ["L002", "L003"]

    def test_it_is_a_run_of_its_own(self) -> None:
        fork = forked(over(failed_second()), 7)
        state = fork.state
        assert (state.root_id, state.parent, state.plan_id) == (FORK, None, "small")
        assert (state.prompt, state.started_by, state.created_at) == ("go", WILL, fork.now)
        assert (state.retried, len(state.repair.cases), state.main_task.context) == (0, 0, {})
        assert [one.reason for one in state.task("002").trace] == ["forked"]
        [event] = events(fork, e.RunForked)
        assert (event.fork.origin, event.fork.seq) == ("inst_000001", 7)

    def test_what_came_after_the_event_has_not_happened(self) -> None:
        machine = started(*CHAIN)
        machine.settle()
        fork = forked(machine, seq_of(machine, e.ListenerSucceeded))
        assert states(fork) == {"L001": "done", "L002": "ready"}
        assert fork.state.task("002").context == {"x": 1}
        fork.settle()
        assert tools_called(fork) == ["L002", "L003"]

    def test_of_its_first_event_it_is_a_run_from_the_beginning(self) -> None:
        machine = started(*CHAIN)
        machine.settle()
        fork = forked(machine, 1)
        assert fork.settle().status is PlanInstanceStatus.DONE
        assert tools_called(fork) == ["L001", "L002", "L003"]

    def test_of_a_run_that_is_done_only_the_outcome_is_looked_at_again(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001"), verify=(Check("keyed"),))
        machine.settle()
        fork = forked(machine)
        assert fork.state.verification == {}
        assert fork.settle().verification == {"verify.1": "verified"}
        assert tools_called(fork) == ["verify.1"]
        assert fork.state.status is PlanInstanceStatus.DONE

    def test_a_check_that_was_under_way_is_made_anew(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001"), verify=(Check("plain"),))
        succeed(machine)
        cancelled(machine)
        fork = forked(machine)
        assert fork.settle().status is PlanInstanceStatus.DONE
        assert tools_called(fork) == ["verify.1"]

    def test_a_form_that_is_open_is_asked_anew_and_may_be_answered_otherwise(self) -> None:
        machine = started(on("L001", "001 Running", ASK, "002", context={"c": "{{result.colour}}"}))
        asked = len(machine.records)
        reply(machine, data={"colour": "red"})
        fork = forked(over(machine), asked)
        assert fork.state.status is PlanInstanceStatus.RUNNING
        fork.start_ready()
        assert question(fork).request_id != question_ids(machine)[0]
        reply(fork, data={"colour": "blue"})
        fork.settle()
        assert fork.state.task("002").context == {"c": "blue"}

    def test_what_people_gave_is_not_asked_for_again(self) -> None:
        machine = started(on("L001", "001 Running", ToolAction("picky"), "001"))
        reply(machine, data={"size": "XL"})
        fail(machine, TRANSIENT)
        machine.submit(c.Cancel(WILL))
        fork = forked(machine)
        fork.start_ready()
        assert cast(f.CallTool, only(fork)).args == {"size": "XL"}

    def test_unless_it_was_refused(self) -> None:
        machine = started(on("L001", "001 Running", ToolAction("picky"), "001"))
        reply(machine, data={"size": "XXXL"})
        give_up(machine)
        fork = forked(over(machine))
        fork.start_ready()
        assert question(fork).type is InteractionType.MISSING_INFO

    def test_consent_is_asked_anew(self) -> None:
        machine = started(on("L001", "001 Running", GUARDED, "001"))
        reply(machine, "approve")
        give_up(machine)
        fork = forked(over(machine))
        fork.start_ready()
        assert question(fork).type is InteractionType.TOOL_APPROVAL
        reply(fork, "approve")
        assert cast(f.CallTool, only(fork)).consent != events(machine, e.ListenerStarted)[0].consent

    def test_what_was_skipped_stays_skipped_and_what_a_person_did_is_done(self) -> None:
        machine = failed_second()
        machine.submit(c.Skip("L002", WILL))
        machine.submit(c.MarkDone("001", WILL))
        fork = forked(over(machine))
        assert states(fork) == {"L001": "done", "L002": "skipped", "L003": "skipped"}
        assert fork.settle().status is PlanInstanceStatus.DONE
        assert not tools_called(fork)

    def test_a_wait_begins_anew(self) -> None:
        machine = started(on("L001", "001 Running", WaitAction(after="2h"), "001"))
        machine.submit(c.Cancel(WILL))
        fork = forked(machine)
        assert not fork.state.timers
        fork.start_ready()
        assert dict(fork.state.timers) == {"wait:L001": fork.now + 7200.0}

    def test_a_backoff_is_not_waited_for(self) -> None:
        machine = started(*CHAIN)
        fail(machine, TRANSIENT)
        assert machine.state.steps["L001"].status is StepStatus.BACKOFF
        machine.submit(c.Cancel(WILL))
        fork = forked(machine)
        assert (states(fork), dict(fork.state.timers)) == ({"L001": "ready"}, {})

    def test_a_result_that_only_waits_to_be_concluded_is_not_obtained_again(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001", context={"x": "{{result.no}}"}))
        give_up(machine, c.OutputBroken({"x": 1}, "no such part"))
        fork = forked(over(machine))
        fork.start_ready()
        assert isinstance(only(fork), f.Conclude)

    def test_a_listener_that_was_triggered_while_it_worked_still_follows(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002", repeat=True),
            on("L002", "001 Running", ASK, "001 Running"),
            on("L003", "002 Done", ASK, "003"),
        )
        (asked,) = (one for one in machine.state.open_questions)
        machine.submit(c.Answer(asked, WILL, None, {"colour": "red"}))
        machine.start("L002")
        machine.report(
            effect := machine.flying["L002", machine.state.steps["L002"].claim],
            machine.outcome(effect, {}),
        )
        assert machine.state.steps["L001"].pending == 1
        fork = forked(over(machine))
        assert fork.state.steps["L001"].pending == 1


def question_ids(machine: Machine) -> list[str]:
    return [one.request.request_id for one in events(machine, e.QuestionOpened)]


class TestWhatIsOver:
    @pytest.mark.parametrize("begun", [lambda: started(*CHAIN), lambda: paused()])
    def test_a_run_that_goes_on_is_not_forked(self, begun: Any) -> None:
        refused = r"inst_000001 is (running|pause), and only a run that is over can be forked"
        with pytest.raises(NotAllowed, match=refused):
            refuse_alive(begun().state)

    def test_nor_is_one_that_waits_for_a_resume(self) -> None:
        """It and its fork would do the same; cancelled, nothing resumes it."""
        machine = failed_second()
        with pytest.raises(NotAllowed, match=r"inst_000001 is error, .*: cancel it first"):
            refuse_alive(machine.state)
        machine.submit(c.Cancel(WILL))
        refuse_alive(machine.state)
        with pytest.raises(NotAllowed, match="Resume is not possible"):
            machine.submit(c.Resume(WILL))

    def test_nor_is_one_that_is_being_cancelled(self) -> None:
        machine = started(*CHAIN)
        machine.submit(c.Cancel(WILL))
        with pytest.raises(NotAllowed, match="inst_000001 is cancelling"):
            refuse_alive(machine.state)

    def test_who_reads_chinese_is_told_so_in_chinese(self) -> None:
        with pytest.raises(NotAllowed) as refused:
            refuse_alive(failed_second().state)
        told = said(str(refused.value), "zh")
        assert told == "inst_000001 的状态是出错，只有已结束的运行才能分叉：请先取消它"

    def test_nothing_that_is_over_is_ever_alive_again(self) -> None:
        """So what was looked at when it was forked stays true."""
        over_for_good = {PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED}
        heard = {c.ReportOutcome, c.Answer, c.KeepDraft}
        for status in over_for_good:
            accepted = {one for one, told in COMMANDS.items() if told[status] is Welcome.ACCEPT}
            assert accepted == heard
            assert {INSTANCE[status].get(one, status) for one in Signal} <= over_for_good

    def test_nor_does_anything_that_is_still_said_to_it_start_anything(self) -> None:
        machine = started(*CHAIN)
        effect = only(machine)
        machine.submit(c.Cancel(WILL, grace=0.0))
        machine.submit(c.Tick())
        machine.report(effect, machine.outcome(effect, {"x": 1}))
        machine.crash()
        refuse_alive(machine.state)
        assert not machine.flying
        assert not machine.ready()

    @pytest.mark.parametrize("seq", [-1, 99])
    def test_an_event_that_it_never_had_is_named_with_those_that_it_has(self, seq: int) -> None:
        with pytest.raises(NotFound, match=rf"inst_000001 has no event {seq}: .* 1 to 7"):
            origin_of(failed_second(), seq)


class TestWhatRunsAboveMayDo:
    """A run starts a sub-run anew that was cancelled, once it is resumed."""

    def test_one_that_was_cancelled_is_not_forked_before_the_run_that_it_works_for_is_over(
        self,
    ) -> None:
        child, parent = self.cancelled_child().state, failed_second().state
        assert may_be_started_anew(child)
        refused = (
            "child_1 works for inst_000001, which is error and may start it anew: cancel inst_"
        )
        with pytest.raises(NotAllowed, match=refused):
            refuse_alive(child, [parent])
        refuse_alive(child, [over(failed_second()).state])

    def test_who_forks_is_told_of_the_highest_that_is_to_be_cancelled(self) -> None:
        """With it all that works for it is cancelled."""
        child = self.child()
        above = [failed_second().state, replace(failed_second().state, run_id="inst_000007")]
        with pytest.raises(NotAllowed, match="child_1 works for inst_000007"):
            refuse_alive(child.state, above)

    def test_what_is_done_is_not_started_anew_nor_what_works_for_nobody(self) -> None:
        child = self.child()
        child.settle()
        assert child.state.status is PlanInstanceStatus.DONE
        assert not may_be_started_anew(child.state)
        assert not may_be_started_anew(cancelled(started(*CHAIN)).state)

    def child(self) -> Machine:
        machine = Machine(compiled(*CHAIN), run_id="child_1")
        parent = Parent("inst_000001", "L001", 1)
        machine.submit(c.StartRun("small", parent=parent, root_id="inst_000001", by=WILL))
        machine.start_ready()
        return machine

    def cancelled_child(self) -> Machine:
        return cancelled(self.child())


def paused() -> Machine:
    return started(on("L001", "001 Running", ASK, "001"))


class TestAfterItWasCancelled:
    def test_it_stands_as_it_did_before(self) -> None:
        machine = started(*CHAIN)
        succeed(machine)
        cancelled(machine, c.NotSent())
        assert statuses(machine)["001"] == "Cancelled"
        for seq in range(seq_of(machine, e.CancelRequested), len(machine.records) + 1):
            fork = forked(machine, seq)
            assert states(fork) == {"L001": "done", "L002": "ready"}
            assert statuses(fork) == {"001": "Running", "002": "Done", "003": "Running"}
            assert fork.settle().status is PlanInstanceStatus.DONE

    def test_what_succeeded_while_it_ended_fires_what_follows_from_it(self) -> None:
        machine = started(*CHAIN)
        cancelled(machine, machine.outcome(only(machine), {"x": 1}))
        fork = forked(machine)
        assert isinstance(fork_starts(fork)[0], f.Conclude)
        fork.settle()
        assert tools_called(fork) == ["L002", "L003"]


def fork_starts(fork: Machine) -> list[Any]:
    fork.start_ready()
    return list(fork.flying.values())


class TestWhatWasInFlight:
    def test_a_success_that_the_later_journal_has_counts(self) -> None:
        machine = started(*CHAIN)
        machine.settle()
        fork = forked(machine, seq_of(machine, e.ListenerStarted))
        [concluding] = fork_starts(fork)
        assert concluding.result == {"x": 1}
        fork.settle()
        assert tools_called(fork) == ["L002", "L003"]

    def test_so_does_one_whose_output_could_not_be_determined(self) -> None:
        machine = started(*CHAIN)
        give_up(machine, c.OutputBroken({"y": 1}, "no such part"))
        [concluding] = fork_starts(forked(over(machine), 2))
        assert concluding.result == {"y": 1}

    def test_a_person_is_asked_where_nothing_says_what_came_of_it(self) -> None:
        fork = forked(cancelled(started(*CHAIN)))
        assert fork.state.status is PlanInstanceStatus.PAUSE
        assert not fork_starts(fork)
        asked = question(fork)
        assert (asked.type, asked.title) == (InteractionType.USER_CHOICE, "Did plain happen?")
        assert "it was under way at event 5 of inst_000001" in asked.message
        assert [one.name for one in asked.form.fields] == ["x"]
        reply(fork, "happened", data={"x": "7"})
        fork.settle()
        assert fork.state.task("002").context == {"x": "7"}
        assert tools_called(fork) == ["L002", "L003"]

    def test_who_may_have_it_called_again_under_the_key_that_it_was_sent_with(self) -> None:
        fork = forked(cancelled(started(*CHAIN)))
        reply(fork, "run_again")
        assert only(fork).work.key == "inst_000001:L001:1:0"

    def test_who_may_have_chosen_to_stop_the_origin_over_that_question(self) -> None:
        """At the end of the origin the question is answered; what it asked is not known."""
        machine = started(*CHAIN)
        fail(machine, LOST)
        reply(machine, "stop")
        assert machine.state.status is PlanInstanceStatus.CANCELLED
        fork = forked(machine)
        assert question(fork).title == "Did plain happen?"

    def test_what_the_origin_was_told_counts(self) -> None:
        machine = started(*CHAIN)
        fail(machine, LOST)
        asked = len(machine.records)
        reply(machine, "happened", data={"x": "7"})
        machine.settle()
        [concluding] = fork_starts(forked(machine, asked))
        assert concluding.result == {"x": "7"}

    def test_a_person_who_had_it_run_again_need_not_say_so_twice(self) -> None:
        machine = started(*CHAIN)
        fail(machine, LOST)
        (asked,) = machine.state.open_questions
        machine.submit(c.Answer(asked, WILL, "run_again"))
        machine.submit(c.Cancel(WILL))
        assert fork_starts(forked(machine))[0].work.key == f"{FORK}:L001:1:0"

    def test_what_may_be_repeated_runs_again_under_the_key_that_the_outside_world_knows(
        self,
    ) -> None:
        machine = started(on("L001", "001 Running", ToolAction("keyed", {"n": 1}), "001"))
        cancelled(machine)
        fork = forked(machine)
        [call] = fork_starts(fork)
        assert (call.work.key, call.args) == ("inst_000001:L001:1:0", {"n": 1})
        fork.report(call, TRANSIENT)
        fork.fire_timer()
        [again] = fork_starts(fork)
        assert again.work.key == f"{FORK}:L001:1:1"

    def test_so_does_one_whose_attempt_was_lost(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        fail(machine, LOST)
        assert machine.state.steps["L001"].status is StepStatus.BACKOFF
        machine.submit(c.Cancel(WILL))
        assert fork_starts(forked(machine))[0].work.key == "inst_000001:L001:1:0"

    def test_a_result_that_came_too_late_for_the_origin_counts_here(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        effect = only(machine)
        fail(machine, LOST)
        machine.report(effect, machine.outcome(effect, {"x": 5}))
        late = len(machine.records)
        machine.submit(c.Cancel(WILL))
        for seq in (late - 1, late, late + 2):
            [concluding] = fork_starts(forked(machine, seq))
            assert concluding.result == {"x": 5}

    @pytest.mark.parametrize(
        "outcome", [TRANSIENT, c.NotSent(), c.Missing(Form((Field("size"),)))], ids=str
    )
    def test_work_that_has_answered_simply_fires_anew(self, outcome: c.Outcome) -> None:
        machine = started(*CHAIN)
        fail(machine, outcome)
        machine.submit(c.Cancel(WILL))
        for seq in (2, len(machine.records)):
            [call] = fork_starts(forked(machine, seq))
            assert call.work.key == f"{FORK}:L001:1:0"

    def test_a_later_attempt_may_be_in_doubt_again(self) -> None:
        machine = started(*CHAIN)
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.start_ready()
        cancelled(machine)
        fork = forked(machine, 2)
        reply(fork, "run_again")
        assert only(fork).work.key == "inst_000001:L001:1:1"

    def test_an_idempotent_call_that_was_released_may_have_been_sent(self) -> None:
        """So it is after a crash; the consent that its tool has come to want is asked here."""
        machine = started(on("L001", "001 Running", KEYED, "001"))
        machine.crash()
        assert machine.state.steps["L001"].status is StepStatus.READY
        machine.tools["keyed"] = replace(machine.tools["guarded"], idempotent=True)
        machine.start_ready()
        machine.submit(c.Cancel(WILL))
        for seq in (4, len(machine.records)):
            fork = forked(machine, seq)
            fork.start_ready()
            assert question(fork).type is InteractionType.TOOL_APPROVAL
            reply(fork, "approve")
            assert only(fork).work.key == "inst_000001:L001:1:0"

    def test_pure_code_simply_runs(self) -> None:
        machine = started(on("L001", "001 Running", CODE, "001"))
        cancelled(machine, c.NotSent())
        assert isinstance(fork_starts(forked(machine, 2))[0], f.RunSnippet)

    def test_a_fork_may_be_forked_where_it_had_just_begun(self) -> None:
        fork = forked(cancelled(started(*CHAIN)))
        fork.submit(c.Cancel(WILL))
        for seq in range(1, len(fork.records) + 1):
            further = forked(fork, seq, run_id="inst_000003")
            assert question(further).title == "Did plain happen?"
            reply(further, "run_again")
            assert only(further).work.key == "inst_000001:L001:1:0"


class TestSnippets:
    def in_its_second_call(self) -> Machine:
        """The first call has returned, the second is in flight."""
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        for n, name in enumerate(("plain", "keyed")):
            machine.report(only(machine), c.CallWanted(n, name, {"n": n}, name == "keyed"))
            if not n:
                machine.report(only(machine), c.CallReturned(0, {"x": 0}))
        return machine

    def test_a_call_that_has_returned_is_not_made_again(self) -> None:
        fork = forked(cancelled(self.in_its_second_call()))
        [snippet] = fork_starts(fork)
        assert [one.result for one in snippet.recorded] == [{"x": 0}]
        fork.report(snippet, c.CallWanted(1, "keyed", {"n": 1}, True))
        assert only(fork).work.key == "inst_000001:L001:1:0"

    def test_nor_is_one_that_returned_later(self) -> None:
        machine = self.in_its_second_call()
        before = len(machine.records)
        machine.report(only(machine), c.CallReturned(1, {"x": 1}))
        [snippet] = fork_starts(forked(over(machine), before))
        assert [one.result for one in snippet.recorded] == [{"x": 0}, {"x": 1}]

    def test_calls_that_the_same_firing_made_later_count_as_well(self) -> None:
        machine = self.in_its_second_call()
        cancelled(machine)
        first = seq_of(machine, e.FunctionCalled)
        [snippet] = fork_starts(forked(machine, first))
        assert len(snippet.recorded) == 1

    def test_of_one_that_may_not_be_repeated_a_person_is_asked(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        machine.report(only(machine), c.CallWanted(0, "plain", {"n": 0}))
        cancelled(machine)
        fork = forked(machine)
        assert question(fork).title == "Did plain happen?"
        reply(fork, "happened", data={"result": "done"})
        [snippet] = fork.flying.values()
        assert [one.result for one in cast(f.RunSnippet, snippet).recorded] == ["done"]

    def test_a_call_that_said_why_it_failed_is_made_anew(self) -> None:
        machine = self.in_its_second_call()
        fail(machine, TRANSIENT)
        machine.submit(c.Cancel(WILL))
        for seq in (seq_of(machine, e.FunctionCalled, 2), len(machine.records)):
            fork = forked(machine, seq)
            [snippet] = fork_starts(fork)
            fork.report(snippet, c.CallWanted(1, "keyed", {"n": 1}, True))
            assert only(fork).work.key == f"{FORK}:L001:1:0"


class TestChildRuns:
    def parent(self) -> Machine:
        return started(on("L001", "001 Running", CHILD, "001"))

    def test_one_that_was_done_counts_as_done(self) -> None:
        machine = self.parent()
        [child] = machine.children
        machine.hear(child, "done", {"x": 1})
        machine.settle()
        for seq in (2, 3):
            [concluding] = fork_starts(forked(machine, seq))
            assert concluding.result == {"x": 1}

    def test_another_is_started_anew_where_it_had_done_nothing(self) -> None:
        machine = self.parent()
        machine.submit(c.Cancel(WILL))
        [child] = machine.children
        machine.hear(child, "cancelled")
        assert children_in_doubt(origin_of(machine, 2)) == (child,)
        fork = forked(machine, untouched=(child,))
        fork.start_ready()
        assert list(fork.children) == [f"{FORK}.L001.1"]

    def test_and_a_person_is_asked_where_it_had(self) -> None:
        machine = self.parent()
        [child] = machine.children
        machine.hear(child, "error")
        fork = forked(over(machine))
        assert fork.state.steps["L001"].child_id is None
        assert question(fork).title == "Did L001 happen?"
        reply(fork, "run_again")
        assert list(fork.children) == [f"{FORK}.L001.1"]
        assert not children_in_doubt(origin_of(failed_second()))


class TestTroubleThatIsLeftBehind:
    def test_a_run_that_came_to_nothing_fires_what_a_resume_would(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "003 Done", CALL, "001"),
        )
        succeed(machine)
        assert machine.state.status is PlanInstanceStatus.ERROR
        machine.submit(c.EditContext("002", {"y": 1}, WILL))
        mended = replayed_with(machine, e.TasksEdited(WILL, "by hand", (e.Move("003", DONE),)))
        assert forked(over(machine)).state.status is PlanInstanceStatus.ERROR
        fork = fork_of(Origin(mended, 1))
        assert [(one.listener_id, one.firing) for one in ready(fork)] == [("L002", 1)]

    def test_also_where_that_had_fired_before_and_may_again(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"), on("L002", "002 Done", CALL, "003 Pending")
        )
        machine.settle()
        machine.submit(c.RerunFrom("L001", WILL))
        machine.submit(c.Skip("L001", WILL))
        machine.settle()
        assert machine.state.steps["L002"].forgotten
        edited = e.TasksEdited(WILL, "by hand", (e.Move("002", DONE),))
        fork = fork_of(Origin(replayed_with(machine, edited), 1))
        assert [(one.listener_id, one.firing) for one in ready(fork)] == [("L002", 2)]

    def test_a_patched_plan_is_the_plan_of_the_fork_and_its_cases_are_not(self) -> None:
        machine = failed_second()
        operations = ({"op": "set_args", "listener_id": "L002", "set": {"n": 5}},)
        plan = machine.state.plan
        digest = plan_digest(patched(plan.plan, read_operations(operations)))
        patch = PlanPatch("p1", plan.digest, operations, "because", source="person", by=WILL)
        machine.submit(c.ProposePatch(Proposal(patch, Verdict(digest)), WILL, "L002"))
        before = len(machine.records)
        (asked,) = machine.state.open_questions
        machine.submit(c.Answer(asked, "李四", "apply"))
        machine.start_ready()
        give_up(machine)
        assert machine.state.origin is not None
        fork = forked(over(machine))
        assert (fork.state.plan.digest, fork.state.origin) == (digest, None)
        assert not fork.state.repair.cases
        assert cast(f.CallTool, fork_starts(fork)[0]).args == {"n": 5}
        assert forked(machine, before).state.plan.digest == plan.digest

    def test_an_outcome_that_was_not_good_is_looked_at_again(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "001"), verify=(Check("keyed", {}, "result.x == 2"),)
        )
        machine.settle()
        assert machine.state.status is PlanInstanceStatus.ERROR
        fork = forked(over(machine))
        assert fork.state.main_task.status == "Done"
        fork.start_ready()
        assert [one.work.step_id for one in fork.flying.values()] == ["verify.1"]


DONE = TaskStatus.DONE


def replayed_with(machine: Machine, *more: e.PlanEvent) -> Any:
    return replay(machine.state, [(machine.now, one) for one in more])


def ready(fork: Fork) -> list[ForkedStep]:
    return [one for one in fork.steps if one.status is StepStatus.READY]


class TestFourEyes:
    def test_who_forks_wants_what_it_does_and_so_do_those_who_wanted_it_before(self) -> None:
        machine = failed_second()
        machine.submit(c.EditContext("002", {"y": 1}, "李四"))
        fork = forked(over(machine), by="王五")
        assert dict(fork.state.wanting) == {"王五": STARTED, WILL: STARTED, "李四": CHANGED}

    def test_others_may_be_known_to_want_it(self) -> None:
        fork = fork_of(origin_of(failed_second()), wanting={"李四": CHANGED, WILL: CHANGED})
        assert fork.wanting == {"李四": CHANGED, WILL: STARTED}


TOKEN = reference_of(b"1" * 16)
PASSWORD = reference_of(b"2" * 16)
ENTERED = reference_of(b"3" * 16)


def with_secrets(*listeners: Any, **values: Json) -> Machine:
    """A run whose main task has secrets in its context, and which has been given up."""
    machine = started(on("L001", "001 Running", CALL, "002"), *listeners)
    machine.submit(c.EditContext("001", {"token": TOKEN, **values}, WILL))
    return machine


class TestSecrets:
    SENDS = ToolAction("plain", {"header": "Bearer {001.context.token}", "n": 1})

    def forked(self, *listeners: Any, **values: Json) -> Machine:
        machine = with_secrets(*listeners, **values)
        succeed(machine)
        return forked(over(machine), seq_of(machine, e.ListenerSucceeded))

    def test_a_step_asks_for_one_before_it_leaves_the_run_and_nobody_is_asked_twice(self) -> None:
        fork = self.forked(
            on("L002", "002 Done", self.SENDS, "003"), on("L003", "003 Done", self.SENDS, "001")
        )
        fork.start_ready()
        asked = question(fork)
        assert asked.type is InteractionType.MISSING_INFO
        assert [(one.name, one.type) for one in asked.form.fields] == [("token", FieldType.SECRET)]
        assert "open only in inst_000001" in asked.message
        assert asked.context == {"tool": "plain", "args": {"header": f"Bearer {TOKEN}", "n": 1}}
        fork.submit(c.Answer(asked.request_id, WILL, "provide", {"token": ENTERED}))
        assert fork.state.main_task.context["token"] == ENTERED
        [call] = fork_starts(fork)
        assert call.args == {"header": f"Bearer {ENTERED}", "n": 1}
        fork.settle()
        assert fork.state.status is PlanInstanceStatus.DONE
        assert len(events(fork, e.QuestionOpened)) == 1

    def test_a_rehearsal_enters_it_and_goes_on(self) -> None:
        fork = self.forked(on("L002", "002 Done", self.SENDS, "001"))
        imagined = rehearse(fork.state, fork.tools.get, now=fork.now)
        assert (imagined.reached, len(imagined.questions)) == (True, 1)
        [sent] = imagined.calls
        assert TOKEN not in str(sent.args)

    def test_whom_the_plan_asks_for_what_the_call_lacks_is_asked(self) -> None:
        sends = replace(self.SENDS, missing=Asking(role="it"))
        fork = self.forked(on("L002", "002 Done", sends, "001"))
        fork.start_ready()
        assert question(fork).role == "it"

    def test_one_that_is_not_needed_is_not_asked_for(self) -> None:
        fork = self.forked(on("L002", "002 Done", CALL, "001"))
        assert fork.settle().status is PlanInstanceStatus.DONE
        assert not events(fork, e.QuestionOpened)

    def test_a_run_that_is_no_fork_asks_for_none(self) -> None:
        machine = with_secrets(on("L002", "002 Done", self.SENDS, "001"))
        succeed(machine)
        assert cast(f.CallTool, only(machine)).args["header"] == f"Bearer {TOKEN}"

    def test_what_a_child_run_is_given_is_asked_for_too(self) -> None:
        to_agent = AgentAction("clerk", "Sign in with {001.context.token}")
        fork = self.forked(on("L002", "002 Done", to_agent, "001"))
        fork.start_ready()
        reply(fork, "provide", data={"token": ENTERED})
        [started_agent] = [one for one in events(fork, e.ListenerStarted) if one.child_id]
        assert started_agent.args == {"prompt": f"Sign in with {ENTERED}"}

    def test_so_is_what_a_snippet_hands_to_a_function(self) -> None:
        """The calls that it has made before are remembered with the new reference."""
        code = CodeAction("plain(t=context['001']['token'])", ("plain",))
        machine = with_secrets(on("L002", "002 Done", code, "001"), pin=PASSWORD)
        succeed(machine)
        machine.report(only(machine), c.CallWanted(0, "plain", {"t": TOKEN}))
        machine.report(only(machine), c.CallReturned(0, {"echo": TOKEN}))
        cancelled(machine)
        fork = forked(machine)
        [snippet] = fork_starts(fork)
        fork.report(snippet, c.CallWanted(1, "plain", {"t": TOKEN, "p": PASSWORD}))
        assert [one.name for one in question(fork).form.fields] == ["pin", "token"]
        renewed = reference_of(b"4" * 16)
        fork.auditor.returned["L002"] = [{"echo": ENTERED}]
        reply(fork, "provide", data={"token": ENTERED, "pin": renewed})
        [snippet] = fork.flying.values()
        [made] = snippet.recorded
        assert (made.args, made.result) == ({"t": ENTERED}, {"echo": ENTERED})
        fork.report(snippet, c.CallWanted(1, "plain", {"t": ENTERED, "p": renewed}))
        assert only(fork).args == {"t": ENTERED, "p": renewed}

    def test_arguments_and_results_that_are_at_hand_have_the_new_one_as_well(self) -> None:
        machine = started(
            on("L000", "001 Running", ASK, "004"),
            on("L001", "004 Done", ToolAction("keyed", {"key": "{001.context.token}"}), "002"),
            on("L002", "004 Done", CALL, "003", context={"y": "{{result.no}}"}),
        )
        machine.submit(c.EditContext("001", {"token": TOKEN}, WILL))
        reply(machine, data={"colour": "red"})
        fail(machine, machine.outcome(only(machine), None))
        machine.start_ready()
        keyed, plain = machine.flying.values()
        machine.report(plain, c.OutputBroken({"token": TOKEN}, "no such part"))
        machine.submit(c.Cancel(WILL))
        machine.report(keyed, LOST)
        fork = forked(machine)
        fork.start("L001")
        reply_before = question(fork)
        fork.submit(c.Answer(reply_before.request_id, WILL, "provide", {"token": ENTERED}))
        assert fork.state.steps["L001"].args == {"key": ENTERED}
        assert fork.state.steps["L002"].carried == ({"token": ENTERED},)
        fork.start("L001")
        assert only(fork).work.key == "inst_000001:L001:1:0"

    def test_two_that_are_asked_for_at_once_are_entered_by_the_first_who_answers(self) -> None:
        fork = self.forked(
            on("L002", "002 Done", self.SENDS, "003"), on("L003", "002 Done", self.SENDS, "001")
        )
        fork.start_ready()
        first, second = sorted(fork.state.open_questions)
        for asked, reference in ((first, ENTERED), (second, PASSWORD)):
            fork.submit(c.Answer(asked, WILL, "provide", {"token": reference}))
        assert fork.state.main_task.context["token"] == ENTERED
        fork.settle()
        assert fork.state.status is PlanInstanceStatus.DONE

    def test_each_has_a_name_of_its_own(self) -> None:
        values: dict[str, Json] = {"of it": PASSWORD, "both": f"{TOKEN} {ENTERED}"}
        machine = with_secrets(**values)
        another = reference_of(b"4" * 16)
        machine.submit(c.EditContext("002", {"token": [another, ENTERED]}, WILL))
        cancelled(machine)
        named = fork_of(origin_of(machine)).secrets
        assert named == {TOKEN: "token", PASSWORD: "secret", ENTERED: "both", another: "token_2"}


def test_a_fork_of_nothing_that_was_ever_done_is_a_run_that_has_begun() -> None:
    """The journal of a fork replays by itself."""
    fork = forked(over(failed_second()))
    fork.settle()
    again = replay(blank(FORK, fork.plan), history(fork))
    assert again == fork.state


RETRY = RetryPolicy(attempts=1)
UNKNOWN = c.Failed(Failure(FailureKind.UNKNOWN, "who knows"))


def test_what_failed_with_an_unknown_outcome_keeps_the_key_of_its_last_try() -> None:
    machine = started(on("L001", "001 Running", KEYED, "001", retry=RETRY))
    give_up(machine, UNKNOWN)
    assert fork_starts(forked(over(machine)))[0].work.key == "inst_000001:L001:1:0"
