"""What the other runs of a tree have called, as a repair in one of them must know it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from holdfast import Holdfast, PlanInstance
from holdfast.errors import PermanentError
from holdfast.model.message import ModelSaid
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_plan
from holdfast.runtime.relatives import called_elsewhere, called_in_tree
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]
Listed = dict[str, Any]

TOOLS = ("pay", "mail", "badge")


def calls(listener_id: str, trigger: str, target: str, tool: str) -> Listed:
    return does(listener_id, trigger, target, listener_type="tool", tool=tool)


def does(listener_id: str, trigger: str, target: str, **action: Any) -> Listed:
    return {
        "listener_id": listener_id,
        "trigger_task_id": trigger,
        "trigger_condition": "Running" if trigger == "001" else "Done",
        "retry": 1,
        "success_output": {"task_id": target, "status": "Done"},
        **action,
    }


def below(listener_id: str, trigger: str, target: str, plan_id: str) -> Listed:
    return does(listener_id, trigger, target, listener_type="plan", plan_id=plan_id)


def asks(listener_id: str, trigger: str, target: str) -> Listed:
    return does(listener_id, trigger, target, listener_type="human", form={"colour": {}})


def load(app: Holdfast, plan_id: str, *listeners: Listed) -> None:
    named = dict.fromkeys(["001", *(one["success_output"]["task_id"] for one in listeners)])
    tasks = [{"task_id": one} for one in named]
    plan = {"plan_id": plan_id, "main_task_id": "001", "tasks": tasks}
    app.load_plan_text(json.dumps({**plan, "listeners": listeners}))


@pytest.fixture
async def app(open_app: OpenApp) -> Holdfast:
    return await furnished(open_app)


async def furnished(open_app: OpenApp, **options: Any) -> Holdfast:
    app = await open_app(max_retry_count=0, **options)

    async def done() -> dict[str, Any]:
        return {}

    async def fails() -> None:
        raise PermanentError("not today")

    for name in TOOLS:
        app.tool(done, name=name)
    app.tool(fails, name="fails")
    return app


async def started(app: Holdfast, plan_id: str = "p", status: str = "pause") -> PlanInstance:
    instance = await app.plans.start_plan_by_prompt("", plan_id)
    assert await instance.wait_until_settled() == status
    return instance


async def elsewhere(app: Holdfast, run_id: str) -> set[str]:
    return set(await called_elsewhere(app.engine, as_plan(await app.engine.state(run_id))))


async def in_tree(app: Holdfast, run_id: str) -> set[str]:
    return set(await called_in_tree(app.engine, as_plan(await app.engine.state(run_id))))


async def test_a_run_by_itself_knows_its_own_calls_only(app: Holdfast) -> None:
    load(app, "p", calls("A", "001", "002", "pay"), asks("B", "002", "001"))
    instance = await started(app)
    assert await elsewhere(app, instance.id) == set()
    assert await in_tree(app, instance.id) == {"pay"}


class TestATreeOfRuns:
    """The run pays, a run below it sends a mail, and one below that hands out a badge."""

    @pytest.fixture
    async def tree(self, app: Holdfast) -> str:
        load(app, "lowest", calls("C", "001", "002", "badge"), asks("H", "002", "001"))
        load(app, "middle", calls("B", "001", "002", "mail"), below("L", "002", "001", "lowest"))
        load(app, "p", calls("A", "001", "002", "pay"), below("M", "002", "001", "middle"))
        return (await started(app)).id

    @pytest.mark.parametrize(
        ("place", "others"),
        [
            ("", {"mail", "badge"}),
            (".M.1", {"pay", "badge"}),
            (".M.1.L.1", {"pay", "mail"}),
        ],
    )
    async def test_each_knows_of_those_above_and_below_and_not_of_itself(
        self, app: Holdfast, tree: str, place: str, others: set[str]
    ) -> None:
        assert await elsewhere(app, tree + place) == others
        assert await in_tree(app, tree + place) == {"pay", "mail", "badge"}

    async def test_another_tree_is_no_concern_of_it(self, app: Holdfast, tree: str) -> None:
        load(app, "alone", asks("H", "001", "001"))
        other = await started(app, "alone")
        assert await in_tree(app, other.id) == set()

    async def test_a_run_that_was_replaced_by_another_counts_still(self, app: Holdfast) -> None:
        """It was cancelled by itself, and the resume began another one."""
        load(app, "child", calls("B", "001", "002", "mail"), asks("H", "002", "001"))
        load(app, "p", below("M", "001", "002", "child"), calls("F", "002", "001", "fails"))
        instance = await started(app)
        await app.cancel(f"{instance.id}.M.1")
        await app.engine.wait_for_status(instance.id, frozenset({RunStatus.ERROR}))
        assert await elsewhere(app, instance.id) == {"mail"}
        await app.resume(instance.id)
        assert await instance.wait_until_settled() == "pause"
        assert await elsewhere(app, f"{instance.id}.M.2") == {"mail"}


async def test_of_an_agent_all_that_its_model_wanted_called_counts(open_app: OpenApp) -> None:
    """Also what a person has yet to approve: it may be called at any time."""

    def reply(seen: Seen) -> Entry:
        said = sum(isinstance(one, ModelSaid) for one in seen.messages)
        return [call("mail"), call("guarded"), "done"][said]

    app = await furnished(open_app, model=ScriptedModel(reply))

    async def guarded() -> Mapping[str, Any]:
        return {}

    app.tool(guarded, name="guarded", approval="require_approval")
    app.agent("clerk", tools=["mail", "guarded", "badge"])
    agent = {"listener_type": "agent", "agent_id": "clerk", "action_prompt": "go"}
    load(app, "p", calls("A", "001", "002", "pay"), does("G", "002", "001", **agent))
    instance = await started(app)
    assert await elsewhere(app, instance.id) == {"mail", "guarded"}
    assert await in_tree(app, instance.id) == {"pay", "mail", "guarded"}


class TestForks:
    async def test_a_fork_knows_what_the_tree_of_its_origin_has_called(self, app: Holdfast) -> None:
        load(app, "child", calls("B", "001", "001", "mail"))
        load(app, "p", below("M", "001", "002", "child"), calls("A", "002", "001", "pay"))
        instance = await started(app, status="done")
        fork = await app.plans.fork(instance.id, 1)
        state = as_plan(await app.engine.state(fork.id))
        assert state.forked is not None
        assert state.forked.called == ("mail", "pay")
        assert await fork.wait_for_completion() == "done"
        assert await elsewhere(app, fork.id) == {"mail", "pay"}

    async def test_so_do_the_runs_below_the_fork_and_a_fork_of_it(self, app: Holdfast) -> None:
        load(app, "child", asks("H", "001", "001"))
        load(app, "p", calls("A", "001", "002", "pay"), below("M", "002", "001", "child"))
        instance = await started(app)
        await app.cancel(instance.id)
        assert await instance.wait_for_completion() == "cancelled"
        fork = await app.plans.fork(instance.id, 1)
        assert await fork.wait_until_settled() == "pause"
        assert await elsewhere(app, f"{fork.id}.M.1") == {"pay"}
        await app.cancel(fork.id)
        assert await fork.wait_for_completion() == "cancelled"
        further = await app.plans.fork(fork.id, 1)
        assert await elsewhere(app, further.id) == {"pay"}

    async def test_a_fork_of_a_run_below_knows_of_the_whole_tree(self, app: Holdfast) -> None:
        load(app, "child", calls("B", "001", "001", "mail"))
        load(app, "p", calls("A", "001", "002", "pay"), below("M", "002", "001", "child"))
        instance = await started(app, status="done")
        fork = await app.plans.fork(f"{instance.id}.M.1", 1)
        assert await elsewhere(app, fork.id) == {"mail", "pay"}
