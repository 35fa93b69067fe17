"""The seeds' own line: `self.task_driver.execute_listener(listener, plan_instance.context)`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from plan_texts import end, load, start, step

from holdfast import Holdfast, PlanInstance, TaskDriver
from holdfast.errors import CallerError, PermanentError

OpenApp = Callable[..., Awaitable[Holdfast]]

ORDER = {"order": "{{result.order}}"}


class Shop:
    def __init__(self, app: Holdfast, **listener: Any) -> None:
        self.app = app
        self.ordered: list[tuple[str, str]] = []
        app.tool(self.order)
        app.tool(self.pay, approval="require_approval")
        load(
            app,
            step("A", "001", "002", context=ORDER, **(listener or ORDERING)),
            end("002"),
        )

    async def order(self, name: str, model: str) -> dict[str, Any]:
        self.ordered.append((name, model))
        if model == "abacus":
            raise PermanentError("sold out")
        return {"order": f"{model} for {name}"}

    async def pay(self, amount: int = 1) -> dict[str, Any]:
        self.ordered.append(("paid", str(amount)))
        return {}

    async def paused(self) -> PlanInstance:
        instance = await start(self.app, name="Will")
        await instance.wait_until_settled()
        return instance

    async def execute(self, instance: PlanInstance, **provided: Any) -> dict[str, Any]:
        """As the seed's `continue_plan` has it."""
        planner, module = self.app.planner_agent, self.app.plans
        context = instance.context
        listener = await module.listener_repo.get_by_id(f"{instance.id}_A")
        assert listener is not None
        assert listener.id == "A"
        if provided:
            context["provided_params"] = provided
        assert planner.task_driver is not None
        return await planner.task_driver.execute_listener(listener, dict(context))


ORDERING = {"tool": "order", "args": {"name": "{001.context.name}"}}


async def test_the_planner_has_the_driver(open_app: OpenApp) -> None:
    class Own(TaskDriver):
        pass

    app = await open_app(driver=Own)
    assert isinstance(app.planner_agent.task_driver, Own)
    assert app.planner_agent.task_driver is app.task_driver


async def test_what_is_missing_comes_back_as_fields(app: Holdfast) -> None:
    shop = Shop(app)
    instance = await shop.paused()
    result = await shop.execute(instance)
    assert result.pop("required_params") == instance.context["required_params"]
    assert result == {"success": False, "reason": "missing_params", "task_updates": []}
    assert shop.ordered == []


async def test_with_what_was_provided_it_is_carried_out(app: Holdfast) -> None:
    shop = Shop(app)
    result = await shop.execute(await shop.paused(), model="mac", nobody_asked="x")
    assert result["success"] is True
    assert result["result"] == {"order": "mac for Will"}
    [update] = result["task_updates"]
    assert (update["task_id"], update["status"]) == ("002", "Done")
    assert update["context"] == {"order": "mac for Will"}


async def test_nothing_of_it_is_recorded(app: Holdfast) -> None:
    shop = Shop(app)
    instance = await shop.paused()
    before = await app.journal.read(instance.id)
    await shop.execute(instance, model="mac")
    assert await app.journal.read(instance.id) == before
    assert instance.status == "pause"


async def test_values_are_those_of_the_dict(app: Holdfast) -> None:
    shop = Shop(app)
    instance = await shop.paused()
    listener = await app.plans.listener_repo.get_by_id("A", "p")
    assert listener is not None
    context = {**instance.context, "values": {"name": "Ann"}, "provided_params": {"model": "mac"}}
    await app.task_driver.execute_listener(listener, context)
    assert shop.ordered == [("Ann", "mac")]


async def test_a_failure_is_a_result(app: Holdfast) -> None:
    shop = Shop(app)
    result = await shop.execute(await shop.paused(), model="abacus")
    assert result == {"success": False, "error": "sold out", "task_updates": []}


async def test_a_snippet_is_carried_out_too(app: Holdfast) -> None:
    shop = Shop(app, code_snippet="result = {'order': context['values']['name']}")
    result = await shop.execute(await shop.paused())
    assert result["result"] == {"order": "Will"}


@pytest.mark.parametrize(
    ("listener", "why"),
    [
        ({"tool": "pay"}, "the tool pay needs approval: answer its question"),
        (
            {**ORDERING, "args": {"name": "x", "model": "mac"}, "approval": True},
            "the tool order needs approval: answer its question",
        ),
        ({"form": {"size": {"type": "text"}}}, "A (human) is carried out by the engine only"),
        (
            {"code_snippet": "result = order(name='x', model='y')", "functions": ["order"]},
            "A (code) is carried out by the engine only",
        ),
    ],
)
async def test_what_needs_a_person_or_the_engine_is_refused(
    app: Holdfast, listener: dict[str, Any], why: str
) -> None:
    shop = Shop(app, **listener)
    instance = await shop.paused()
    before = list(shop.ordered)
    result = await shop.execute(instance)
    assert result == {"success": False, "error": why, "task_updates": []}
    assert shop.ordered == before


async def test_a_context_of_nothing_is_refused(app: Holdfast) -> None:
    shop = Shop(app)
    listener = await app.plans.listener_repo.get_by_id("A", "p")
    assert listener is not None
    for context in ({}, {"metadata": {"plan_instance_id": "inst_000404"}}):
        result = await app.task_driver.execute_listener(listener, context)
        assert result["success"] is False
    assert shop.ordered == []


async def test_updates_can_be_determined_without_a_context(app: Holdfast) -> None:
    """Seed 003: def determine_task_updates(self, listener, execution_result)"""
    Shop(app)
    listener = await app.plans.listener_repo.get_by_id("A", "p")
    assert listener is not None
    execution = {"success": True, "result": {"order": "mac"}}
    [update] = app.task_driver.determine_task_updates(listener, execution)
    assert (update["task_id"], update["context"]) == ("002", {"order": "mac"})


async def test_the_listener_may_be_a_dict(app: Holdfast) -> None:
    shop = Shop(app)
    instance = await shop.paused()
    context = {**instance.context, "provided_params": {"model": "mac"}}
    output = {"task_id": "002", "status": "Done", "context": ORDER}
    whole = {"listener_id": "A", "tool": "order", "success_output": output}
    for given in (whole, {"id": "A"}, {"id": f"{instance.id}_A", "listener_type": "tool"}):
        result = await app.task_driver.execute_listener(given, context)
        assert result["success"] is True, result
        assert result["task_updates"][0]["context"] == {"order": "mac for Will"}
    other = await app.task_driver.execute_listener({"id": "A", "tool": "pay"}, context)
    assert other["error"] == f"A is another listener in the plan of {instance.id}"
    nameless = await app.task_driver.execute_listener({"tool": "order"}, context)
    assert "a dict with its listener_id" in nameless["error"]
    assert len(shop.ordered) == 3


@pytest.mark.parametrize("kind", [{}, {"tool": "order"}, {"code_snippet": "result = 1"}])
def test_updates_are_determined_for_a_dict_too(app: Holdfast, kind: dict[str, Any]) -> None:
    listener = {
        "id": "A",
        **kind,
        "success_output": {"task_id": "002", "status": "Done", "context": ORDER},
        "failure_output": {"task_id": "002", "status": "Error"},
    }
    determine = app.task_driver.determine_task_updates
    [done] = determine(listener, {"success": True, "result": {"order": 7}})
    assert (done["task_id"], done["status"], done["context"]) == ("002", "Done", {"order": 7})
    [failed] = determine(listener, {"success": True, "result": {"success": False}})
    assert (failed["task_id"], failed["status"]) == ("002", "Error")


@pytest.mark.parametrize(
    "listener",
    [{}, {"tool": "order"}, {"id": "A", "success_output": {"status": "Done"}}, {"id": 5}],
)
def test_a_dict_that_is_no_listener_is_refused_in_words(
    app: Holdfast, listener: dict[str, Any]
) -> None:
    with pytest.raises(CallerError, match="listener"):
        app.task_driver.determine_task_updates(listener, {"success": True, "result": {}})
