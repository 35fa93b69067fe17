"""What a server removes by itself, and how it goes on after a mistake."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.journal.sqlite import SqliteJournal
from holdfast.server.caretaker import Caretaker
from holdfast.server.settings import ServerSettings


@pytest.mark.own_store  # the store that gives space back is the file
async def test_after_a_mistake_of_ours_it_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = asyncio.Queue[None]()

    async def reclaim(journal: SqliteJournal) -> bool:
        tried.put_nowait(None)
        if "could not look after" in caplog.text:
            return False
        raise ValueError("a mistake of ours")

    async with Holdfast(tmp_path) as app:
        monkeypatch.setattr(SqliteJournal, "reclaim", reclaim)
        caretaker = Caretaker(app, ServerSettings())
        caretaker.start()
        async with asyncio.timeout(60):
            await tried.get()
            await asyncio.sleep(0)
            caretaker.nudge()
            await tried.get()
        await caretaker.close()
    assert "a mistake of ours" in caplog.text
