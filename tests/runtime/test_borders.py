"""What comes from outside must never tear a run: odd words, odd overrides, odd plans."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from holdfast import Holdfast, PlanInstance, TaskDriver
from holdfast.core.plan.state import PlanState
from holdfast.errors import InvalidValue, PermanentError, PlanRejected
from holdfast.runtime.tracebacks import tracebacks_of

HEAD = 'plan_id: p\nmain_task_id: "001"\ntasks: [{task_id: "001"}, {task_id: "002"}]\nlisteners:\n'

ALONE = HEAD.replace(', {task_id: "002"}', "")


def plan(*listeners: str, head: str = HEAD) -> str:
    return head + "".join(f"- {one}\n" for one in listeners)


def tool(name: str, trigger: str, condition: str, output: str, extra: str = "") -> str:
    return (
        f"{{listener_id: L_{name}, trigger_task_id: {trigger!r}, trigger_condition: {condition!r},"
        f" listener_type: tool, tool: {name}, success_output: {output}{extra}}}"
    )


DONE_1 = '{task_id: "001", status: Done}'
DONE_2 = '{task_id: "002", status: Done}'
END = (
    '{listener_id: E, trigger_task_id: "001,002", listener_type: code,'
    ' trigger_condition: "001.status == Running && 002.status == Done",'
    f" code_snippet: 'result = {{}}', success_output: {DONE_1}}}"
)


async def until(app: Holdfast, instance: PlanInstance, questions: int) -> None:
    """Both tools lack something by now, and the run has heard it from both."""
    await app.engine.wait_for(instance.id, lambda state: len(state.open_questions) == questions, 30)


def test_approval_is_refused_where_nothing_would_ask_for_it() -> None:
    app = Holdfast.in_memory()

    @app.tool
    async def pay() -> dict[str, int]:
        return {}

    text = plan(
        '{listener_id: L1, trigger_task_id: "001", trigger_condition: Running, approval: true,'
        " listener_type: code, functions: [pay], code_snippet: 'result = pay()',"
        f" success_output: {DONE_1}}}"
    )
    with pytest.raises(PlanRejected, match="only a tool call can be approved"):
        app.load_plan_text(text)


async def test_a_failure_told_in_broken_letters_is_a_failure_all_the_same() -> None:
    app = Holdfast.in_memory(max_retry_count=0)

    @app.tool
    async def work() -> None:
        raise RuntimeError("file \udcff is missing")

    app.load_plan_text(plan(tool("work", "001", "Running", DONE_2, ", retry: 1"), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
        assert "file \\udcff is missing" in info["message"]


async def test_a_tool_that_returns_what_no_database_keeps_has_run_and_says_so() -> None:
    app = Holdfast.in_memory(max_retry_count=0)
    calls = []

    @app.tool
    async def work() -> dict[str, str]:
        calls.append(1)
        return {"order": "PC-1\0"}

    app.load_plan_text(plan(tool("work", "001", "Running", DONE_2, ", retry: 3"), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
        assert "ran, but what it returned cannot be kept" in info["message"]
        assert "U+0000" in info["message"]
        assert len(calls) == 1


async def test_a_failure_told_with_what_no_database_keeps_is_a_failure_all_the_same() -> None:
    app = Holdfast.in_memory(max_retry_count=0)

    @app.tool
    async def work() -> None:
        raise RuntimeError("file a\0b is missing")

    app.load_plan_text(plan(tool("work", "001", "Running", DONE_2, ", retry: 1"), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
        assert "file a\\x00b is missing" in info["message"]
        [traceback] = await tracebacks_of(app.journal, instance.id, app.engine.clock.now())
        assert "\0" not in traceback.text


async def test_words_that_the_journal_cannot_keep_are_refused_at_the_border() -> None:
    app = Holdfast.in_memory()
    ask = '{listener_id: L1, trigger_task_id: "001", trigger_condition: Running, '
    asks = f"{ask}listener_type: human, success_output: {DONE_2}}}"
    app.load_plan_text(plan(asks, END))
    async with app:
        with pytest.raises(InvalidValue, match="prompt"):
            await app.plans.start_plan_by_prompt("\ud800", "p")
        instance = await app.plans.start_plan_by_prompt("", "p")
        await instance.wait_until_settled(30)
        [question] = await app.inbox()
        for feedback in ("\ud800", "x" * 10_001):
            with pytest.raises(InvalidValue, match="feedback"):
                await app.answer(question.question_id, option_id="reject", feedback=feedback)
        with pytest.raises(InvalidValue, match="reason"):
            await app.cancel(instance.id, reason="\udfff")
        await app.answer(question.question_id, option_id="confirm")
        assert await instance.wait_for_completion(30) == "done"


async def test_two_forms_are_answered_in_one_call_even_while_everything_is_held() -> None:
    app = Holdfast.in_memory()
    both = asyncio.Barrier(2)
    rounds: list[str] = []

    async def lacking(name: str, value: str | None) -> dict[str, Any]:
        rounds.append(name)
        if value is None:
            await both.wait()
            needed = {name: {"type": "text"}}
            return {"success": False, "reason": "missing_params", "required_params": needed}
        return {"value": value}

    @app.tool
    async def first(a: str | None = None) -> dict[str, Any]:
        return await lacking("a", a)

    @app.tool
    async def second(b: str | None = None) -> dict[str, Any]:
        return await lacking("b", b)

    head = HEAD.replace("plan_id: p\n", "plan_id: p\nwhile_paused: hold\n").replace(
        '{task_id: "002"}', '{task_id: "002"}, {task_id: "003"}'
    )
    third = '{task_id: "003", status: Done}'
    end = END.replace("001,002", "002,003").replace("001.status == Running", "003.status == Done")
    app.load_plan_text(
        plan(
            tool("first", "001", "Running", DONE_2),
            tool("second", "001", "Running", third),
            end,
            head=head,
        )
    )
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        await until(app, instance, 2)
        nothing = await app.planner_agent.continue_plan(instance.id, {})
        assert nothing["fields"] == {"a": "needed", "b": "needed"}
        async with asyncio.timeout(30):
            result = await app.planner_agent.continue_plan(instance.id, {"a": "1", "b": "2"})
        assert result["success"] is True
        assert await instance.wait_for_completion(30) == "done"
        assert sorted(rounds) == ["a", "a", "b", "b"]


async def test_a_condition_on_the_running_main_task_holds_after_a_retry_too() -> None:
    app = Holdfast.in_memory()
    failures = [RuntimeError("once")]

    @app.tool
    async def work() -> dict[str, int]:
        if failures:
            raise failures.pop()
        return {}

    app.load_plan_text(plan(tool("work", "001", "Running", DONE_2, ", retry: 1"), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "done"
        listener = await app.plans.listener_repo.get_by_id(f"{instance.id}_L_work")
        assert listener is not None
        assert listener.listener_id == "L_work"


async def test_an_override_that_breaks_after_the_work_never_runs_the_work_again() -> None:
    calls: list[int] = []

    class Careless(TaskDriver):
        def determine_task_updates(self, *_: Any) -> list[dict[str, Any]]:
            raise KeyError("state")

    app = Holdfast.in_memory(driver=Careless)

    @app.tool
    async def pay() -> dict[str, int]:
        calls.append(1)
        return {}

    app.load_plan_text(plan(tool("pay", "001", "Running", DONE_2), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        await app.resume(instance.id)
        assert await instance.wait_for_completion(30) == "error"
    assert calls == [1]


async def test_what_an_override_puts_into_a_result_is_looked_at_again() -> None:
    calls: list[int] = []

    class Stamping(TaskDriver):
        async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
            made = await super().execute_listener(listener, context)
            made["result"]["at"] = {made["success"]}
            return made

    app = Holdfast.in_memory(driver=Stamping, max_retry_count=0)

    @app.tool
    async def pay() -> dict[str, int]:
        calls.append(1)
        return {}

    app.load_plan_text(plan(tool("pay", "001", "Running", DONE_2), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
    assert "$.at: set is not JSON: make it a list" in info["message"]
    assert calls == [1]


async def test_what_is_set_on_our_own_driver_is_looked_at_again_too() -> None:
    app = Holdfast.in_memory(max_retry_count=0)
    driver = app.task_driver
    execute = driver.execute_listener

    async def stamped(listener: Any, context: Any) -> dict[str, Any]:
        made = await execute(listener, context)
        made["result"]["at"] = {1}
        return made

    driver.execute_listener = stamped  # type: ignore[method-assign]

    @app.tool
    async def pay() -> dict[str, int]:
        return {}

    app.load_plan_text(plan(tool("pay", "001", "Running", DONE_2), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
    assert "$.at: set is not JSON: make it a list" in info["message"]


async def test_a_result_that_cannot_be_kept_fails_the_work_and_says_whose_it_was() -> None:
    calls: list[int] = []
    app = Holdfast.in_memory(max_retry_count=0)

    @app.tool
    async def pay() -> Any:
        calls.append(1)
        return {"when": {1}}

    app.load_plan_text(plan(tool("pay", "001", "Running", DONE_2), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
    assert "pay ran, but what it returned cannot be kept: $.when" in info["message"]
    assert calls == [1]


async def test_an_update_grown_beyond_the_bounds_is_refused_and_the_work_is_kept() -> None:
    app = Holdfast.in_memory(max_retry_count=0)
    calls: list[int] = []

    @app.tool
    async def fetch() -> dict[str, str]:
        calls.append(1)
        return {"text": "x" * 600_000}

    twice = '{task_id: "002", status: Done, context: {a: "{{result.text}}", b: "{{result}}"}}'
    app.load_plan_text(plan(tool("fetch", "001", "Running", twice), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "error"
        info = instance.get_main_task_instance().context["error_info"]
    assert "task_updates: $.b.text: larger than 1,000,000 bytes" in info["message"]
    assert calls == [1]


async def test_skipping_one_firing_keeps_the_other_triggers_and_an_edit_fires_nothing_twice() -> (
    None
):
    app = Holdfast.in_memory(max_retry_count=0)
    mails: list[str] = []
    go = asyncio.Event()

    @app.tool
    async def first() -> dict[str, int]:
        return {}

    @app.tool
    async def second() -> dict[str, int]:
        return {}

    @app.tool
    async def mail() -> dict[str, int]:
        mails.append("mail")
        if len(mails) == 1:
            await go.wait()
            raise PermanentError("no such address")
        return {}

    ask = (
        '{listener_id: H, trigger_task_id: "001", trigger_condition: Running, listener_type: human,'
        ' success_output: {task_id: "001", status: Done}}'
    )
    noted = '{task_id: "003", status: Done}'
    head = HEAD.replace('{task_id: "002"}', '{task_id: "002"}, {task_id: "003"}')
    app.load_plan_text(
        plan(
            tool("first", "001", "Running", DONE_2),
            tool("second", "001", "Running", DONE_2),
            tool("mail", "002", "Done", noted, ", repeat: true"),
            ask,
            head=head,
        )
    )
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")

        def both_triggered(state: PlanState) -> bool:
            return "L_mail" in state.steps and state.steps["L_mail"].pending == 1

        await app.engine.wait_for(instance.id, both_triggered, 30)
        go.set()
        assert await instance.wait_for_completion(30) == "error"
        await app.skip(instance.id, "L_mail")
        await app.resume(instance.id)
        await app.engine.wait_for(instance.id, lambda state: state.in_flight == 0, 30)
        await app.edit_context(instance.id, "002", {"note": "a typo"})
        [question] = await app.inbox()
        await app.answer(question.question_id, option_id="confirm")
        assert await instance.wait_for_completion(30) == "done"
    assert mails == ["mail", "mail"]


async def test_a_snippet_sees_one_clock_and_one_chance_in_all_its_passes() -> None:
    app = Holdfast.in_memory()
    seen: list[str] = []
    failures = [RuntimeError("once")]

    @app.tool
    async def note(word: str) -> dict[str, int]:
        seen.append(word)
        return {}

    @app.tool
    async def check_twice() -> dict[str, int]:
        if failures:
            raise failures.pop()
        return {}

    snippet = (
        "import datetime, random\\n"
        "note(word=str(datetime.datetime.now()) + str(random.random()))\\n"
        "check_twice()\\n"
        "result = {}"
    )
    app.load_plan_text(
        plan(
            '{listener_id: L1, trigger_task_id: "001", trigger_condition: Running,'
            " listener_type: code, functions: [note, check_twice], retry: {initial: 0.001},"
            f' code_snippet: "{snippet}", success_output: {DONE_2}}}',
            END,
        )
    )
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "done"
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ({"x": {"validation": {"pattern": "(?:.{0,90}){0,90}[yz]$"}}}, "steps"),
        ({f"x{n}": {} for n in range(201)}, "at most 200 fields"),
        ([f"x{n}" for n in range(201)], "at most 200 fields"),
        ({"x": {"options": [str(n) for n in range(1_001)]}}, "at most 1,000 options"),
    ],
)
async def test_a_form_that_a_tool_asks_for_beyond_the_bounds_fails_the_tool(
    planted: Any, told: str
) -> None:
    app = Holdfast.in_memory()
    calls: list[None] = []

    @app.tool(idempotent=True)
    async def order() -> dict[str, Any]:
        calls.append(None)
        return {"success": False, "reason": "missing_params", "required_params": planted}

    app.load_plan_text(plan(tool("order", "001", "Running", DONE_2), END))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_until_settled() == "error"
        assert told in str(instance.get_main_task_instance().context)
        assert await app.inbox() == []
    assert len(calls) == 1


async def test_what_a_tool_does_to_its_arguments_stays_with_it() -> None:
    """They are values of the run: what is told next, and what is replayed, does not change."""
    app = Holdfast.in_memory()
    given: list[Any] = []

    @app.tool
    async def fetch() -> dict[str, list[int]]:
        return {"rows": [1, 2]}

    @app.tool
    async def spoil(rows: Any, also: Any) -> dict[str, bool]:
        given.append((list(rows), also.copy()))
        rows.append(99)
        also.clear()
        return {"success": True}

    kept = '{task_id: "002", status: Done, context: {rows: "{{result.rows}}"}}'
    args = ', args: {rows: "{002.context.rows}", also: {a: [1]}}'
    app.load_plan_text(
        plan(
            tool("fetch", "001", "Running", kept),
            tool("spoil", "002", "Done", '{task_id: "003", status: Done}', args),
            tool("spoil", "003", "Done", DONE_1, args).replace("L_spoil", "L_again"),
            head=HEAD.replace("}]", '}, {task_id: "003"}]'),
        )
    )
    async with app:
        for _ in range(2):
            instance = await app.plans.start_plan_by_prompt("", "p")
            assert await instance.wait_for_completion(30) == "done"
            state = await app.engine.state(instance.id)
            assert isinstance(state, PlanState)
            assert state.task("002").context == {"rows": [1, 2]}
    assert given == [([1, 2], {"a": [1]})] * 4


async def test_a_driver_that_changes_an_answer_changes_no_record_of_it() -> None:
    class Careless(TaskDriver):
        def determine_task_updates(
            self, listener: Any, execution_result: Any, context: Any = None
        ) -> list[dict[str, Any]]:
            execution_result["result"].clear()
            return super().determine_task_updates(listener, execution_result, context)

    app = Holdfast.in_memory(driver=Careless)
    ask = "{listener_id: L1, trigger_task_id: '001', trigger_condition: Running,"
    form = " listener_type: human, title: Who, form: {name: {type: text, label: Name}},"
    app.load_plan_text(plan(f"{ask}{form} success_output: {DONE_1}}}", head=ALONE))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        await until(app, instance, 1)
        [question] = await app.inbox()
        await app.answer(question.question_id, data={"name": "Will Zhang"})
        assert await instance.wait_for_completion(30) == "done"
        records = await app.journal.read(instance.id)
        [answered] = [one.payload for one in records if one.type == "QuestionAnswered"]
        assert json.loads(answered)["values"] == {"name": "Will Zhang"}


async def test_a_reader_changes_nothing_of_a_run() -> None:
    app = Holdfast.in_memory()
    end = END.replace("001,002", "001").replace(" && 002.status == Done", "")
    app.load_plan_text(plan(end, head=ALONE))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "p")
        assert await instance.wait_for_completion(30) == "done"
        for shown in (instance.verification, instance.context, instance.result):
            assert isinstance(shown, dict)
            shown["note"] = ["mine"]
        assert "note" not in {**instance.verification, **instance.context, **instance.result}
