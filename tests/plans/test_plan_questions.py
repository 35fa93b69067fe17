"""Questions that plans ask, as DESIGN §5 and its promises have them, and what answers do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from plan_texts import Tool, add, end, load, start, step

from holdfast import CallInfo, Holdfast, PlanInstance
from holdfast.core.plan.state import PlanState
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, PermanentError, TooLate
from holdfast.journal.port import QuestionQuery, QuestionRow
from holdfast.model.events import LateResultKept, ListenerStarted, QuestionWithdrawn
from holdfast.model.recorded import Event
from holdfast.model.rows import request_of
from holdfast.testing.clock import ManualClock
from holdfast.work.tools import PythonTool

OpenApp = Callable[..., Awaitable[Holdfast]]
Until = Callable[[Holdfast, PlanInstance, Callable[[PlanState], bool]], Awaitable[PlanState]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

BROKEN = RuntimeError("out of paper")
COLOUR = {"colour": {"type": "text"}}
BOTH = "002.status == Done && 003.status == Done"


@pytest.fixture
async def app(open_app: OpenApp) -> Holdfast:
    return await open_app(max_retry_count=0)


def main(instance: PlanInstance) -> dict[str, Any]:
    return instance.get_main_task_instance().context


def lacks(*names: str) -> dict[str, Any]:
    fields = {name: {"type": "text"} for name in names}
    return {"success": False, "reason": "missing_params", "required_params": fields}


async def only_question(app: Holdfast) -> QuestionRow:
    """As soon as it is open."""
    async with asyncio.timeout(60):
        while not (rows := await app.inbox()):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    (row,) = rows
    return row


async def status_of(app: Holdfast, question_id: str) -> str:
    row = await app.journal.question(question_id)
    assert row is not None
    return row.status


async def paused(app: Holdfast) -> PlanInstance:
    instance = await start(app)
    assert await instance.wait_until_settled() == "pause"
    return instance


async def give(app: Holdfast, instance: PlanInstance, **params: Any) -> dict[str, Any]:
    return await app.planner_agent.continue_plan(instance.id, params)


async def resume(app: Holdfast, instance: PlanInstance) -> bool:
    return await app.planner_agent.resume_plan(app.plans, instance.plan_id, instance.id)


class TestMissing:
    async def test_what_the_tools_schema_requires_is_asked_before_the_call(
        self, app: Holdfast
    ) -> None:
        seen: list[tuple[str, int]] = []

        async def order(model: str, amount: int) -> dict[str, Any]:
            seen.append((model, amount))
            return {}

        app.tool(order)
        load(app, step("A", "001", "002", tool="order", args={"model": "X1"}), end("002"))
        instance = await paused(app)
        assert seen == []
        assert instance.context["required_params"]["amount"]["type"] == "number"
        refused = await give(app, instance, amount="many")
        assert set(refused["fields"]) == {"amount"}
        await give(app, instance, amount=2)
        assert await instance.wait_for_completion() == "done"
        assert seen == [("X1", 2)]

    async def test_what_a_snippet_lacks_is_asked_and_handed_over(self, app: Holdfast) -> None:
        snippet = (
            "given = context['provided_params']\n"
            "if 'colour' in given:\n"
            "    result = {'context': {'colour': given['colour']}}\n"
            "else:\n"
            "    result = {'success': False, 'reason': 'missing_params',\n"
            "              'required_params': {'colour': {'type': 'text'}}}\n"
        )
        load(app, step("A", "001", "002", code_snippet=snippet), end("002"))
        instance = await paused(app)
        await give(app, instance, colour="red")
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"colour": "red"}

    async def test_several_rounds_keep_what_was_given_and_stay_in_one_firing(
        self, app: Holdfast
    ) -> None:
        work = Tool(lacks("x"), lacks("y"), {})
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await paused(app)
        await give(app, instance, x="1")
        assert instance.status == "pause"
        assert list(instance.context["required_params"]) == ["y"]
        await give(app, instance, y="2")
        assert await instance.wait_for_completion() == "done"
        assert work.calls == [{}, {"x": "1"}, {"x": "1", "y": "2"}]
        assert (await app.engine.state(instance.id)).steps["A"].firing == 1

    @pytest.mark.parametrize("order", [("colour", "size"), ("size", "colour")])
    async def test_two_that_wait_at_once_are_answered_in_either_order(
        self, app: Holdfast, until: Until, order: tuple[str, str]
    ) -> None:
        one, two = Tool(), Tool()
        add(app, one=one, two=two)
        load(
            app,
            step("A", "001", "002", form=COLOUR),
            step("B", "001", "003", form={"size": {"type": "text"}}),
            step("A2", "002", "004", tool="one"),
            step("B2", "003", "005", tool="two"),
            end("004,005", when="004.status == Done && 005.status == Done"),
        )
        instance = await paused(app)
        await until(app, instance, lambda state: len(state.open_questions) == 2)
        first, second = order
        await give(app, instance, **{first: "1"})
        tool = one if first == "colour" else two
        await tool.entered.wait()
        assert instance.status == "pause"
        assert list(instance.context["required_params"]) == [second]
        await give(app, instance, **{second: "2"})
        assert await instance.wait_for_completion() == "done"
        assert (one.count, two.count) == (1, 1)

    async def test_one_continue_may_answer_several_forms(self, app: Holdfast) -> None:
        load(
            app,
            step("A", "001", "002", form=COLOUR, context={"c": "{{result.colour}}"}),
            step("B", "001", "003", form={"size": {"type": "text"}}),
            end("002,003", when=BOTH),
        )
        instance = await paused(app)
        assert (await give(app, instance, colour="red", size="L"))["success"] is True
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"c": "red"}

    async def test_a_value_finds_its_form_among_a_thousand_others(
        self, app: Holdfast, until: Until
    ) -> None:
        forms = [
            step(f"L{n:04}", "001", "002", form={f"f{n:04}": {"type": "text"}})
            for n in range(1, 1002)
        ]
        load(app, *forms, end("002"))
        instance = await paused(app)
        await until(app, instance, lambda state: len(state.open_questions) == len(forms))
        last = (await app.inbox(QuestionQuery(newest=True, limit=1)))[0]
        [field] = request_of(last).form.fields
        assert (await give(app, instance, **{field.name: "x"}))["success"] is True
        assert await status_of(app, last.question_id) == "answered"

    async def test_one_wrong_value_answers_none_of_them(self, app: Holdfast) -> None:
        load(
            app,
            step("A", "001", "002", form=COLOUR),
            step("B", "001", "003", form={"size": {"type": "number"}}),
            end("002,003", when=BOTH),
        )
        instance = await paused(app)
        refused = await give(app, instance, colour="red", size="large")
        assert (refused["success"], set(refused["fields"])) == (False, {"size"})
        assert len(await app.inbox()) == 2

    async def test_a_name_that_two_forms_ask_for_is_refused_with_their_ids(
        self, app: Holdfast
    ) -> None:
        load(
            app,
            step("A", "001", "002", form=COLOUR),
            step("B", "001", "003", form=COLOUR),
            end("002,003", when=BOTH),
        )
        instance = await paused(app)
        refused = await give(app, instance, colour="red")
        ids = [row.question_id for row in await app.inbox()]
        assert refused["success"] is False
        assert all(one in refused["error"] for one in ids)
        for one in ids:
            await app.answer(one, data={"colour": "red"})
        assert await instance.wait_for_completion() == "done"

    async def test_other_branches_go_on_while_one_waits(self, app: Holdfast) -> None:
        other = Tool()
        add(app, other=other)
        load(
            app,
            step("A", "001", "002", form=COLOUR),
            step("B", "001", "003", tool="other"),
            end("002,003", when=BOTH),
        )
        instance = await start(app)
        await asyncio.wait_for(other.entered.wait(), 60)
        assert instance.status == "pause"
        assert len(await app.inbox()) == 1

    async def test_while_paused_hold_stops_other_branches_until_the_answer(
        self, app: Holdfast, until: Until
    ) -> None:
        first, later = Tool().hold(), Tool()
        add(app, first=first, later=later)
        load(
            app,
            step("A", "001", "002", form=COLOUR, priority=1),
            step("B", "001", "003", tool="first", priority=0),
            step("C", "003", "004", tool="later"),
            end("002,004", when="002.status == Done && 004.status == Done"),
            while_paused="hold",
        )
        instance = await paused(app)
        await first.entered.wait()
        first.let_go()
        held = await until(app, instance, lambda state: state.task("003").status == "Done")
        assert held.steps["C"].status == "ready"
        await give(app, instance, colour="red")
        assert await instance.wait_for_completion() == "done"
        assert later.count == 1

    async def test_an_answer_given_in_error_takes_effect_after_the_resume(
        self, app: Holdfast
    ) -> None:
        fails, after = Tool(BROKEN, {}), Tool()
        add(app, fails=fails, after=after)
        load(
            app,
            step("A", "001", "002", form=COLOUR),
            step("B", "001", "003", tool="fails"),
            step("C", "002", "004", tool="after"),
            end("003,004", when="003.status == Done && 004.status == Done"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "error"
        await app.answer((await only_question(app)).question_id, data={"colour": "red"})
        assert instance.status == "error"
        assert (await app.engine.state(instance.id)).steps["A"].status == "ready"
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        assert (fails.count, after.count) == (2, 1)


class TestHuman:
    async def test_a_form_becomes_the_listeners_result(self, app: Holdfast) -> None:
        human = step(
            "A",
            "001",
            "002",
            title="Which?",
            form=COLOUR,
            role="approver",
            context={"c": "{{result.colour}}"},
        )
        load(app, human, end("002"))
        instance = await paused(app)
        row = await only_question(app)
        assert (row.type, row.title, row.role) == ("USER_INPUT", "Which?", "approver")
        assert instance.get_task_instance("002").status == "Pending"
        await give(app, instance, colour="red")
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"c": "red"}

    async def test_a_confirmation_goes_on_when_confirmed(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", title="Really?"), end("002"))
        instance = await paused(app)
        row = await only_question(app)
        assert row.type == "USER_CONFIRMATION"
        assert [option.option_id for option in request_of(row).options] == ["confirm", "reject"]
        await app.answer(row.question_id, option_id="confirm", by="Will Zhang")
        assert await instance.wait_for_completion() == "done"

    async def test_a_rejected_confirmation_fails_without_retry(self, open_app: OpenApp) -> None:
        app = await open_app(max_retry_count=3)
        load(app, step("A", "001", "002", title="Really?"), end("002"))
        instance = await paused(app)
        row = await only_question(app)
        await app.answer(row.question_id, option_id="reject", feedback="too dear", by="Will Zhang")
        assert await instance.wait_for_completion() == "error"
        assert (
            main(instance)["error_info"]["message"] == "A failed: rejected by Will Zhang: too dear"
        )
        assert main(instance)["error_info"]["failed_retries"] == 0

    async def test_a_rejection_may_be_a_branch_of_the_plan(self, app: Holdfast) -> None:
        refused = {"task_id": "003", "status": "Done", "context": {"why": "{{result.error}}"}}
        load(
            app,
            step("A", "001", "002", title="Really?", failure_output=refused),
            step("B", "003", "001", code_snippet="result = {}"),
            end("002"),
        )
        instance = await paused(app)
        await app.answer(
            (await only_question(app)).question_id, option_id="reject", by="Will Zhang"
        )
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("003").context == {"why": "rejected by Will Zhang"}

    async def test_the_first_answer_wins_and_the_second_learns_of_it(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", title="Really?"), end("002"))
        instance = await paused(app)
        question_id = (await only_question(app)).question_id
        await app.answer(question_id, option_id="confirm", by="Will Zhang")
        version = instance.version
        await app.answer(question_id, option_id="confirm", by="Will Zhang")
        with pytest.raises(AlreadyAnswered) as lost:
            await app.answer(question_id, option_id="reject", by="local")
        assert (lost.value.by, lost.value.option_id) == ("Will Zhang", "confirm")
        await instance.wait_for_completion()
        assert instance.version >= version

    async def test_unknown_questions_options_and_fields_change_nothing(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", form=COLOUR), end("002"))
        instance = await paused(app)
        question_id, version = (await only_question(app)).question_id, instance.version
        with pytest.raises(NotFound):
            await app.answer("nowhere", data={"colour": "red"})
        with pytest.raises(InvalidAnswer, match="no option"):
            await app.answer(question_id, option_id="maybe")
        with pytest.raises(InvalidAnswer) as wrong:
            await app.answer(question_id, data={"size": "L"})
        assert set(wrong.value.fields) == {"size", "colour"}
        assert (instance.status, instance.version) == ("pause", version)


class TestApproval:
    async def asked(self, app: Holdfast, work: Tool) -> PlanInstance:
        add(app, work=work)
        args = {"x": "{001.context.who}"}
        load(app, step("A", "001", "002", tool="work", args=args, approval=True), end("002"))
        instance = await start(app, who="张三")
        assert await instance.wait_until_settled() == "pause"
        assert work.count == 0
        return instance

    async def test_approved_runs_exactly_what_was_shown_once(self, app: Holdfast) -> None:
        work = Tool()
        instance = await self.asked(app, work)
        row = await only_question(app)
        request = request_of(row)
        assert row.type == "TOOL_APPROVAL"
        assert (request.context["tool"], request.context["args"]) == ("work", {"x": "张三"})
        options = [option.option_id for option in request.options]
        assert options == ["approve", "retry", "reject", "terminate"]
        await app.edit_context(instance.id, "001", {"who": "somebody else"})
        await app.answer(row.question_id, option_id="approve", by="Will Zhang")
        assert await instance.wait_for_completion() == "done"
        assert work.calls == [{"x": "张三"}]

    async def test_rejected_never_runs(self, app: Holdfast) -> None:
        work = Tool()
        instance = await self.asked(app, work)
        question_id = (await only_question(app)).question_id
        with pytest.raises(InvalidAnswer):
            await app.answer(question_id, option_id="reject")
        await app.answer(question_id, option_id="reject", feedback="not him", by="Will Zhang")
        assert await instance.wait_for_completion() == "error"
        assert work.count == 0
        assert "not him" in main(instance)["error_info"]["message"]

    async def test_retry_asks_again_and_shows_the_feedback(self, app: Holdfast) -> None:
        work = Tool()
        instance = await self.asked(app, work)
        first = await only_question(app)
        await app.answer(first.question_id, option_id="retry", feedback="check the name")
        second = await only_question(app)
        assert second.question_id != first.question_id
        assert "check the name" in request_of(second).message
        assert (await instance.wait_until_settled(), work.count) == ("pause", 0)
        await app.answer(second.question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1

    async def test_terminate_cancels_the_instance(self, app: Holdfast) -> None:
        work = Tool()
        instance = await self.asked(app, work)
        await app.answer(
            (await only_question(app)).question_id, option_id="terminate", by="Will Zhang"
        )
        assert await instance.wait_for_completion() == "cancelled"
        assert work.count == 0
        assert (await app.engine.state(instance.id)).cancelled_by == "Will Zhang"

    async def test_a_tool_that_has_changed_since_is_asked_about_again(self, app: Holdfast) -> None:
        work = Tool()
        instance = await self.asked(app, work)
        first = await only_question(app)

        async def changed(call: CallInfo, x: Any = None) -> Any:
            return await work(call, x)

        app.tools._tools["work"] = PythonTool.from_function(changed, name="work")
        await app.answer(first.question_id, option_id="approve")
        second = await only_question(app)
        assert second.question_id != first.question_id
        assert work.count == 0
        await app.answer(second.question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1

    async def test_consent_covers_the_attempts_of_one_firing_and_nothing_more(
        self, app: Holdfast
    ) -> None:
        work = Tool(BROKEN, BROKEN, {})
        add(app, work=work)
        retry = {"attempts": 2, "initial": 0.001}
        load(app, step("A", "001", "002", tool="work", approval=True, retry=retry), end("002"))
        instance = await paused(app)
        await app.answer((await only_question(app)).question_id, option_id="approve")
        assert await instance.wait_for_completion() == "error"
        assert work.count == 2
        assert await resume(app, instance)
        assert await instance.wait_until_settled() == "pause"
        assert work.count == 2
        await app.answer((await only_question(app)).question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert work.count == 3

    async def test_a_tool_may_demand_approval_by_itself(self, app: Holdfast) -> None:
        work = Tool()
        app.tool(work, name="work", approval="require")
        load(app, step("A", "001", "002", tool="work"), end("002"))
        instance = await paused(app)
        await app.answer((await only_question(app)).question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1


class TestOutcomeUnknown:
    """A call that is not idempotent was sent, and no answer came within its time."""

    async def lost(self, app: Holdfast, work: Tool, **keys: Any) -> PlanInstance:
        app.tool(work.hold(), name="work")
        context = {"order": "{{result.order}}"}
        load(
            app,
            step("A", "001", "002", tool="work", timeout=0.01, context=context, **keys),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_until_settled() == "pause"
        return instance

    async def test_it_happened_with_the_fields_that_the_output_reads(
        self, app: Holdfast, until: Until, events_of: EventsOf
    ) -> None:
        work = Tool({"order": "PC-1"})
        instance = await self.lost(app, work)
        request = request_of(await only_question(app))
        options = [option.option_id for option in request.options]
        assert options == ["happened", "run_again", "stop"]
        assert [field.name for field in request.form.fields] == ["order"]
        with pytest.raises(InvalidAnswer):
            await app.answer(request.request_id, option_id="happened")
        await app.answer(request.request_id, option_id="happened", data={"order": "PC-7"})
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"order": "PC-7"}
        last = instance.version
        work.let_go()
        await until(app, instance, lambda state: state.version > last)
        assert isinstance((await events_of(app, instance.id))[-1], LateResultKept)
        assert work.count == 1

    async def test_run_it_again_keeps_the_key(self, app: Holdfast) -> None:
        work = Tool({"order": "PC-1"})
        instance = await self.lost(app, work)
        question = await only_question(app)
        await app.answer(question.question_id, option_id="run_again")
        work.let_go()
        assert await instance.wait_for_completion() == "done"
        assert work.count == 2
        assert len(set(work.keys)) == 1

    async def test_stop_cancels_the_run(self, app: Holdfast) -> None:
        work = Tool({"order": "PC-1"})
        instance = await self.lost(app, work)
        await app.answer((await only_question(app)).question_id, option_id="stop")
        assert await instance.wait_for_completion() == "cancelled"
        assert work.count == 1
        work.let_go()

    async def test_a_late_result_withdraws_the_open_question_and_counts(
        self, app: Holdfast, events_of: EventsOf
    ) -> None:
        work = Tool({"order": "PC-1"})
        instance = await self.lost(app, work)
        question_id = (await only_question(app)).question_id
        work.let_go()
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"order": "PC-1"}
        assert await status_of(app, question_id) == "withdrawn"
        assert [e for e in await events_of(app, instance.id) if isinstance(e, QuestionWithdrawn)]
        with pytest.raises(TooLate):
            await app.answer(question_id, option_id="run_again")
        assert work.count == 1

    async def test_a_late_failure_is_a_failure_and_is_retried(self, app: Holdfast) -> None:
        work = Tool(BROKEN, {"order": "PC-1"})
        instance = await self.lost(app, work, retry={"attempts": 2, "initial": 0.001})
        work.let_go()
        assert await instance.wait_for_completion() == "done"
        assert work.count == 2
        assert len(set(work.keys)) == 2

    async def test_an_idempotent_call_is_simply_made_again_under_its_key(
        self, app: Holdfast, events_of: EventsOf
    ) -> None:
        work = Tool(TimeoutError(), {"order": "PC-1"})
        app.tool(work, name="work", idempotent=True)
        load(
            app,
            step("A", "001", "002", tool="work", retry={"attempts": 2, "initial": 0.001}),
            end("002"),
        )
        instance = await start(app)
        assert await instance.wait_for_completion() == "done"
        assert len(set(work.keys)) == 1
        started = [e for e in await events_of(app, instance.id) if isinstance(e, ListenerStarted)]
        assert [e.attempt for e in started if e.listener_id == "A"] == [1, 2]


class TestDeadlines:
    async def asked(self, app: Holdfast, **keys: Any) -> tuple[PlanInstance, str]:
        load(app, step("A", "001", "002", form=COLOUR, timeout_seconds=60, **keys), end("002"))
        instance = await paused(app)
        return instance, (await only_question(app)).question_id

    async def test_in_time_is_in_time(self, open_app: OpenApp, clock: ManualClock) -> None:
        app = await open_app(clock=clock)
        instance, question_id = await self.asked(app)
        clock.advance(59)
        await app.answer(question_id, data={"colour": "red"})
        assert await instance.wait_for_completion() == "done"

    async def test_an_expired_question_fails_its_listener_without_retry(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        app = await open_app(clock=clock, max_retry_count=3)
        instance, question_id = await self.asked(app)
        clock.advance(60)
        assert await instance.wait_for_completion() == "error"
        assert "nobody answered in time" in main(instance)["error_info"]["message"]
        assert main(instance)["error_info"]["failed_retries"] == 0
        assert await status_of(app, question_id) == "expired"
        with pytest.raises(TooLate):
            await app.answer(question_id, data={"colour": "red"})

    async def test_expiry_may_be_a_branch_of_the_plan(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        app = await open_app(clock=clock)
        instance, _ = await self.asked(app, failure_output={"task_id": "002", "status": "Done"})
        clock.advance(60)
        assert await instance.wait_for_completion() == "done"

    async def test_a_resume_asks_anew_with_a_new_deadline(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        app = await open_app(clock=clock)
        instance, first = await self.asked(app)
        clock.advance(60)
        await instance.wait_for_completion()
        assert await resume(app, instance)
        row = await only_question(app)
        assert row.question_id != first
        assert row.deadline == clock.now() + 60
        await app.answer(row.question_id, data={"colour": "red"})
        assert await instance.wait_for_completion() == "done"

    async def test_late_is_late_even_before_the_timer_has_fired(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        app = await open_app(clock=clock)
        _, question_id = await self.asked(app)
        await app.engine._timers.stop()
        clock.advance(60)
        with pytest.raises(TooLate):
            await app.answer(question_id, data={"colour": "red"})
        opened = await app.inbox(QuestionQuery(status=frozenset({"open"})))
        assert [row.question_id for row in opened] == [question_id]

    async def test_waiting_for_a_person_uses_up_no_tool_time_out(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        app, work = await open_app(clock=clock), Tool()
        add(app, work=work)
        load(app, step("A", "001", "002", tool="work", approval=True, timeout=1), end("002"))
        instance = await paused(app)
        clock.advance(86_400)
        await app.answer((await only_question(app)).question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert work.count == 1


MODELS = {
    "model": {
        "type": "radio",
        "label": "Model",
        "options": [
            {"value": "mac", "label": "MacBook Pro", "price": "¥18,999"},
            {"value": "dell", "label": "Dell XPS", "price": "¥9,999"},
        ],
        "required": True,
    }
}


class TestRefusedValues:
    """The tool refuses what a person gave: how to be asked again is said, and then so it is."""

    @pytest.fixture
    async def instance(self, app: Holdfast) -> PlanInstance:
        async def order(model: str | None = None, size: float | None = None) -> dict[str, Any]:
            if model is None:
                return {"success": False, "reason": "missing_params", "required_params": MODELS}
            if model == "mac":
                raise PermanentError("sold out")
            if size is None:
                wanted = {"size": {"type": "number", "label": "Inches"}}
                return {"success": False, "reason": "missing_params", "required_params": wanted}
            return {"success": True}

        app.tool(order)
        load(app, step("A", "001", "002", tool="order"), end("002"))
        return await paused(app)

    async def test_a_further_round_carries_its_fields(
        self, app: Holdfast, instance: PlanInstance
    ) -> None:
        answer = await app.planner_agent.continue_plan(instance.id, {"model": "dell"})
        assert answer["status"] == "pause"
        assert answer["result"]["reason"] == "missing_params"
        assert answer["result"]["required_params"]["size"]["type"] == "number"
        assert answer["result"]["required_params"]["size"]["label"] == "Inches"
        assert answer["result"]["missing_params"] == ["size"]
        assert answer["result"]["required_params"] == instance.context["required_params"]

    async def test_the_answer_says_how_to_be_asked_again(
        self, app: Holdfast, instance: PlanInstance
    ) -> None:
        answer = await app.planner_agent.continue_plan(instance.id, {"model": "mac"})
        told = "sold out; resume the run: it asks again for model"
        assert (answer["status"], answer["result"]["error"]) == ("error", told)
        info = instance.get_main_task_instance().context["error_info"]
        assert info["message"] == f"A failed: {told}"

    async def test_another_value_before_that_says_so_too(
        self, app: Holdfast, instance: PlanInstance
    ) -> None:
        first = await app.planner_agent.continue_plan(instance.id, {"model": "mac"})
        again = await app.planner_agent.continue_plan(instance.id, {"model": "dell"})
        assert again == {
            "success": False,
            "error": "Plan instance is not in PAUSE status, current: error; "
            "resume the run: it asks again for model",
        }
        repeated = await app.planner_agent.continue_plan(instance.id, {"model": "mac"})
        assert repeated == first, "the same answer again changes nothing"

    async def test_after_the_resume_the_form_is_asked_anew(
        self, app: Holdfast, instance: PlanInstance, until: Until
    ) -> None:
        await app.planner_agent.continue_plan(instance.id, {"model": "mac"})
        assert await app.planner_agent.resume_plan(app.plans, "p", instance.id)
        await until(app, instance, lambda state: bool(state.open_questions))
        assert instance.status == "pause"
        assert instance.context["required_params"]["model"]["options"] == MODELS["model"]["options"]
        [question] = await app.inbox()
        assert request_of(question).message.endswith("Feedback on the last answer: sold out")
        await app.planner_agent.continue_plan(instance.id, {"model": "dell"})
        await app.planner_agent.continue_plan(instance.id, {"size": 13})
        assert await instance.wait_for_completion() == "done"
