"""A value that a tool has refused in a run is not proposed for the same argument again, unless
something else was done about it."""

from __future__ import annotations

from typing import Any

import pytest
from patch_cases import (
    WHO,
    brought,
    failed,
    inserted,
    set_args,
    verdict_on,
)
from repair_scenes import proposal
from scenes import assert_sound

from holdfast import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.errors import PermanentError
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.model.rows import request_of
from holdfast.model.values import JsonObject
from holdfast.repair.refusals import Refusal, refusals_of
from holdfast.runs.handles import PlanInstance

DESK = """
plan_id: desk
name: A desk
main_task_id: "001"
inputs: {staff_id: {}}
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: DESK
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: assign_desk
    args: {staff_id: "{001.context.staff_id}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: END
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""


class NotRegistered(PermanentError):
    code = "NOT_FOUND"


def office(calls: list[str]) -> Holdfast:
    """Desks are for those who are registered, and nobody is."""
    app = Holdfast.in_memory(max_retry_count=0)

    @app.tool(idempotent=True)
    async def assign_desk(staff_id: str) -> dict[str, str]:
        calls.append(staff_id)
        raise NotRegistered(f"staff {staff_id} is not registered")

    app.load_plan_text(DESK)
    return app


async def another_refused(app: Holdfast, calls: list[str]) -> PlanInstance:
    """S9 was refused; then a person gave S999, and that was refused as well."""
    run = await app.plans.start_plan_by_prompt("", "desk", values={"staff_id": "S9"})
    assert await run.wait_for_completion(30) == "error"
    await app.planner_agent.repairer.propose(run.id, [desk("S999")], by="will")
    asked = await proposal(app, run.id)
    await app.answer(asked.question_id, option_id="apply", by="anna")
    assert await run.wait_for_completion(30) == "error"
    assert calls == ["S9", "S999"]
    return run


def desk(staff_id: str) -> JsonObject:
    return {"op": "set_args", "listener_id": "DESK", "set": {"staff_id": staff_id}}


def shown(request: InteractionRequest) -> list[str]:
    return [str(one) for one in request.context["words"]]


async def test_what_was_refused_first_is_no_remedy_for_what_is_refused_now() -> None:
    calls: list[str] = []
    async with office(calls) as app:
        run = await another_refused(app, calls)
        request = request_of(await proposal(app, run.id))
        assert request.context["source"] == "rule:another_value"
        assert shown(request) == ["before DESK a person is asked for staff_id"]
        await assert_sound(app, run.id)


async def test_a_person_may_try_it_once_more_and_is_told() -> None:
    calls: list[str] = []
    async with office(calls) as app:
        run = await another_refused(app, calls)
        found = await app.planner_agent.repairer.proposal(run.id, [desk("S9")], by="will")
        assert found.verdict.problems == ()
        assert 'assign_desk has refused staff_id = "S9" in this run' in found.verdict.warnings


def refusal(field: str = "", message: str = "no", **args: Any) -> Refusal:
    failure = Failure(FailureKind.PERMANENT, message, cause=Cause.ARGUMENT, field=field)
    return Refusal("order", {"employee": "Will Zhang", "model": " X1 ", **args}, failure)


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed()


NO_MODEL = 'order has refused model = "X9" in this run'
ALL = 'order has refused model = "X9", size = "small" in this run'


class TestWhatWouldBeRefusedAgain:
    @pytest.mark.parametrize(
        ("given", "refused", "told"),
        [
            ({"model": "X9"}, refusal("body.model", model="X9"), NO_MODEL),
            ({"model": "X9"}, refusal("model", model="X9", employee="Li Lei"), NO_MODEL),
            ({"model": "X9"}, refusal(message="there is no X9", model="X9"), NO_MODEL),
            ({"model": "X9"}, refusal(model="X9"), NO_MODEL),
            ({"model": "X9", "size": "small"}, refusal(model="X9", size="small"), ALL),
        ],
        ids=["by its field", "whoever it is for", "cited", "the same call", "two of them"],
    )
    @pytest.mark.parametrize("by", ["rule:other_task", "lesson:l", "model:m", "hook:H"])
    def test_is_refused_to_all_but_people(
        self, given: JsonObject, refused: Refusal, told: str, by: str, state: PlanState
    ) -> None:
        verdict = verdict_on(state, set_args(**given), by=by, refused=[refused])
        assert verdict.problems == (f"operations[0] (set_args): {told}",)
        by_person = verdict_on(state, set_args(**given), by="person", refused=[refused])
        assert (by_person.problems, by_person.warnings[0]) == ((), told)

    @pytest.mark.parametrize(
        ("operation", "refused"),
        [
            (set_args(model="X9"), refusal("model", model="X8")),
            (set_args(model="X9"), refusal("employee", model="X9")),
            (set_args(model="X9"), refusal(model="X9", size="small")),
            (set_args(model="X9", size="small"), refusal(model="X9")),
            (set_args(count=1), refusal("count", count=True)),
            (set_args(model="{002.context.nothing}"), refusal("model", model="X9")),
            (set_args(model="X9"), Refusal("order_again", {"model": "X9"}, refusal().failure)),
            (set_args("L3", to="X9"), refusal("to", to="X9")),
            (
                {"op": "set_output", "listener_id": "L2", "context": {"order": "x"}},
                refusal("model", model=" X1 "),
            ),
            (
                {"op": "set_output", "listener_id": "L6", "context": {"order": "x"}},
                refusal("model", model=" X1 "),
            ),
        ],
        ids=[
            *("another value", "another argument", "less", "more", "true is not 1", "not known"),
            *("another tool", "another listener", "no argument", "no call"),
        ],
    )
    def test_is_nothing_else(
        self, operation: JsonObject, refused: Refusal, state: PlanState
    ) -> None:
        with_it = verdict_on(state, operation, by="model:m", refused=[refused])
        assert with_it == verdict_on(state, operation, by="model:m")

    def test_is_not_known_where_something_is_done_before(self, state: PlanState) -> None:
        refused = [refusal("model", model="X9")]
        for new in (
            inserted("query_badge", args={"name": WHO}),
            brought({"listener_type": "tool", "tool": "query_badge", "args": {"name": WHO}}),
        ):
            verdict = verdict_on(state, new, set_args(model="X9"), by="model:m", refused=refused)
            assert verdict.problems == ()


SENT = {"employee": "Will Zhang", "model": " X1 "}
WHY = Failure(FailureKind.PERMANENT, "no such model", cause=Cause.PRECONDITION)


def started(args: Any = SENT, listener_id: str = "L2") -> Event:
    return e.ListenerStarted(listener_id, 1, args=args)


def patch_event(*operations: JsonObject) -> Event:
    return e.PlanPatched("p1", "case_1", "base", "digest", operations)


class TestWhatARunHasRefused:
    def test_is_what_was_sent_and_why_it_failed(self, state: PlanState) -> None:
        gave_up = e.ListenerFailed("L2", 1, WHY)
        tried = e.AttemptFailed("L2", 1, WHY, 0.0)
        wanted = Refusal("order", SENT, WHY)
        assert refusals_of(state, [started(), gave_up]) == (wanted,)
        assert refusals_of(state, [started(), tried, started(), gave_up]) == (wanted, wanted)

    def test_is_nothing_that_may_succeed_by_itself_or_was_never_sent(
        self, state: PlanState
    ) -> None:
        down = Failure(FailureKind.TRANSIENT, "down", cause=Cause.CONFLICT)
        expired = Failure(FailureKind.PERMANENT, "no", cause=Cause.CREDENTIALS)
        for failure in (down, expired):
            assert refusals_of(state, [started(), e.ListenerFailed("L2", 1, failure)]) == ()
        assert refusals_of(state, [e.ListenerFailed("L2", 1, WHY)]) == ()
        unsent = [started(), e.ListenerFailed("L2", 1, down), e.ListenerFailed("L2", 2, WHY)]
        assert refusals_of(state, unsent) == ()
        for other in (started(None), started(listener_id="L6"), started(listener_id="gone")):
            listener_id = other.listener_id  # type: ignore[union-attr]
            assert refusals_of(state, [other, e.ListenerFailed(listener_id, 1, WHY)]) == ()

    def test_is_forgotten_where_a_patch_has_done_more_than_give_other_values(
        self, state: PlanState
    ) -> None:
        told = [started(), e.ListenerFailed("L2", 1, WHY)]
        assert refusals_of(state, [*told, patch_event(set_args(model="X9"))]) != ()
        assert refusals_of(state, [*told, patch_event(inserted("query_badge"))]) == ()
        use = {"op": "use_tool", "listener_id": "L2", "tool": "order_again", "args": {}}
        assert refusals_of(state, [*told, patch_event(set_args(model="X9"), use)]) == ()
