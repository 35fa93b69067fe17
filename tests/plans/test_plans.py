"""Plans as DESIGN §5 has them, beyond the seeds: what fires, what counts, what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from plan_texts import Tool, add, end, load, start, step

from holdfast import Holdfast, PlanInstance, PlannerAgent, RetrySituation, TaskDriver
from holdfast.core.plan.state import PlanState
from holdfast.errors import InvalidAnswer, NotAllowed, PermanentError, PlanRejected
from holdfast.journal.port import RunQuery
from holdfast.model.events import (
    FunctionCalled,
    FunctionReturned,
    LateResultKept,
    ListenerSucceeded,
)
from holdfast.model.recorded import Event
from holdfast.testing.clock import ManualClock

OpenApp = Callable[..., Awaitable[Holdfast]]
Until = Callable[[Holdfast, PlanInstance, Callable[[PlanState], bool]], Awaitable[PlanState]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

BROKEN = RuntimeError("out of paper")


@pytest.fixture
async def app(open_app: OpenApp) -> Holdfast:
    """Nothing is retried unless a test says so."""
    return await open_app(max_retry_count=0)


def main(instance: PlanInstance) -> dict[str, Any]:
    return instance.get_main_task_instance().context


def message(instance: PlanInstance) -> str:
    return str(main(instance)["error_info"]["message"])


async def resume(app: Holdfast, instance: PlanInstance) -> bool:
    return await app.planner_agent.resume_plan(app.plans, instance.plan_id, instance.id)


class TestInstance:
    async def test_it_says_what_it_is_and_what_came_of_it(self, app: Holdfast) -> None:
        load(app, step("A", "001", "001", code_snippet="result = {'context': {'n': 7}}"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert repr(instance) == f"<PlanInstance {instance.id}: {instance.plan_id}, done>"
        assert (instance.result, instance.error) == (main(instance), None)
        assert main(instance)["n"] == 7

    async def test_what_a_reader_or_a_driver_changes_is_their_own(self, open_app: OpenApp) -> None:
        class Own(TaskDriver):
            def determine_task_updates(
                self, listener: Any, result: Any, context: Any = None
            ) -> Any:
                context["values"]["deep"].append("theirs")
                context["tasks"]["001"]["deep"].append("theirs")
                return super().determine_task_updates(listener, result, context)

        app = await open_app(driver=Own)
        nested = {"deep": "{001.context.deep}"}
        load(
            app,
            step("A", "001", "002", code_snippet="result = {}", context=nested),
            step("B", "002", "001", code_snippet="result = {}"),
        )
        instance = await app.plans.start_plan_by_prompt("", "p", values={"deep": [1]})
        assert await instance.wait_for_completion() == "done"
        for read in (
            lambda: instance.get_task_instance("002").context,
            lambda: main(instance),
            lambda: instance.context["values"],
            lambda: instance.result or {},
        ):
            read()["deep"].append("theirs")
            assert read()["deep"] == [1]

    async def test_it_says_why_it_failed_until_it_goes_on(self, app: Holdfast) -> None:
        work = Tool(BROKEN, {})
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert (instance.result, instance.error) == (None, message(instance))
        assert "out of paper" in message(instance)
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert instance.error is None

    async def test_it_says_who_cancelled_it(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", title="Well?"), end("002"))
        instance = await start(app)
        assert await instance.wait_until_settled() == "pause"
        assert (instance.result, instance.error) == (None, None)
        await app.cancel(instance.id, by="will")
        assert await instance.wait_for_completion() == "cancelled"
        assert (instance.result, instance.error) == (None, "cancelled by will")


class TestFire:
    async def test_a_listener_fires_once_although_its_condition_holds_again(
        self, app: Holdfast
    ) -> None:
        once = Tool()
        add(app, once=once)
        load(
            app,
            step("A", "001", "002", code_snippet="result = {}"),
            step("B", "002", "003", tool="once"),
            step("C", "003", "002", code_snippet="result = {}"),
            end("003"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert once.count == 1

    async def test_a_repeating_listener_fires_at_every_trigger_under_a_key_of_its_own(
        self, app: Holdfast
    ) -> None:
        again = Tool()
        add(app, again=again)
        count = "result = {'context': {'n': context['002'].get('n', 0) + 1}}"
        load(
            app,
            step("A", "001", "002", code_snippet=count),
            step("B", "002", "003", tool="again", repeat=True),
            step(
                "C", "003", "002", when="Done && 002.context.n < 3", code_snippet=count, repeat=True
            ),
            end("003", when="Done && 002.context.n == 3"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert again.keys == [f"{instance.id}:B:{n}:0" for n in (1, 2, 3)]

    async def test_a_cycle_without_end_waits_for_a_person(self, app: Holdfast) -> None:
        turns = Tool()
        add(app, turns=turns)
        load(
            app,
            step("A", "001", "002", code_snippet="result = {}"),
            step("B", "002", "003", tool="turns", repeat=True, max_firings=20),
            step(
                "C",
                "003",
                "002",
                when="Done && 001.context.stop != true",
                repeat=True,
                code_snippet="result = {}",
            ),
            end("003", when="Done && 001.context.stop == true"),
        )
        instance = await start(app, stop=False)
        assert await instance.wait_for_completion() == "error"
        assert (turns.count, message(instance)) == (20, "B has fired 20 times (max_firings)")
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "error"
        assert turns.count == 40
        await app.edit_context(instance.id, "001", {"stop": True})
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"

    async def test_where_permits_are_short_the_smaller_priority_goes_first(
        self, open_app: OpenApp
    ) -> None:
        app = await open_app(max_effects=1)
        first, low, high = Tool().hold(), Tool(), Tool()
        add(app, first=first, low=low, high=high)
        load(
            app,
            step("A", "001", "002", tool="first", priority=1),
            step("B", "001", "003", tool="low", priority=300, args={"x": "b"}),
            step("C", "001", "004", tool="high", priority=200, args={"x": "c"}),
            end(
                "002,003,004", when="002.status == Done && 003.status == Done && 004.status == Done"
            ),
        )
        instance = await start(app)
        await first.entered.wait()
        assert (low.count, high.count) == (0, 0)
        high.hold()
        first.let_go()
        await high.entered.wait()
        assert low.count == 0
        high.let_go()
        assert await instance.wait_for_completion() == "done"
        assert (low.count, high.count) == (1, 1)

    async def test_the_target_is_running_while_its_listener_works(self, app: Holdfast) -> None:
        work = Tool().hold()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        await work.entered.wait()
        assert instance.get_task_instance("002").status == "Running"
        work.let_go()
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").status == "Done"

    async def test_independent_listeners_run_in_parallel(self, app: Holdfast) -> None:
        one, two = Tool().hold(), Tool().hold()
        add(app, one=one, two=two)
        load(
            app,
            step("A", "001", "002", tool="one"),
            step("B", "001", "003", tool="two"),
            end("002,003", when="002.status == Done && 003.status == Done"),
        )
        instance = await start(app)
        await asyncio.wait_for(asyncio.gather(one.entered.wait(), two.entered.wait()), 60)
        one.let_go()
        two.let_go()
        assert await instance.wait_for_completion() == "done"

    async def test_nothing_left_to_do_names_the_conditions_that_are_false(
        self, app: Holdfast
    ) -> None:
        load(
            app,
            step("A", "001", "002", code_snippet="result = {'context': {'n': 1}}"),
            step("B", "002", "003", when="Done && 002.context.n > 5", code_snippet="result = {}"),
            end("003"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert main(instance)["error_info"]["status"] == "waiting_for_resume"
        assert "B: " in message(instance)
        assert "END: " in message(instance)
        assert "A: " not in message(instance)

    async def test_nothing_left_to_do_is_mended_by_an_edit_and_a_resume(
        self, app: Holdfast
    ) -> None:
        load(
            app,
            step("A", "001", "002", code_snippet="result = {'context': {'n': 1}}"),
            end("002", when="Done && 002.context.n > 5"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        await app.edit_context(instance.id, "002", {"n": 6})
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"

    async def test_a_plan_that_cannot_run_is_refused_before_it_starts(self, app: Holdfast) -> None:
        with pytest.raises(PlanRejected) as rejected:
            load(app, step("A", "404", "002", tool="nowhere"), end("002"))
        assert len(rejected.value.problems) >= 2


class TestFailures:
    async def test_two_that_fail_at_once_are_both_listed_and_both_resumed_and_nothing_else(
        self, app: Holdfast, until: Until, events_of: EventsOf
    ) -> None:
        one, two, fine = Tool(BROKEN, {}).hold(), Tool(BROKEN, {}).hold(), Tool().hold()
        add(app, one=one, two=two, fine=fine)
        load(
            app,
            step("A", "001", "002", tool="one"),
            step("B", "001", "003", tool="two"),
            step("C", "001", "004", tool="fine"),
            step("D", "004", "005", code_snippet="result = {}"),
            end(
                "002,003,005", when="002.status == Done && 003.status == Done && 005.status == Done"
            ),
        )
        instance = await start(app)
        await asyncio.gather(one.entered.wait(), two.entered.wait(), fine.entered.wait())
        two.let_go()
        assert await instance.wait_for_completion() == "error"
        one.let_go()
        fine.let_go()
        state = await until(app, instance, lambda state: state.in_flight == 0)
        assert state.failed == ("B", "A")
        context = main(instance)
        assert context["failed_listener_ids"] == [f"{instance.id}_B", f"{instance.id}_A"]
        assert context["failed_listener_id"] == f"{instance.id}_B"
        assert instance.get_task_instance("004").status == "Done"
        assert instance.get_task_instance("005").status == "NotStarted"
        succeeded = [
            e for e in await events_of(app, instance.id) if isinstance(e, ListenerSucceeded)
        ]
        assert [event.listener_id for event in succeeded] == ["C"]
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert (one.count, two.count, fine.count) == (2, 2, 1)
        assert instance.get_task_instance("005").status == "Done"

    async def test_a_failure_output_that_is_no_error_is_a_branch_and_is_not_retried(
        self, open_app: OpenApp
    ) -> None:
        app = await open_app(max_retry_count=3)
        work = Tool({"success": False, "error": "sold out"})
        add(app, work=work)
        other = {"task_id": "003", "status": "Done", "context": {"why": "{{result.error}}"}}
        load(
            app,
            step("A", "001", "002", tool="work", failure_output=other),
            step("B", "003", "001", code_snippet="result = {}"),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1
        assert instance.get_task_instance("003").context == {"why": "sold out"}
        assert "error_info" not in main(instance)

    async def test_without_a_failure_output_the_main_task_says_which_listener_failed(
        self, app: Holdfast
    ) -> None:
        add(app, work=Tool(BROKEN))
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert main(instance)["failed_listener_id"] == f"{instance.id}_A"
        assert message(instance) == "A failed: out of paper"

    async def test_a_snippet_chooses_its_own_target_status_and_context(self, app: Holdfast) -> None:
        snippet = "result = {'target_task': '003', 'target_status': 'Skipped', 'context': {'n': 7}}"
        load(
            app,
            step("A", "001", "002", code_snippet=snippet),
            step("B", "003", "001", when="Skipped", code_snippet="result = {}"),
            step("C", "002", "003", code_snippet="result = {}"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("003").status == "Skipped"
        assert instance.get_task_instance("003").context == {"n": 7}

    async def test_a_template_error_after_an_effect_never_runs_the_effect_again(
        self, open_app: OpenApp
    ) -> None:
        app = await open_app(max_retry_count=3)
        work = Tool({"order": 5})
        add(app, work=work)
        context = {"order": "{{result.order}}", "site": "{001.context.site}"}
        load(app, step("A", "001", "002", tool="work", context=context), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert "site" in message(instance)
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "error"
        await app.edit_context(instance.id, "001", {"site": "Lyon"})
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"order": 5, "site": "Lyon"}
        assert work.count == 1

    async def test_a_template_error_before_the_call_calls_nothing(self, app: Holdfast) -> None:
        work = Tool()
        add(app, work=work)
        load(
            app, step("A", "001", "002", tool="work", args={"x": "{001.context.site}"}), end("002")
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert work.count == 0
        await app.edit_context(instance.id, "001", {"site": "Lyon"})
        await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert work.calls == [{"x": "Lyon"}]

    async def test_templates_keep_types(self, app: Holdfast) -> None:
        work = Tool({"items": [1, {"two": 2.5}], "ok": True})
        add(app, work=work)
        context = {"items": "{{result.items}}", "text": "{{result.ok}}: {{result.items.1.two}}"}
        load(app, step("A", "001", "002", tool="work", context=context), end("002"))
        instance = await start(app)
        await instance.wait_for_completion()
        assert instance.get_task_instance("002").context["items"] == [1, {"two": 2.5}]
        assert instance.get_task_instance("002").context["text"].endswith(": 2.5")

    async def test_a_key_changes_only_after_a_failure_that_the_tool_answered(
        self, app: Holdfast
    ) -> None:
        work = Tool(BROKEN, TimeoutError(), {})
        app.tool(work, name="work", idempotent=True)
        retry = {"attempts": 3, "initial": 0.001}
        load(app, step("A", "001", "002", tool="work", retry=retry), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert work.keys == [f"{instance.id}:A:1:{generation}" for generation in (0, 1, 1)]


class TestSubPlans:
    async def test_a_child_run_has_its_own_journal_and_its_context_is_the_result(
        self, app: Holdfast
    ) -> None:
        inner = Tool({"badge": "B1"})
        add(app, inner=inner)
        call = step(
            "C",
            "001",
            "001",
            tool="inner",
            args={"x": "{001.context.who}"},
            context={"badge": "{{result.badge}}"},
        )
        load(app, call, plan_id="child")
        load(
            app,
            step(
                "P",
                "001",
                "002",
                plan_id="child",
                values={"who": "张三"},
                context={"got": "{{result.badge}}", "who": "{{result.who}}"},
            ),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"got": "B1", "who": "张三"}
        assert inner.calls == [{"x": "张三"}]
        child = await app.instance(f"{instance.id}.P.1")
        assert (child.status, child.plan_id) == ("done", "child")
        rows = await app.runs(RunQuery(parent_id=instance.id))
        assert [(row.run_id, row.root_id) for row in rows] == [(child.id, instance.id)]

    async def test_a_childs_question_pauses_the_parent_and_is_answered_through_it(
        self, app: Holdfast, until: Until
    ) -> None:
        form = {"colour": {"type": "text"}}
        load(
            app,
            step("C", "001", "001", form=form, context={"colour": "{{result.colour}}"}),
            plan_id="child",
        )
        load(
            app,
            step("P", "001", "002", plan_id="child", context={"c": "{{result.colour}}"}),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_until_settled() == "pause"
        assert [row.root_id for row in await app.inbox()] == [instance.id]
        assert instance.context["paused_listener_id"] == f"{instance.id}_P"
        child = await app.instance(instance.context["paused_child_id"])
        assert list(child.context["required_params"]) == ["colour"]
        result = await app.planner_agent.continue_plan(instance.id, {"colour": "red"})
        assert result["success"] is True
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"c": "red"}
        assert "paused_listener_id" not in instance.context
        again = await app.planner_agent.continue_plan(instance.id, {"colour": "red"})
        assert again["result"] == result["result"]
        other = await app.planner_agent.continue_plan(instance.id, {"colour": "blue"})
        assert "already answered by local" in other["error"]

    async def test_a_childs_error_is_the_parents_and_resuming_the_parent_resumes_the_child(
        self, open_app: OpenApp
    ) -> None:
        app = await open_app(max_retry_count=0)
        before, fails = Tool(), Tool(BROKEN, {})
        add(app, before=before, fails=fails)
        load(
            app,
            step("C1", "001", "002", tool="before"),
            step("C2", "002", "001", tool="fails"),
            plan_id="child",
        )
        load(app, step("P", "001", "002", plan_id="child"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert main(instance)["failed_listener_id"] == f"{instance.id}_P"
        assert "out of paper" in message(instance)
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert (before.count, fails.count) == (1, 2)
        assert [row.run_id for row in await app.runs(RunQuery(parent_id=instance.id))] == [
            f"{instance.id}.P.1"
        ]

    async def test_plans_that_call_each_other_come_to_an_end_and_a_person_decides(
        self, app: Holdfast
    ) -> None:
        load(app, end("001"), plan_id="other")
        load(app, step("P", "001", "002", plan_id="other"), end("002"))
        load(app, step("P", "001", "002", plan_id="p"), end("002"), plan_id="other")
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert "there are 30 runs above it, and no more may be" in str(instance.error)
        assert len(await app.runs()) == 31

    async def test_values_that_do_not_fit_the_childs_inputs_fail_the_listener(
        self, app: Holdfast
    ) -> None:
        load(app, end("001"), plan_id="child", inputs={"n": {"type": "number"}})
        load(app, step("P", "001", "002", plan_id="child", values={"n": "many"}), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert "inputs" in message(instance)

    async def test_a_child_outlives_its_process_and_keeps_its_plan(
        self, open_app: OpenApp, tmp_path: Path
    ) -> None:
        form = {"colour": {"type": "text"}}
        async with Holdfast(tmp_path / "home") as first:
            load(first, step("C", "001", "001", form=form, context={"old": True}), plan_id="child")
            load(
                first,
                step("P", "001", "002", plan_id="child", context={"old": "{{result.old}}"}),
                end("002"),
            )
            instance = await start(first)
            assert await instance.wait_until_settled() == "pause"
        app = await open_app(tmp_path / "home")
        load(app, step("C", "001", "001", form=form, context={"old": False}), plan_id="child")
        await app.planner_agent.continue_plan(instance.id, {"colour": "red"})
        again = await app.instance(instance.id)
        assert await again.wait_for_completion() == "done"
        assert again.get_task_instance("002").context == {"old": True}

    async def test_cancelling_the_parent_cancels_the_child(self, app: Holdfast) -> None:
        load(app, step("C", "001", "001", form={"colour": {"type": "text"}}), plan_id="child")
        load(app, step("P", "001", "002", plan_id="child"), end("002"))
        instance = await start(app)
        await instance.wait_until_settled()
        await app.cancel(instance.id)
        assert await instance.wait_for_completion() == "cancelled"
        child = await app.instance(f"{instance.id}.P.1")
        assert child.status == "cancelled"
        assert await app.inbox() == []


class TestSnippetFunctions:
    SNIPPET = "a = fetch(x=1)\nb = fetch(x=a['n'])\nresult = {'context': {'sum': a['n'] + b['n']}}"

    async def test_each_call_is_made_once_and_journaled_although_the_snippet_runs_again(
        self, app: Holdfast, events_of: EventsOf
    ) -> None:
        fetch = Tool({"n": 10}, {"n": 32})
        add(app, fetch=fetch)
        load(
            app, step("A", "001", "002", code_snippet=self.SNIPPET, functions=["fetch"]), end("002")
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"sum": 42}
        assert fetch.calls == [{"x": 1}, {"x": 10}]
        assert len(set(fetch.keys)) == 2
        events = await events_of(app, instance.id)
        called = [(e.index, e.function, e.args) for e in events if isinstance(e, FunctionCalled)]
        assert called == [(0, "fetch", {"x": 1}), (1, "fetch", {"x": 10})]
        assert [e.result for e in events if isinstance(e, FunctionReturned)] == [
            {"n": 10},
            {"n": 32},
        ]

    async def test_a_failing_call_is_tried_again_and_the_one_before_it_is_not(
        self, app: Holdfast
    ) -> None:
        fetch = Tool({"n": 10}, BROKEN, {"n": 32})
        add(app, fetch=fetch)
        retry = {"attempts": 2, "initial": 0.001}
        load(
            app,
            step("A", "001", "002", code_snippet=self.SNIPPET, functions=["fetch"], retry=retry),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert fetch.calls == [{"x": 1}, {"x": 10}, {"x": 10}]

    async def test_after_a_resume_the_calls_that_returned_are_not_made_again(
        self, app: Holdfast
    ) -> None:
        fetch = Tool({"n": 10}, BROKEN, {"n": 32})
        add(app, fetch=fetch)
        load(
            app, step("A", "001", "002", code_snippet=self.SNIPPET, functions=["fetch"]), end("002")
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert fetch.calls == [{"x": 1}, {"x": 10}, {"x": 10}]

    @pytest.mark.parametrize("approval", ["require", "disabled"])
    async def test_a_snippet_cannot_call_what_needs_consent_or_is_disabled(
        self, app: Holdfast, approval: str
    ) -> None:
        fetch = Tool({"n": 1})
        app.tool(fetch, name="fetch", approval=approval)
        load(
            app, step("A", "001", "002", code_snippet=self.SNIPPET, functions=["fetch"]), end("002")
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert fetch.count == 0
        assert "fetch" in message(instance)

    async def test_a_call_keeps_its_tools_own_time_limit(self, app: Holdfast) -> None:
        fetch = Tool({"n": 1}).hold()
        app.tool(fetch, name="fetch", timeout=0.01)
        load(
            app, step("A", "001", "002", code_snippet=self.SNIPPET, functions=["fetch"]), end("002")
        )
        instance = await start(app)
        assert await instance.wait_until_settled() == "pause"
        assert "fetch" in (await app.inbox())[0].title
        fetch.let_go()


class TestVerify:
    async def verified(self, app: Holdfast, look: Tool, **check: Any) -> PlanInstance:
        app.tool(look, name="check_it")
        load(app, end("001"), verify=[{"tool": "check_it", **check}])
        instance = await start(app)
        await instance.wait_for_completion()
        return instance

    async def test_verified(self, app: Holdfast) -> None:
        instance = await self.verified(app, Tool({"exists": True}), expect="result.exists == true")
        assert instance.status == "done"
        assert instance.verification == {"verify.1": "verified"}

    async def test_unable_to_verify_is_recorded_and_no_error(self, app: Holdfast) -> None:
        instance = await self.verified(app, Tool(PermanentError("the archive is closed")))
        assert instance.status == "done"
        assert instance.verification == {"verify.1": "unable_to_verify"}

    async def test_an_argument_that_does_not_render_means_unable_to_verify(
        self, app: Holdfast
    ) -> None:
        instance = await self.verified(app, Tool(), args={"x": "{001.context.nowhere}"})
        assert instance.status == "done"
        assert instance.verification == {"verify.1": "unable_to_verify"}

    async def test_failed_turns_the_instance_into_error_and_a_resume_looks_again(
        self, app: Holdfast
    ) -> None:
        look = Tool({"exists": False}, {"exists": True})
        instance = await self.verified(app, look, expect="result.exists == true")
        assert instance.status == "error"
        assert instance.verification == {"verify.1": "failed"}
        assert "check_it" in message(instance)
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert instance.verification == {"verify.1": "verified"}
        assert look.count == 2
        assert instance.get_main_task_instance().status == "Done"

    async def test_a_tool_that_answers_success_false_has_failed(
        self, open_app: OpenApp, clock: ManualClock, until: Until
    ) -> None:
        app = await open_app(clock=clock)
        look = Tool({"success": False, "error": "not there"})
        app.tool(look, name="check_it")
        load(app, end("001"), verify=[{"tool": "check_it"}])
        instance = await start(app)
        for _ in range(2):
            await until(app, instance, lambda state: bool(state.timers))
            clock.advance(60)
            await until(app, instance, lambda state: not state.timers)
        assert await instance.wait_for_completion() == "error"
        assert instance.verification == {"verify.1": "failed"}


INPUTS = {"name": {"type": "text"}, "size": {"type": "number", "default": 3}}


class TestInputs:
    async def test_what_is_missing_is_asked_for_before_anything_runs(self, app: Holdfast) -> None:
        work = Tool()
        add(app, work=work)
        args = {"x": "{001.context.name}", "y": "{001.context.size}"}
        load(app, step("A", "001", "002", tool="work", args=args), end("002"), inputs=INPUTS)
        instance = await start(app, size=5)
        assert await instance.wait_until_settled() == "pause"
        assert list(instance.context["required_params"]) == ["name"]
        assert instance.get_main_task_instance().status == "NotStarted"
        await app.planner_agent.continue_plan(instance.id, {"name": "张三"})
        assert await instance.wait_for_completion() == "done"
        assert work.calls == [{"x": "张三", "y": 5}]

    async def test_defaults_fill_in_and_nothing_is_asked(self, app: Holdfast) -> None:
        load(app, end("001"), inputs=INPUTS)
        instance = await start(app, name="张三")
        assert await instance.wait_for_completion() == "done"
        assert main(instance) == {"name": "张三", "size": 3}

    async def test_values_that_do_not_fit_are_refused_and_nothing_starts(
        self, app: Holdfast
    ) -> None:
        load(app, end("001"), inputs=INPUTS)
        with pytest.raises(InvalidAnswer) as refused:
            await start(app, size="big", colour="red")
        assert set(refused.value.fields) == {"size", "colour"}
        assert await app.runs() == []


class TestPeople:
    async def failed(self, app: Holdfast, work: Tool) -> PlanInstance:
        add(app, work=work)
        load(
            app,
            step("A", "001", "002", tool="work"),
            step("B", "002", "003", when="Done || Skipped", code_snippet="result = {}"),
            end("003"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        return instance

    async def test_skip_passes_over_what_failed(self, app: Holdfast) -> None:
        work = Tool(BROKEN)
        instance = await self.failed(app, work)
        await app.skip(instance.id, "A", by="Will Zhang", reason="not needed")
        assert instance.get_task_instance("002").status == "Skipped"
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1

    async def test_mark_done_by_hand_goes_on_with_the_given_context(self, app: Holdfast) -> None:
        work = Tool(BROKEN)
        instance = await self.failed(app, work)
        await app.mark_done(instance.id, "002", context={"order": "by phone"}, by="Will Zhang")
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"order": "by phone"}
        assert instance.get_task_instance("002").trace[-1]["reason"] == "marked done by Will Zhang"
        assert work.count == 1

    async def test_marking_the_main_task_done_ends_the_run_at_the_resume(
        self, app: Holdfast
    ) -> None:
        work = Tool(BROKEN)
        instance = await self.failed(app, work)
        await app.skip(instance.id, "A")
        await app.mark_done(instance.id, "001")
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"

    async def test_mark_done_withdraws_the_question_it_makes_pointless(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", form={"colour": {"type": "text"}}), end("002"))
        instance = await start(app)
        await instance.wait_until_settled()
        await app.mark_done(instance.id, "002")
        assert await instance.wait_for_completion() == "done"
        assert await app.inbox() == []

    async def test_rerun_from_runs_a_step_and_what_follows_again(self, app: Holdfast) -> None:
        first, second, last = Tool(), Tool(), Tool(BROKEN, {})
        add(app, first=first, second=second, last=last)
        load(
            app,
            step("A", "001", "002", tool="first"),
            step("B", "002", "003", tool="second"),
            step("C", "003", "004", tool="last"),
            end("004"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        await app.rerun_from(instance.id, "B", by="Will Zhang")
        assert await instance.wait_for_completion() == "done"
        assert (first.count, second.count, last.count) == (1, 2, 2)
        assert len(set(second.keys)) == 2

    async def test_a_step_that_is_running_can_be_neither_skipped_nor_run_again(
        self, app: Holdfast
    ) -> None:
        work = Tool().hold()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        await work.entered.wait()
        with pytest.raises(NotAllowed, match="A is running"):
            await app.skip(instance.id, "A")
        with pytest.raises(NotAllowed, match="still running"):
            await app.rerun_from(instance.id, "A")
        work.let_go()
        assert await instance.wait_for_completion() == "done"

    async def test_what_is_done_takes_no_more_commands(self, app: Holdfast) -> None:
        load(app, end("001"))
        instance = await start(app)
        await instance.wait_for_completion()
        for command in (
            app.skip(instance.id, "END"),
            app.mark_done(instance.id, "001"),
            app.edit_context(instance.id, "001", {"x": 1}),
            app.rerun_from(instance.id, "END"),
            app.cancel(instance.id),
        ):
            with pytest.raises(NotAllowed):
                await command


class TestCancel:
    async def test_what_has_not_started_never_runs(self, open_app: OpenApp) -> None:
        app = await open_app(max_effects=1)
        one, two = Tool().hold(), Tool()
        add(app, one=one, two=two)
        load(
            app,
            step("A", "001", "002", tool="one", priority=1),
            step("B", "001", "003", tool="two"),
            end("002,003", when="002.status == Done && 003.status == Done"),
        )
        instance = await start(app)
        await one.entered.wait()
        await app.cancel(instance.id)
        assert instance.status == "cancelling"
        one.let_go()
        assert await instance.wait_for_completion() == "cancelled"
        assert two.count == 0

    async def test_what_is_in_flight_finishes_and_counts_but_starts_nothing(
        self, app: Holdfast
    ) -> None:
        work, after = Tool({"order": 5}).hold(), Tool()
        add(app, work=work, after=after)
        context = {"order": "{{result.order}}"}
        load(
            app,
            step("A", "001", "002", tool="work", context=context),
            step("B", "002", "001", tool="after"),
        )
        instance = await start(app)
        await work.entered.wait()
        await app.cancel(instance.id)
        work.let_go()
        assert await instance.wait_for_completion() == "cancelled"
        assert instance.get_task_instance("002").status == "Done"
        assert instance.get_task_instance("002").context == {"order": 5}
        assert instance.get_main_task_instance().status == "Cancelled"
        assert after.count == 0

    async def test_what_never_ends_is_left_behind_after_the_grace(
        self, open_app: OpenApp, clock: ManualClock, events_of: EventsOf, until: Until
    ) -> None:
        app = await open_app(clock=clock)
        work = Tool({"order": 5}).hold()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        await work.entered.wait()
        await app.cancel(instance.id)
        clock.advance(9)
        assert instance.status == "cancelling"
        clock.advance(1)
        assert await instance.wait_for_completion() == "cancelled"
        work.let_go()
        last = instance.version
        await until(app, instance, lambda state: state.version > last)
        assert isinstance((await events_of(app, instance.id))[-1], LateResultKept)
        assert instance.status == "cancelled"

    async def test_a_paused_run_is_cancelled_at_once_and_asks_nothing_more(
        self, app: Holdfast
    ) -> None:
        load(app, step("A", "001", "002", form={"colour": {"type": "text"}}), end("002"))
        instance = await start(app)
        await instance.wait_until_settled()
        await app.cancel(instance.id)
        assert instance.status == "cancelled"
        assert await app.inbox() == []

    async def test_a_run_in_error_can_be_cancelled_and_then_not_resumed(
        self, app: Holdfast
    ) -> None:
        add(app, work=Tool(BROKEN))
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        await instance.wait_for_completion()
        await app.cancel(instance.id)
        assert instance.status == "cancelled"
        assert await resume(app, instance) is False


class TestOverrides:
    async def test_execute_listener_is_what_the_engine_calls(self, open_app: OpenApp) -> None:
        class Own(TaskDriver):
            async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
                if listener.listener_id == "END":
                    return await super().execute_listener(listener, context)
                update = {
                    "task_id": "002",
                    "status": "Done",
                    "context": {"own": context["plan_id"]},
                }
                return {"success": True, "result": None, "task_updates": [update]}

        app, work = await open_app(driver=Own), Tool()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"own": "p"}
        assert work.count == 0

    async def test_determine_task_updates_is_honoured(self, open_app: OpenApp) -> None:
        class Own(TaskDriver):
            def determine_task_updates(
                self, listener: Any, execution_result: Any, context: Any
            ) -> list[dict[str, Any]]:
                updates = super().determine_task_updates(listener, execution_result, context)
                return [{**one, "context": {"seen": listener.listener_id}} for one in updates]

        app = await open_app(driver=Own)
        add(app, work=Tool())
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"seen": "A"}

    async def test_decide_retry_strategy_is_honoured_and_may_break_without_harm(
        self, open_app: OpenApp
    ) -> None:
        class Own(PlannerAgent):
            async def decide_retry_strategy(self, situation: RetrySituation) -> int:
                if situation.retry_count == 2:
                    raise RuntimeError("the model is asleep")
                return 10

        app, work = await open_app(planner_agent=Own()), Tool(BROKEN)
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        assert work.count == 3

    async def test_on_task_status_change_is_told_and_may_break_without_harm(
        self, open_app: OpenApp
    ) -> None:
        told: list[tuple[str, str]] = []

        class Own(PlannerAgent):
            async def on_task_status_change(self, task_instance: Any, plan_context: Any) -> None:
                told.append((task_instance.task_id, task_instance.status))
                raise RuntimeError("deaf")

        app, work = await open_app(planner_agent=Own()), Tool().hold()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await start(app)
        await work.entered.wait()
        work.let_go()
        assert await instance.wait_for_completion() == "done"
        assert ("001", "Running") in told
        assert ("002", "Running") in told
