"""What a run is about and what came of it: on its page, in its cards, never a secret."""

from __future__ import annotations

from console_plans import Office
from console_scene import Backend, Window
from playwright.async_api import expect
from run_scene import chat

from holdfast import Holdfast
from holdfast.errors import TransientError
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_plan
from holdfast.views.about import LONGEST_WORDS, NamedText, about
from holdfast.views.reader import RunReader

VISA = """
plan_id: visa
name: A visa
main_task_id: "001"
inputs:
  name: {type: text, label: 姓名}
  pin: {type: secret, label: PIN}
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: human,
     title: Which country?, form: {country: {type: text}},
     success_output: {task_id: "002", status: Done}}
  - {listener_id: L002, trigger_task_id: "002", trigger_condition: Done, listener_type: code,
     code_snippet: "result = {'context': {'visa': 'V-7', 'pages': [1, 2]}}",
     success_output: {task_id: "001", status: Done}}
"""
FLAKY = """
plan_id: flaky
name: A badge
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: tool,
     tool: flaky, retry: {attempts: 1, initial: 0},
     success_output: {task_id: "001", status: Done, context: {badge: "{{result.badge}}"}}}
"""
GIVEN = {"name": "张三 <b>", "pin": "0000-secret"}


async def begun(app: Holdfast, prompt: str = "为张三办签证") -> str:
    app.load_plan_text(VISA)
    instance = await app.plans.start_plan_by_prompt(prompt, "visa", values=GIVEN)
    assert await instance.wait_until_settled() == "pause"
    return instance.id


async def test_a_plan_tells_its_prompt_inputs_and_result_and_no_secret() -> None:
    async with Holdfast.in_memory() as app:
        run_id = await begun(app)
        told = about(await RunReader.of(app).at(run_id))
        assert told.words == NamedText("", "为张三办签证")
        assert told.inputs == (NamedText("姓名", "张三 <b>"),)
        assert told.results == ()
        await app.planner_agent.continue_plan(run_id, {"country": "Japan"})
        await app.engine.wait_for(run_id, lambda one: one.status is RunStatus.DONE)
        told = about(await RunReader.of(app).at(run_id))
    assert told.results == (NamedText("visa", "V-7"), NamedText("pages", "[1, 2]"))


async def test_what_the_planner_counts_is_no_result() -> None:
    failing = [True]

    def flaky() -> dict[str, str]:
        if failing.pop() if failing else False:
            raise TransientError("not yet")
        return {"badge": "B-7"}

    async with Holdfast.in_memory() as app:
        app.tool(flaky)
        app.load_plan_text(FLAKY)
        instance = await app.plans.start_plan_by_prompt("a badge", "flaky")
        state = await app.engine.wait_for(instance.id, lambda one: one.status is RunStatus.DONE)
        told = about(await RunReader.of(app).at(instance.id))
    assert "retry_count" in as_plan(state).main_task.context
    assert told.results == (NamedText("badge", "B-7"),)


async def test_long_words_are_bounded_and_folded() -> None:
    async with Holdfast.in_memory() as app:
        run_id = await begun(app, "长" * (LONGEST_WORDS + 50))
        words = about(await RunReader.of(app).at(run_id)).words
    assert words is not None
    assert (len(words.text), words.long) == (LONGEST_WORDS + 1, True)


async def test_the_page_and_the_card_say_it_as_text(backend: Backend, admin: Window) -> None:
    app = backend.app
    run_id = await begun(app)
    [row] = [one for one in await app.inbox() if one.run_id == run_id]
    page = await admin.live(f"/console/runs/{run_id}")
    await expect(page.locator("#about")).to_contain_text("为张三办签证")
    await expect(page.locator("#about dl")).to_have_text("姓名张三 <b>")
    card = page.locator(f"#q-{row.question_id}")
    await card.get_by_text("What the run is about").click()
    await expect(card.locator(".about")).to_contain_text("张三 <b>")
    assert "0000-secret" not in await page.content()
    await app.answer(row.question_id, data={"country": "Japan"})
    await expect(page.locator("#result")).to_contain_text("V-7")


async def test_a_chat_says_what_was_asked_first_and_what_was_answered(
    backend: Backend, admin: Window
) -> None:
    assert isinstance(backend.app, Office)
    run_id = await chat(backend)
    told = about(await RunReader.of(backend.app).at(run_id))
    assert told.words is not None
    page = await admin.live(f"/console/runs/{run_id}")
    await expect(page.locator("#about")).to_contain_text(told.words.text[:20])
