"""A model is asked about a failure as often as the run's journal says, whatever the journal or
another process does while it thinks."""

from __future__ import annotations

import asyncio

import pytest
from repair_scenes import Staff, proposal
from scenes import history, of_kind

from holdfast.app import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append
from holdfast.model import events as e
from holdfast.model.message import ModelReply
from holdfast.runs.handles import PlanInstance
from holdfast.runtime import turns
from holdfast.testing.repair_models import diagnosing_model
from holdfast.work.models import ModelClient

WILL = {"id": "WZ001", "name": "Will Zhang"}


class CountedModel(ModelClient):
    def __init__(self) -> None:
        super().__init__(default_model=diagnosing_model())
        self.asked = 0

    async def request(self, *asked: object, **more: object) -> ModelReply:
        self.asked += 1
        return await super().request(*asked, **more)  # type: ignore[arg-type]


def has_a_thought(append: Append) -> bool:
    """Whether this would record what a model has answered."""
    return any(kind == "DiagnosisReceived" for _, _, kind, _ in append.records)


async def begun(app: Holdfast) -> PlanInstance:
    return await app.plans.start_plan_by_prompt("", "access", values=WILL)


async def asked_once(app: Holdfast, run_id: str, model: CountedModel) -> None:
    await proposal(app, run_id)
    events = await history(app, run_id)
    assert len(of_kind(events, e.DiagnosisRequested)) == model.asked == 1
    [received] = of_kind(events, e.DiagnosisReceived)
    assert isinstance(received, e.DiagnosisReceived)
    assert not received.lost


@pytest.mark.own_store  # its journal is full
async def test_a_thought_that_cannot_be_recorded_yet_is_kept_and_not_thought_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "RETRY_JOURNAL", 0.01)
    refused = 0

    class FullForAWhile(MemoryJournal):
        async def append(self, append: Append) -> int:
            nonlocal refused
            if has_a_thought(append) and refused < 20:
                refused += 1
                raise JournalUnavailable("the disk is full")
            return await super().append(append)

    model = CountedModel()
    bare = Holdfast(journal=FullForAWhile(), model=model, max_retry_count=0)
    async with Staff().furnish(bare) as app:
        await asked_once(app, (await begun(app)).id, model)
    assert refused == 20


async def test_a_run_that_another_process_moves_while_a_model_thinks_has_it_think_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append with the answer conflicts, and the run is looked at anew."""
    staff, model = Staff(), CountedModel()
    answered, go = asyncio.Event(), asyncio.Event()
    worker = staff.furnish(Holdfast(database=database, model=model, max_retry_count=0))
    server = staff.furnish(Holdfast(database=database, drives=False, max_retry_count=0))
    append_now = worker.journal.append

    async def append(one: Append) -> int:
        if has_a_thought(one) and not go.is_set():
            answered.set()
            await go.wait()
        return await append_now(one)

    monkeypatch.setattr(worker.journal, "append", append)
    async with worker, server:
        run = await begun(server)
        await answered.wait()
        await server.edit_context(run.id, "001", {"note": "meanwhile"}, by="will")
        go.set()
        await asked_once(server, run.id, model)
    assert model.asked == 1, "nor was it asked afterwards"
