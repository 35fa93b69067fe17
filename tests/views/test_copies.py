"""A whole journal goes from a home into PostgreSQL and back, and nothing is lost or renumbered."""

from __future__ import annotations

import asyncio
import sqlite3
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from test_backups import CHAIN, begin, rested, unseen

from holdfast import Holdfast
from holdfast.errors import (
    CallerError,
    HomeBusy,
    JournalDamaged,
    NotAllowed,
    NotFound,
    OperatorError,
)
from holdfast.journal import postgres_transfer, sqlite_transfer, transfer
from holdfast.journal.home import DATABASE
from holdfast.journal.port import (
    Attached,
    Committed,
    ExpiringValue,
    Journal,
    QuestionQuery,
    Snapshot,
    verify,
)
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.postgres_hints import process_label
from holdfast.journal.postgres_migrations import migrate
from holdfast.journal.sqlite import SqliteJournal
from holdfast.journal.vault import KEY_FILE
from holdfast.model.run import RunStatus
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.housekeeping import Housekeeper, Why
from holdfast.testing.journal_samples import audit_record
from holdfast.views.copies import copy
from holdfast.views.homes import Place, reading

SECRET_KEY = b64encode(bytes(range(32))).decode()
Rows = dict[str, list[transfer.Row]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)


def application(place: Place) -> Holdfast:
    app = Holdfast(database=place) if isinstance(place, str) else Holdfast(place.parent)

    @app.tool(idempotent=True)
    async def work() -> dict[str, Any]:
        return {"done": True}

    app.load_plan_text(CHAIN)
    return app


async def answer(app: Holdfast, run_id: str) -> None:
    [asked] = await app.journal.questions(QuestionQuery(run_id=run_id))
    await app.answer(asked.question_id, data={"word": "yes", "code": "1234"})
    await app.engine.wait_for_status(run_id, {RunStatus.DONE})


async def fill(home: Path) -> list[str]:
    """Runs that wait, some that were answered with a secret, and the last ones removed."""
    async with application(home / DATABASE) as app:
        run_ids = await begin(app, 5)
        gone = await begin(app, 2)
        await rested(app, run_ids + gone)
        for run_id in run_ids[:2] + gone:
            await answer(app, run_id)
    journal = SqliteJournal(home / DATABASE)
    await journal.open()
    removed = await Housekeeper(journal, SystemClock()).remove(gone, Why("removed_runs"))
    assert removed.runs == 2
    value = ExpiringValue("api_token", "tok_1", '{"name": "Will Zhang"}', 9e9)
    await journal.attach(Attached(kept=[value], audit=[audit_record("created_token")]))
    await journal.close()
    return run_ids


async def rows_of(place: Place) -> Rows:
    async with AsyncExitStack() as stack:
        opened = (
            postgres_transfer.opened_source(place)
            if isinstance(place, str)
            else sqlite_transfer.opened_source(place)
        )
        source: transfer.Source = await stack.enter_async_context(opened)  # type: ignore[arg-type]
        return {
            part.name: [row async for row in source.rows(part, part.start)]
            for part in transfer.PARTS
        }


async def feed_of(journal: Journal) -> list[list[tuple[int, str, int]]]:
    """What follows each cursor that a client may hold, record by record."""
    last = await journal.last_commit()
    return [_records(await journal.commits(cursor)) for cursor in range(last + 1)]


def _records(stretches: Sequence[Committed]) -> list[tuple[int, str, int]]:
    return [
        (one.position - one.last + seq, one.run_id, seq)
        for one in stretches
        for seq in range(one.first, one.last + 1)
    ]


async def test_everything_goes_into_a_database_and_back(
    tmp_path: Path, empty_database: Callable[..., str]
) -> None:
    home, url, again = tmp_path / "home" / DATABASE, empty_database(), tmp_path / "again" / DATABASE
    run_ids = await fill(home.parent)
    there = await copy(home, url, unseen)
    back = await copy(url, again, unseen)
    assert there.standing == back.standing
    assert there.report is not None
    assert there.report.counts["runs replayed"] == 5
    assert dict(there.rows) == dict(back.rows)
    assert set(there.rows) >= {"definitions", "runs", "events", "questions", "kept", "audit"}
    assert await rows_of(home) == await rows_of(url) == await rows_of(again)
    feeds, heads, numbers = [], [], []
    for place in (home, url, again):
        async with reading(place) as journal:
            feeds.append(await feed_of(journal))
            entries = await journal.audit()
            assert verify(entries) is None
            heads.append(entries[-1].digest)
            numbers.append(await journal.next_number("inst"))
    assert feeds[0] == feeds[1] == feeds[2]
    assert heads == [there.standing.audit_head] * 3
    assert numbers == [8, 8, 8]
    async with application(again) as app:
        await answer(app, run_ids[2])
        assert (await app.plans.start_plan_by_prompt("more", "chain")).id == "inst_000008"


async def test_runs_go_on_in_the_database(
    tmp_path: Path, empty_database: Callable[..., str]
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    run_ids = await fill(home.parent)
    with closing(sqlite3.connect(home)) as connection:  # as where a process was killed
        connection.execute("UPDATE runs SET active = 1 WHERE run_id = ?", (run_ids[2],))
        connection.commit()
    assert (await copy(home, url, unseen, verify=False)).active == 1
    with psycopg.connect(url) as connection:
        jobs = connection.execute("SELECT lock FROM procrastinate_jobs").fetchall()
    assert jobs == [(run_ids[2],)]
    async with application(url) as app:
        for run_id in run_ids[2:4]:
            await answer(app, run_id)
        begun = await begin(app, 1)
        await rested(app, begun)
        feed = _records(await app.journal.commits(0))
        assert [one[0] for one in feed] == sorted({one[0] for one in feed})
        assert verify(await app.journal.audit()) is None


class _Interrupted(Exception):
    pass


@pytest.mark.parametrize("part", ["runs", "events", "kept", "series"])
@pytest.mark.parametrize("to", ["database", "home"])
async def test_a_copy_that_was_interrupted_cannot_be_used_and_is_gone_on_with(
    to: str,
    part: str,
    tmp_path: Path,
    empty_database: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places: list[Place] = [tmp_path / "home" / DATABASE, empty_database()]
    await fill(tmp_path / "home")
    if to == "home":
        await copy(*places, unseen)
        places = [places[1], tmp_path / "again" / DATABASE]
    kind = {
        "database": postgres_transfer.PostgresTarget,
        "home": sqlite_transfer.SqliteTarget,
    }[to]
    put, after = kind.put, {"events": 2}.get(part, 0)

    async def failing(self: Any, one: transfer.Part, rows: Sequence[transfer.Row]) -> None:
        nonlocal after
        if one.name == part:
            if not after:
                raise _Interrupted
            after -= 1
        await put(self, one, rows)

    monkeypatch.setattr(transfer, "ROWS_AT_ONCE", 3)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "put", failing)
        with pytest.raises(_Interrupted):
            await copy(*places, unseen)
    target = places[1]
    for journal in (
        (PostgresJournal(target),)
        if isinstance(target, str)
        else (SqliteJournal(target), reading(target))
    ):
        with pytest.raises(OperatorError, match="unfinished copy"):
            await (journal.open() if hasattr(journal, "open") else journal.__aenter__())
    await copy(*places, unseen)
    assert await rows_of(places[0]) == await rows_of(target)


async def test_an_unfinished_copy_is_not_gone_on_with_from_elsewhere(
    tmp_path: Path, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    await fill(home.parent)
    with monkeypatch.context() as patch:
        patch.setattr(postgres_transfer.PostgresTarget, "finish", _fail)
        with pytest.raises(_Interrupted):
            await copy(home, url, unseen)
    async with application(home) as app:
        await rested(app, await begin(app, 1))
    with pytest.raises(NotAllowed, match="has moved on"):
        await copy(home, url, unseen)


async def _fail(*given: Any) -> None:
    raise _Interrupted


@pytest.mark.parametrize("part", ["events", "kept", "audit", "snapshots", "definitions"])
async def test_what_does_not_arrive_as_it_was_is_found(
    part: str,
    tmp_path: Path,
    empty_database: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    await fill(home.parent)
    put = postgres_transfer.PostgresTarget.put

    async def losing(self: Any, one: transfer.Part, rows: Sequence[transfer.Row]) -> None:
        kept = rows[:-1] if one.name == part else rows
        if kept:
            await put(self, one, kept)

    if part == "snapshots":
        journal = SqliteJournal(home)
        await journal.open()
        [run, *_] = await journal.runs()
        await journal.save_snapshot(Snapshot(run.run_id, 1, 1, "{}"))
        await journal.close()
    monkeypatch.setattr(postgres_transfer.PostgresTarget, "put", losing)
    with pytest.raises(JournalDamaged, match="is not sound"):
        await copy(home, url, unseen)
    with pytest.raises(OperatorError, match="unfinished copy"):
        await PostgresJournal(url).open()


async def test_a_damaged_source_is_named(
    tmp_path: Path, empty_database: Callable[..., str]
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    [run_id, *_] = await fill(home.parent)
    with closing(sqlite3.connect(home)) as connection:
        connection.execute("UPDATE events SET payload = '{}' WHERE position = 2")
        connection.commit()
    with pytest.raises(JournalDamaged, match=f"record 2 of run {run_id} in .* has changed"):
        await copy(home, url, unseen)


async def test_what_cannot_be_copied_is_refused(
    tmp_path: Path, empty_database: Callable[..., str]
) -> None:
    home, url, other = tmp_path / "home" / DATABASE, empty_database(), tmp_path / "other" / DATABASE
    await fill(home.parent)
    refusals: list[tuple[Place, Place, type[Exception], str]] = [
        (home, other, CallerError, "holdfast backup"),
        (url, empty_database(), CallerError, "pg_dump"),
        (tmp_path / "nowhere" / DATABASE, url, NotFound, "holds no runs"),
        (url, other, OperatorError, "holdfast migrate"),
    ]
    for source, target, kind, told in refusals:
        with pytest.raises(kind, match=told):
            await copy(source, target, unseen)
    await copy(home, url, unseen)
    with pytest.raises(NotAllowed, match="holds runs already"):
        await copy(home, url, unseen)
    with pytest.raises(NotAllowed, match="holds runs already"):
        await copy(url, home, unseen)


async def test_a_home_in_use_is_not_copied(
    tmp_path: Path, empty_database: Callable[..., str]
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    await fill(home.parent)
    async with application(home):
        with pytest.raises(HomeBusy):
            await copy(home, url, unseen)


async def test_a_database_in_use_is_neither_source_nor_target(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / DATABASE
    await fill(home.parent)
    monkeypatch.setattr(postgres_transfer, "_LEAVING", 1)
    async with Holdfast(database=database, drives=False):
        for source, target in ((home, database), (database, tmp_path / "other" / DATABASE)):
            with pytest.raises(NotAllowed, match="connections of Holdfast from this machine"):
                await copy(source, target, unseen)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
    with pytest.raises(NotAllowed, match="worker 1, heard of 0 s ago, with 0 runs"):
        await copy(home, database, unseen)


async def test_a_server_that_only_listens_has_it_in_use(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart of the database: its other connections come when they are needed."""
    home = tmp_path / "home" / DATABASE
    await fill(home.parent)
    monkeypatch.setattr(postgres_transfer, "_LEAVING", 1)
    with (
        psycopg.connect(database, application_name=process_label("server")),
        pytest.raises(NotAllowed, match="1 connections of Holdfast from this machine"),
    ):
        await copy(home, database, unseen)


async def test_a_source_that_is_served_meanwhile_is_found(
    tmp_path: Path, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url, other = tmp_path / "home" / DATABASE, empty_database(), tmp_path / "other" / DATABASE
    await fill(home.parent)
    await copy(home, url, unseen)
    put = sqlite_transfer.SqliteTarget.put

    async def served(self: Any, one: transfer.Part, rows: Sequence[transfer.Row]) -> None:
        await put(self, one, rows)
        if one.name == "runs":
            async with application(url) as app:
                await rested(app, await begin(app, 1))

    monkeypatch.setattr(sqlite_transfer.SqliteTarget, "put", served)
    with pytest.raises(NotAllowed, match=r"has moved on|is in use"):
        await copy(url, other, unseen)


async def test_the_key_of_secrets_must_be_the_same(
    tmp_path: Path, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    monkeypatch.delenv("HOLDFAST_SECRET_KEY")
    await fill(home.parent)
    file = home.with_name(KEY_FILE)
    with pytest.raises(OperatorError, match=r'export HOLDFAST_SECRET_KEY="\$\(cat '):
        await copy(home, url, unseen)
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    with pytest.raises(OperatorError, match="is not the key in"):
        await copy(home, url, unseen)
    held = file.read_text()
    file.unlink()
    with pytest.raises(OperatorError, match="cannot be opened with this installation's key"):
        await copy(home, url, unseen)
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", held.strip())
    file.write_text(held)
    await copy(home, url, unseen)
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    with pytest.raises(OperatorError, match="begun with another HOLDFAST_SECRET_KEY"):
        await copy(url, tmp_path / "other" / DATABASE, unseen)
    monkeypatch.delenv("HOLDFAST_SECRET_KEY")
    with pytest.raises(OperatorError, match="openssl rand -base64 32"):
        await copy(url, tmp_path / "other" / DATABASE, unseen)


async def test_an_unfinished_copy_may_be_migrated_and_not_served(
    tmp_path: Path, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = tmp_path / "home" / DATABASE, empty_database()
    await fill(home.parent)
    with monkeypatch.context() as patch:
        patch.setattr(postgres_transfer.PostgresTarget, "finish", _fail)
        with pytest.raises(_Interrupted):
            await copy(home, url, unseen)
    assert await migrate(url) == 0
    with pytest.raises(OperatorError, match="unfinished copy"):
        await asyncio.create_task(PostgresJournal(url).open())
