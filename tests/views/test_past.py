"""A run can be shown as it was after any of its events."""

from __future__ import annotations

import pytest
from console_plans import an_office, started
from run_scene import chain

from holdfast.model.run import RunStatus
from holdfast.views import past as pasts
from holdfast.views.past import Past


async def test_any_moment_of_a_run_can_be_folded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "STRIDE", 7)
    async with an_office() as office:
        office.load_plan_text(chain(10))
        run_id = await started(office, "chain")
        now, past = await office.engine.state(run_id), Past()
        for seq in (now.version - 1, 3, 1, 20, now.version, now.version + 5):
            then = await past.state(office.journal, now, seq)
            assert then.version == min(seq, now.version)
        assert (await past.state(office.journal, now, 1)).status is RunStatus.RUNNING


async def test_a_look_at_the_past_reads_no_more_than_a_stride_again() -> None:
    async with an_office() as office:
        office.load_plan_text(chain(200))
        run_id = await started(office, "chain")
        now, past = await office.engine.state(run_id), Past()
        await past.state(office.journal, now, now.version - 1)
        read: list[int] = []
        journal_read = office.journal.read

        async def counted(run_id: str, after: int = 0, limit: int | None = None) -> object:
            read.append(limit or 0)
            return await journal_read(run_id, after, limit)

        office.journal.read = counted  # type: ignore[method-assign, assignment]
        await past.state(office.journal, now, now.version - 2)
        assert sum(read) <= pasts.STRIDE
