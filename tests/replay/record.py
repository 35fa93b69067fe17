"""Records journals with the version at hand: `python tests/replay/record.py NAME …`.

Each story runs in the mock office. A story that has a recording already is left alone
unless it is named: recordings are kept, not renewed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from journals import HERE, write

import holdfast.demo
from holdfast import (
    AgentSession,
    ConversationEngine,
    EngineEventType,
    Holdfast,
    PlanInstance,
    SubTask,
)
from holdfast.demo.office import Office
from holdfast.model.rows import request_of
from holdfast.runs.handles import ConversationRun, LiveRun
from holdfast.testing.model_script import Fault, call, fail, say
from holdfast.testing.scripted_model import ScriptedModel

Story = Callable[[Holdfast, Office], Awaitable[LiveRun[Any]]]

PATIENCE = 60.0
WILL = {
    "id": "WZ001",
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}
TWO_COMPUTERS = """
plan_id: two_computers
name: A computer through a plan of its own
main_task_id: "001"
tasks: [{task_id: "001", name: Equipped}, {task_id: "002", name: Computer}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: apply_computer
    values: {name: 张三}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: human
    title: 确认 (confirm)
    message: 电脑收到了吗?
    success_output: {task_id: "001", status: Done}
"""


async def onboarding(app: Holdfast, office: Office) -> PlanInstance:
    return await _ended(await _onboard(app))


async def onboarding_resumed(app: Holdfast, office: Office) -> PlanInstance:
    """grant_access fails too often; a person resumes when it works again."""
    await office.configure_failures({"grant_access": 6})
    instance = await _ended(await _onboard(app))
    await office.reset_failures()
    await app.resume(instance.id)
    return await _ended(instance)


async def computer_paused(app: Holdfast, office: Office) -> PlanInstance:
    """The model is missing: a wrong answer is refused, a right one goes on."""
    instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
    await instance.wait_until_settled(PATIENCE)
    await app.planner_agent.continue_plan(instance.id, {"computer_model": "Abacus"})
    await app.planner_agent.continue_plan(instance.id, {"computer_model": "MacBook Pro"})
    return await _ended(instance)


async def computer_cancelled(app: Holdfast, office: Office) -> PlanInstance:
    instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
    await instance.wait_until_settled(PATIENCE)
    await app.cancel(instance.id, reason="he has one")
    return await _ended(instance)


async def onboarding_run_again(app: Holdfast, office: Office) -> PlanInstance:
    """The first step fails for good; a person edits a context and runs it all again."""
    await office.configure_failures({"create_employee_profile": 99})
    instance = await _ended(await _onboard(app))
    await office.reset_failures()
    await app.edit_context(instance.id, "002", {"employee_id": "WZ001"})
    await app.rerun_from(instance.id, "L001")
    return await _ended(instance)


async def sub_plan(app: Holdfast, office: Office) -> PlanInstance:
    """The child run asks for the model, the parent for a confirmation."""
    app.load_plan_text(TWO_COMPUTERS)
    instance = await app.plans.start_plan_by_prompt("equip", "two_computers")
    await instance.wait_until_settled(PATIENCE)
    (asked,) = await app.inbox()
    await app.answer(asked.question_id, data={"computer_model": "Dell XPS"})
    state = await app.engine.wait_for(instance.id, lambda now: bool(now.open_questions), PATIENCE)
    (confirmation,) = state.open_questions
    await app.answer(confirmation, option_id="confirm")
    return await _ended(instance)


async def _onboard(app: Holdfast) -> PlanInstance:
    return await app.plans.start_plan_by_prompt("入职", "onboard_will_zhang", values=WILL)


async def _ended(instance: PlanInstance) -> PlanInstance:
    await instance.wait_for_completion(PATIENCE)
    return instance


async def chat(app: Holdfast, office: Office) -> AgentSession:
    """One call is approved with other arguments, one refused, one lacks an argument; then more."""
    _staff(app)
    session = await app.sessions.open("clerk")
    await app.sessions.say(session.id, "Order a computer, mail Will Zhang and grant access.")
    await app.engine.wait_for(session.id, lambda now: len(now.open_questions) == 3, PATIENCE)
    for asked in await app.inbox():
        request = request_of(asked)
        match request.context["tool"]:
            case "apply_computer":
                await app.answer(asked.question_id, data={"computer_model": "Dell XPS"})
            case "send_email":
                changed = {"content": "您好，欢迎！"}
                await app.answer(asked.question_id, option_id="approve", data=changed)
            case _:
                await app.answer(asked.question_id, option_id="reject", feedback="not yet")
    await session.wait_for_completion(PATIENCE)
    await app.sessions.say(session.id, "Thank you.")
    await session.wait_for_completion(PATIENCE)
    return session


async def chat_mended(app: Holdfast, office: Office) -> AgentSession:
    """The model is down; a person resumes, and ends everything at the first question."""
    _staff(app, fail(400, "no"))
    session = await app.sessions.open("clerk")
    await app.sessions.say(session.id, "Order a computer.")
    await session.wait_for_completion(PATIENCE)
    await app.resume(session.id)
    await session.wait_until_settled(PATIENCE)
    state = await app.engine.wait_for(session.id, lambda now: bool(now.open_questions), PATIENCE)
    asked = next(
        one
        for one in sorted(state.open_questions)
        if any(option.option_id == "terminate" for option in state.questions[one].request.options)
    )
    await app.answer(asked, option_id="terminate")
    await session.wait_for_completion(PATIENCE)
    return session


async def conversation(app: Holdfast, office: Office) -> ConversationRun:
    """Three tasks, of which one is a tool of the office that lacks an argument; paused between."""
    engine = await ConversationEngine.open(app, "talk", llm=_Goals(), executors={"count": _count})
    answered = False
    async for event in engine.run("Equip 张三 and count what it took."):
        if event.event_type is EngineEventType.TASK_COMPLETED and not answered:
            engine.pause()
            engine.resume()
        if event.event_type is EngineEventType.INTERACTION:
            answered = True
            await app.answer(event.data["requestId"], data={"computer_model": "MacBook Pro"})
    return ConversationRun(app.engine, await app.engine.state("talk"))


class _Goals:
    async def decompose_goal(self, text: str) -> list[dict[str, Any]]:
        return [
            {"id": "look", "description": "see who it is", "priority": 1},
            {"id": "order", "type": "apply_computer", "args": {"employee": "张三"}},
            {"id": "sum", "type": "count", "dependencies": ["look", "order"]},
        ]


async def _count(task: SubTask, results: dict[str, Any]) -> dict[str, int]:
    return {"results": len(results)}


def _staff(app: Holdfast, *before: Fault) -> None:
    """A clerk who wants three calls at once, two of which need consent, and then is content."""
    wants = say(
        "At once.",
        call("apply_computer", employee="张三"),
        call("send_email", to="will.zhang@example.com", subject="入职", content="您好"),
        call("grant_access", employee_id="WZ001"),
    )
    script = ScriptedModel([*before, wants, "All is settled.", "You are welcome."])
    app.models.default_model = script
    app.agent(
        "clerk",
        name="Clerk",
        system_context="You run the office.",
        tools=["apply_computer", "send_email", "grant_access"],
        approval={"send_email": "require", "grant_access": "require"},
    )


STORIES: tuple[Story, ...] = (
    onboarding,
    onboarding_resumed,
    computer_paused,
    computer_cancelled,
    onboarding_run_again,
    sub_plan,
    chat,
    chat_mended,
    conversation,
)


async def record(story: Story, office: Office) -> None:
    await office.reset()
    app = Holdfast.in_memory(max_retry_count=1)
    demo = next(iter(holdfast.demo.__path__))
    app.load_tools(f"{demo}/tools.yaml", {"OFFICE_URL": office.url})
    app.load_plans(f"{demo}/plans")
    async with app:
        instance = await story(app, office)
        write(
            story.__name__,
            await app.engine.state(instance.id),
            await app.journal.read(instance.id),
        )


async def main(names: set[str]) -> None:
    async with Office.start() as office:
        for story in STORIES:
            kept = (HERE / f"{story.__name__}.jsonl").exists()
            if story.__name__ in names or not kept:
                await record(story, office)


if __name__ == "__main__":
    asyncio.run(main(set(sys.argv[1:])))
