"""A claim that another server has taken: who came too late is told so, and nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from scenes import PURE, assert_sound, chain, plan, until

from holdfast import Holdfast
from holdfast.errors import NameGone, NameTaken
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, Attached, ExpiringValue
from holdfast.model import commands as c
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.identity import Claim, Identity, acting

pytestmark = pytest.mark.own_store  # its journal is watched, in memory

ORDERS = """
plan_id: orders
name: Orders
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: order
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: human
    title: Which one?
    form: {model: {type: text, label: Model}}
    success_output: {task_id: "001", status: Done}
"""


class Watched(MemoryJournal):
    """Keeps every append that was made, and the events of those that came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[Append] = []
        self.refused: list[str] = []
        self.before: Callable[[Append], Any] | None = None

    async def append(self, append: Append) -> int:
        before, self.before = self.before, None
        if before is not None:
            await before(append)
        try:
            version = await super().append(append)
        except NameTaken:
            self.refused += [kind.partition("@")[0] for _, _, kind, _ in append.records]
            raise
        self.appends.append(append)
        return version


class Orders:
    def __init__(self) -> None:
        self.calls = 0
        self.let = asyncio.Event()

    async def order(self) -> dict[str, str]:
        self.calls += 1
        await self.let.wait()
        return {"order": "1"}


@pytest.fixture
def journal() -> Watched:
    return Watched()


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
async def app(journal: Watched, orders: Orders) -> AsyncIterator[Holdfast]:
    app = Holdfast(journal=journal)
    app.tool(orders.order, name="order")
    app.add_plan(plan(ORDERS))
    async with app:
        yield app


def by(who: str, claim: Claim | str = "") -> Identity:
    return Identity(who, claim=Claim(claim, "print") if isinstance(claim, str) else claim)


async def elsewhere(journal: MemoryJournal, *keys: str) -> None:
    """Another server has claimed these requests."""
    taken = [ExpiringValue("request", key, '{"fingerprint": "other"}') for key in keys]
    await journal.attach(Attached(claimed=taken))


async def claimed(journal: MemoryJournal, key: str) -> dict[str, Any]:
    kept = await journal.kept("request", key, 0.0)
    assert kept is not None
    found: dict[str, Any] = json.loads(kept.body)
    return found


async def asked(app: Holdfast, orders: Orders) -> tuple[PlanInstance, str]:
    orders.let.set()
    instance = await app.plans.start_plan_by_prompt("", "orders")
    await instance.wait_until_settled(20)
    [question] = await app.inbox()
    return instance, question.question_id


async def test_a_run_whose_start_was_claimed_elsewhere_is_not_born(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    await elsewhere(journal, "k1")
    with acting(by("will", "k1")), pytest.raises(NameTaken):
        await app.plans.start_plan_by_prompt("", "orders")
    assert await app.runs() == []
    assert await journal.audit() == []
    assert orders.calls == 0
    orders.let.set()
    with acting(by("will", "k2")):
        instance = await app.plans.start_plan_by_prompt("", "orders")
    assert await instance.wait_until_settled(20) == "pause"
    await assert_sound(app, instance.id)


async def test_of_commands_in_one_turn_only_the_one_that_came_too_late_is_refused(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    instance, question_id = await asked(app, orders)
    await elsewhere(journal, "k3", "k7")

    async def draft(n: int) -> None:
        with acting(by(f"person{n}", f"k{n}")):
            await app.keep_draft(question_id, {"model": f"{n}"}, by=f"person{n}")

    told = await asyncio.gather(*map(draft, range(10)), return_exceptions=True)
    late = [n for n, one in enumerate(told) if one is not None]
    assert late == [3, 7]
    assert all(isinstance(told[n], NameTaken) for n in late)
    for n in range(10):
        found = await claimed(journal, f"k{n}")
        assert found["fingerprint"] == ("other" if n in late else "print")
    drafts = [one for one in journal.appends if one.attached.claimed]
    assert len(drafts) == 1
    await assert_sound(app, instance.id)


async def test_a_result_in_the_same_turn_as_a_late_command_is_not_lost(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    instance = await app.plans.start_plan_by_prompt("", "orders")
    await until(lambda: orders.calls > 0)

    async def edit(claim: str) -> None:
        with acting(by("will", claim)):
            await app.engine.submit(instance.id, c.EditContext("001", {claim: True}, "will"))

    async def meanwhile(append: Append) -> None:
        late.append(asyncio.create_task(edit("k1")))
        orders.let.set()
        for _ in range(50):
            await asyncio.sleep(0)

    await elsewhere(journal, "k1")
    late: list[asyncio.Task[None]] = []
    journal.before = meanwhile
    await edit("k0")
    with pytest.raises(NameTaken):
        await late[0]
    assert {"ListenerSucceeded", "TasksEdited"} <= set(journal.refused)
    assert await instance.wait_until_settled(20) == "pause"
    assert orders.calls == 1
    assert "k1" not in json.dumps([one.payload for one in await journal.read(instance.id)])
    await assert_sound(app, instance.id)


async def test_pure_work_goes_on_after_a_late_command(app: Holdfast, journal: Watched) -> None:
    app.add_plan(chain("pure", [PURE] * 60))
    instance = await app.plans.start_plan_by_prompt("", "pure")
    await elsewhere(journal, *(f"k{n}" for n in range(10)))
    actor = app.engine._actors.by_id[instance.id]
    for n in range(10):
        await until(lambda: bool(actor.unsaved))
        with acting(by("will", f"k{n}")), pytest.raises(NameTaken):
            await app.engine.submit(instance.id, c.EditContext("0000", {"seen": True}, "will"))
    assert await instance.wait_for_completion(20) == "done"
    await assert_sound(app, instance.id)


async def test_the_commands_of_one_request_go_on_under_its_claim(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    instance, question_id = await asked(app, orders)
    claim = Claim("k1", "print")
    with acting(by("will", claim)):
        assert not claim.held
        await app.keep_draft(question_id, {"model": "X"}, by="will")
        assert claim.held
        first = await claimed(journal, "k1")
        await app.answer(question_id, data={"model": "X1"}, by="will")
    last = await claimed(journal, "k1")
    assert last["version"] > first["version"]
    assert [len(one.attached.claimed) for one in journal.appends if one.attached.claimed] == [1]
    await assert_sound(app, instance.id)


async def test_commands_of_one_request_that_share_an_append_share_its_claim(
    app: Holdfast, journal: Watched
) -> None:
    definition = app.engine.definitions.current("orders")
    further = [c.EditContext("001", {"seen": True}, "will")]
    with acting(by("will", "k1")):
        await app.engine.begin("mine", definition, c.StartRun("orders", by="will"), further=further)
    [first] = [one for one in journal.appends if one.expected == 0]
    [kept] = first.attached.claimed
    assert [one.action for one in first.attached.audit] == ["started", "edited_context"]
    assert first.records[0][2].startswith("RunStarted")
    assert 1 < json.loads(kept.body)["version"] <= len(first.records)


async def test_a_request_does_not_trip_over_its_own_claim(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    """It speaks to two runs at once, and one of them was quicker."""
    instance, question_id = await asked(app, orders)
    claim = Claim("k1", "print")

    async def quicker(append: Append) -> None:
        await elsewhere(journal, "k1")
        claim.held = True

    journal.before = quicker
    with acting(by("will", claim)):
        await app.answer(question_id, data={"model": "X1"}, by="will")
    assert await instance.wait_for_completion(20) == "done"
    assert (await claimed(journal, "k1"))["run_id"] == instance.id


async def test_what_a_caller_wants_to_spend_may_be_gone(
    app: Holdfast, journal: Watched, orders: Orders
) -> None:
    instance, question_id = await asked(app, orders)
    link = ("link", "a")
    await journal.attach(Attached(kept=[ExpiringValue(*link, "{}")]))
    edit = c.EditContext("001", {"seen": True}, "will")
    with acting(Identity("will")):
        await app.engine.submit(instance.id, edit, attached=Attached(spent=[link]))
    assert await journal.kept(*link, 0.0) is None
    before = await journal.version(instance.id)
    with pytest.raises(NameGone):
        await app.engine.submit(instance.id, edit, attached=Attached(spent=[link]))
    assert await journal.version(instance.id) == before
    await app.answer(question_id, data={"model": "X1"}, by="will")
    assert await instance.wait_for_completion(20) == "done"
