"""A tool is swapped between the decision and the call: the executor runs nothing else instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from session_scenes import asked, begin, ended, history, of_kind

from holdfast.app import Holdfast
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.tools import PythonTool

PLAN = """
plan_id: payment
name: A payment
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: pay
    args: {amount: 5}
    success_output: {task_id: "001", status: Done}
"""


def pay_once(seen: Seen) -> Entry:
    return "Paid, or not." if seen.results else call("pay", amount=5)


class Swapping:
    """Does something at the last point before the n-th effect."""

    def __init__(self, nth: int, swap: Callable[[], None]) -> None:
        self._left = nth
        self._swap = swap

    def reach(self, point: str) -> None:
        self._left -= point == "effect.before"
        if point == "effect.before" and self._left == 0:
            self._swap()


class Till:
    """A tool that becomes another one just before the `nth` effect would begin."""

    def __init__(self, before: str, after: str, nth: int) -> None:
        self.ran: list[str] = []
        self.after = after
        self.app = Holdfast.in_memory(
            model=ScriptedModel(pay_once), faults=Swapping(nth, self.swap), max_retry_count=0
        )
        self.app.tool(self.pay, name="pay", approval=before)
        self.app.agent("clerk", tools=["pay"])
        self.app.load_plan_text(PLAN)

    async def pay(self, amount: int) -> dict[str, Any]:
        self.ran.append("as it was")
        return {"paid": amount}

    async def wire(self, amount: int) -> dict[str, Any]:
        self.ran.append("as it is now")
        return {"wired": amount}

    def swap(self) -> None:
        tool = PythonTool.from_function(self.wire, name="pay", approval=self.after)
        self.app.tools._tools["pay"] = tool


SWAPS = [("require", "require", "consent to pay does not fit"), ("auto", "disabled", "is disabled")]


@pytest.mark.parametrize(("before", "after", "message"), SWAPS)
async def test_a_session_runs_nothing_else_instead(before: str, after: str, message: str) -> None:
    till = Till(before, after, nth=2)  # the model is asked first
    async with till.app as app:
        session = await begin(app)
        if before == "require":
            (request,) = await asked(app, session.id)
            await app.answer(request.request_id, option_id="approve")
        await ended(session)
        events = await history(app, session.id)
    assert till.ran == []
    assert len(of_kind(events, r.CallStarted)) == 1
    (told,) = of_kind(events, r.StepEnded)
    assert told.how == "failed"
    assert message in told.content["error"]


@pytest.mark.parametrize(("before", "after", "message"), SWAPS)
async def test_a_plan_runs_nothing_else_instead(before: str, after: str, message: str) -> None:
    till = Till(before, after, nth=1)
    async with till.app as app:
        instance = await app.plans.start_plan_by_prompt("", "payment")
        if before == "require":
            assert await instance.wait_until_settled(20) == "pause"
            (row,) = await app.inbox()
            await app.answer(row.question_id, option_id="approve")
        assert await instance.wait_for_completion(20) == "error"
        events = await history(app, instance.id)
    assert till.ran == []
    failures = of_kind(events, e.ListenerFailed)
    assert failures
    assert all(message in one.failure.message for one in failures)
