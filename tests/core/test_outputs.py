"""What a result means for the tasks, what a compiled plan knows, and how moves are worked out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from immutables import Map
from machine import Machine
from small_plans import ASK, CALL, CHILD, CODE, COLOUR, compiled, on, started

from holdfast.core.plan.builder import Builder, updates_for
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import TaskFacts
from holdfast.core.run.steps import retry_delay, succeeded
from holdfast.errors import NotFound, OutputRefused, TemplateError
from holdfast.language.templates import render
from holdfast.model import commands as c
from holdfast.model.events import TaskUpdate
from holdfast.model.plan import Check, CodeAction, Output, TaskStatus, ToolAction
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.values import Json

NO_TASKS = TaskFacts(Map())
DONE = TaskStatus.DONE


def updates(listener: CompiledListener, result: Json, *, success: bool = True) -> object:
    return updates_for(listener, success, result, NO_TASKS)


class TestOutputs:
    code = CompiledListener(
        on("L1", "001 Running", CODE, "002", failure_output=Output("003", TaskStatus.SKIPPED))
    )
    bare = CompiledListener(on("L1", "001 Running", CODE, None))

    def test_a_result_that_says_so_is_a_failure(self) -> None:
        assert not succeeded({"success": False})
        assert all(map(succeeded, ({"success": 0}, {}, None, [], "no")))

    def test_the_listener_says_what_a_result_does(self) -> None:
        assert updates(self.code, {"x": 1}) == (TaskUpdate("002", DONE, {}, "L1"),)
        skipped = TaskUpdate("003", TaskStatus.SKIPPED, {}, "L1")
        assert updates(self.code, None, success=False) == (skipped,)
        assert updates(self.bare, {"x": 1}) == ()

    def test_a_snippet_may_say_it_itself_in_whole_or_in_part(self) -> None:
        whole = {"target_task": "9", "target_status": "Error", "context": {"y": 1}}
        assert updates(self.code, whole) == (TaskUpdate("9", TaskStatus.ERROR, {"y": 1}, "L1"),)
        assert updates(self.code, {"context": {"y": 1}}) == (
            TaskUpdate("002", DONE, {"y": 1}, "L1"),
        )
        failed = {"success": False, "context": {}}
        assert updates(self.code, failed) == (TaskUpdate("003", TaskStatus.SKIPPED, {}, "L1"),)
        assert updates(self.bare, {"target_task": "9"}) == (TaskUpdate("9", DONE, {}, "L1"),)

    def test_a_snippet_without_a_target_and_without_an_output_moves_nothing(self) -> None:
        assert updates(self.bare, {"context": {"y": 1}}) == ()

    def test_a_snippet_that_says_nonsense_is_told_so(self) -> None:
        with pytest.raises(TemplateError, match="not one of NotStarted"):
            updates(self.code, {"target_status": "done"})
        with pytest.raises(TemplateError, match="must be a dict"):
            updates(self.code, {"context": [1]})

    def test_only_a_snippet_may(self) -> None:
        tool = CompiledListener(on("L1", "001 Running", CALL, "002"))
        assert updates(tool, {"target_task": "9"}) == (TaskUpdate("002", DONE, {}, "L1"),)


class TestCompiled:
    @pytest.mark.parametrize("condition", ["Done", " Done ", "(Done)", "002.status==Done"])
    def test_a_status_may_be_written_in_many_ways(self, condition: str) -> None:
        listener = replace(on("L002", "002 Done", CODE, "001"), trigger_condition=condition)
        machine = started(on("L001", "001 Running", CODE, "002"), listener)
        assert machine.settle().status == "done"

    def test_a_lost_result_must_tell_what_the_output_reads(self) -> None:
        context = {"a": "{{result.order.id}}", "b": "{{result.order.at}}"}
        listener = CompiledListener(on("L1", "001 Running", CALL, "002", context=context))
        names = [field.name for field in listener.lost_result.fields]
        assert names == ["order.id", "order.at"]

    @pytest.mark.parametrize(
        ("snippet", "reads"),
        [
            ("result = context['002']['x']", {"002"}),
            ("result = context.get('002', {})", {"002"}),
            ("result = 1", set()),
            ("result = [context[k] for k in context]", None),
            ("key = '002'\nresult = context[key]", None),
        ],
    )
    def test_a_snippet_is_given_what_it_reads_by_name(
        self, snippet: str, reads: set[str] | None
    ) -> None:
        listener = CompiledListener(on("L1", "001 Running", CodeAction(snippet), None))
        assert listener.code_reads == (reads if reads is None else frozenset(reads))

    def test_only_a_snippet_without_functions_is_pure(self) -> None:
        actions = (CODE, CodeAction("result = f()", ("f",)), CALL, ASK, CHILD)
        pure = [CompiledListener(on("L1", "001 Running", one, None)).pure for one in actions]
        assert pure == [True, False, False, False, False]

    def test_what_takes_no_arguments_has_an_empty_template(self) -> None:
        listener = CompiledListener(on("L1", "001 Running", CODE, None))
        assert render(listener.args, NO_TASKS) == {}

    def test_inputs_and_checks_are_listeners_too(self) -> None:
        plan = compiled(
            on("L1", "001 Running", CODE, "001"), inputs=COLOUR, verify=(Check("keyed"),)
        )
        assert set(plan.listeners) == {"L1", "inputs", "verify.1"}
        assert plan.verify_ids == ("verify.1",)
        assert isinstance(plan.listener("verify.1").action, ToolAction)
        with pytest.raises(NotFound, match="no listener L2"):
            plan.listener("L2")


class TestMoves:
    def builder(self) -> Builder:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "002 002.context.n==2", CODE, "003"),
            on("L003", "002 003 Done", CODE, "001"),
        )
        return Builder(machine.state, c.Moment(machine.now))

    def test_each_move_sees_the_ones_before_it(self) -> None:
        moves = self.builder().moves(
            (
                TaskUpdate("002", DONE, {"m": 1}),
                TaskUpdate("003", DONE),
                TaskUpdate("002", DONE, {"n": 2}),
            )
        )
        assert [move.fired for move in moves] == [(), ("L003",), ("L002",)]

    def test_a_move_is_refused_before_anything_is_written(self) -> None:
        builder = self.builder()
        for update, why in (
            (TaskUpdate("404", DONE), "there is no task 404"),
            (TaskUpdate("002", TaskStatus.CANCELLED), "only with the whole run"),
        ):
            with pytest.raises(OutputRefused, match=why):
                builder.moves((update,))
        done_first = (TaskUpdate("002", DONE), TaskUpdate("002", TaskStatus.RETRYING))
        with pytest.raises(OutputRefused, match="from Done to Retrying"):
            builder.moves(done_first)
        assert not builder.events


def test_ids_cannot_be_guessed_without_the_entropy() -> None:
    state = Machine(compiled(on("L001", "001 Running", CODE, "001"))).state
    one, other = (Builder(state, c.Moment(1.0, seed)).unguessable() for seed in (b"a", b"b"))
    assert one != other
    assert len(one) == 32


class TestBackoff:
    policy = RetryPolicy(attempts=4, initial=1.0, factor=2.0, maximum=3.0, jitter=0.5)
    transient = Failure(FailureKind.TRANSIENT, "")

    def test_it_grows_up_to_its_bound(self) -> None:
        delays = [retry_delay(self.policy, self.transient, n, 0.5) for n in (1, 2, 3, 4)]
        assert delays == [1.0, 2.0, 3.0, None]

    def test_jitter_spreads_it_both_ways(self) -> None:
        assert retry_delay(self.policy, self.transient, 1, 0.0) == 0.5
        assert retry_delay(self.policy, self.transient, 1, 1.0) == 1.5

    @pytest.mark.parametrize("kind", FailureKind)
    def test_only_some_failures_are_worth_another_attempt(self, kind: FailureKind) -> None:
        worth = kind in (FailureKind.TRANSIENT, FailureKind.UNKNOWN)
        assert (retry_delay(self.policy, Failure(kind, ""), 1, 0.5) is not None) == worth

    def test_a_very_long_series_does_not_overflow(self) -> None:
        endless = RetryPolicy(attempts=10**6, initial=1.0, factor=1e30, maximum=60.0, jitter=0)
        assert retry_delay(endless, self.transient, 10**5, 0.0) == 60.0
