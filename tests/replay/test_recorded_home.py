"""A home that an older version has left opens in this one, and its runs go on.

`home_schema_1.db.gz` is the database of such a home, byte for byte: a run that is done, a chat,
and a run that waits for an answer. It is kept for ever, as the journals beside it are.
"""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest
from journals import HERE

from holdfast import Holdfast
from holdfast.core.agent.state import result
from holdfast.journal.database import SCHEMA
from holdfast.runtime.machines import as_session

PATIENCE = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    recorded = gzip.decompress((HERE / "home_schema_1.db.gz").read_bytes())
    (tmp_path / "holdfast.db").write_bytes(recorded)
    assert schema(tmp_path) == 1
    return tmp_path


def schema(home: Path) -> int:
    connection = sqlite3.connect(home / "holdfast.db")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return int(version)
    finally:
        connection.close()


def reopened(home: Path, greeted: list[str]) -> Holdfast:
    app = Holdfast(home)

    @app.tool
    async def greet(name: str) -> dict[str, object]:
        greeted.append(name)
        return {"success": True, "greeted": name}

    return app


async def test_it_is_brought_up_to_date_and_stays_sound(home: Path) -> None:
    async with reopened(home, []) as app:
        assert await app.journal.check() == []
        assert await app.journal.audit() == []
    assert schema(home) == SCHEMA


@pytest.mark.parametrize("known", [4, 5])
async def test_positions_that_were_given_stay(tmp_path: Path, known: int) -> None:
    """`home_schema_4.db.gz` and the same of 5: three runs that committed in turns, one is done."""
    recorded = gzip.decompress((HERE / f"home_schema_{known}.db.gz").read_bytes())
    (tmp_path / "holdfast.db").write_bytes(recorded)
    assert schema(tmp_path) == known
    async with reopened(tmp_path, []) as app:
        found = [(one.position, one.run_id, one.last) for one in await app.journal.commits()]
        assert found == [
            *((2, "inst_000001", 2), (4, "inst_000002", 2), (6, "inst_000003", 2)),
            *((8, "inst_000001", 4), (10, "inst_000002", 4), (12, "inst_000003", 4)),
            (16, "inst_000001", 8),
        ]
        assert (await app.engine.state("inst_000001")).status == "done"
        assert [one.run_id for one in await app.inbox()] == ["inst_000002", "inst_000003"]
        assert await app.journal.check() == []


async def test_records_of_old_come_before_all_positions(home: Path) -> None:
    async with reopened(home, []) as app:
        assert (await app.journal.commits(), await app.journal.last_commit()) == ([], 0)
        (asked,) = await app.inbox()
        await app.answer(asked.question_id, option_id="confirm")
        [told, *_] = await app.journal.commits()
        assert (told.run_id, told.first) == (asked.run_id, told.last - told.position + 1)


async def test_what_was_over_is_as_it_was(home: Path) -> None:
    greeted: list[str] = []
    async with reopened(home, greeted) as app:
        done = await app.engine.state("inst_000001")
        assert (done.status, done.version) == ("done", 8)
        chat = as_session(await app.engine.state("chat_000001"))
        assert (chat.status, result(chat)["answer"]) == ("done", "您好，张三。")
    assert greeted == []


async def test_what_waited_takes_its_answer_and_ends(home: Path) -> None:
    greeted: list[str] = []
    async with reopened(home, greeted) as app:
        (asked,) = await app.inbox()
        assert (asked.run_id, asked.title) == ("inst_000002", "确认 (confirm)")
        await app.answer(asked.question_id, option_id="confirm")
        ended = await app.engine.wait_for("inst_000002", lambda now: now.status == "done", PATIENCE)
        assert ended.failed == ()
    assert greeted == ["张三"]
