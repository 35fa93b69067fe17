"""The PostgreSQL journal beyond the suites: damage, failures, restarts, what opening refuses."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from holdfast import Holdfast
from holdfast.errors import (
    InternalError,
    JournalDamaged,
    JournalTooNew,
    JournalUnavailable,
    OperatorError,
    VersionConflict,
)
from holdfast.journal import postgres_migrations, postgres_reading
from holdfast.journal.port import (
    Append,
    Attached,
    Drive,
    ExpiringValue,
    OutboxMessage,
    Snapshot,
    StoredDefinition,
    verify,
)
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.postgres_appends import SQL
from holdfast.journal.postgres_database import Connections, connect
from holdfast.journal.postgres_migrations import migrate
from holdfast.testing.journal_keeping import assert_gapless, did
from holdfast.testing.journal_samples import (
    birth,
    outcomes,
    question_row,
    records,
    run_row,
    step,
)
from postgresql_server import Server, migrated


@pytest.fixture
async def journal(database: str) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(database)
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server to be stopped and killed."""
    with Server(fsync=False) as server:
        yield server


@pytest.fixture
async def exposed(server: Server) -> AsyncIterator[PostgresJournal]:
    """A journal on that server."""
    journal = PostgresJournal(server.create_database(migrated))
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
async def prompt(database: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A SQL prompt beside the journal."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        yield connection


async def fetched(prompt: psycopg.AsyncConnection, statement: str) -> list[Any]:
    cursor = await prompt.execute(statement.encode())
    return await cursor.fetchall()


async def test_arrays_are_sent_in_binary_for_text_would_have_every_quotation_mark_escaped(
    database: str,
) -> None:
    async with await connect(database) as connection:
        shaped = Transformer.from_context(connection)
        for column in (["{}", None], [1, None], [0.5], [True]):
            assert shaped.get_dumper(column, PyFormat.AUTO).format is Format.BINARY


# -- what cannot be committed together


async def test_one_refused_text_fails_nobody_else(journal: PostgresJournal) -> None:
    await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(9)])
    for bad in ("\0", "\ud800"):
        told = await outcomes(
            journal,
            [birth(f"{bad!r} first")]
            + [
                Append(f"inst_{n:06d}", 1, records(1, 1, bad if n == 4 else "{}")) for n in range(9)
            ],
        )
        assert isinstance(told.pop(5), InternalError)
        told = [word for word in told if not isinstance(word, VersionConflict)]
        assert set(told[1:]) <= {1, 2}
    assert await journal.version("inst_000004") == 1
    assert await journal.version("inst_000008") == 2
    assert journal.epoch == 0


async def test_two_that_lock_crosswise_both_go_on(
    database: str, prompt: psycopg.AsyncConnection
) -> None:
    journal = PostgresJournal(f"{database}&options=-c%20deadlock_timeout%3D10ms")
    await journal.open()
    await outcomes(journal, [birth("a"), birth("b")])
    await prompt.set_autocommit(False)
    await prompt.execute("SELECT FROM runs WHERE run_id = 'b' FOR UPDATE")
    crowd = [journal.append(step(name, 1)) for name in ("a", "b")]
    while not await fetched(prompt, _WAITING):
        await prompt.execute("SELECT pg_sleep(0.001)")
    await prompt.execute("SET deadlock_timeout = '1h'")
    await prompt.execute("SELECT FROM runs WHERE run_id = 'a' FOR UPDATE")
    await prompt.commit()
    assert await asyncio.gather(*crowd) == [2, 2]
    assert journal.epoch == 0
    assert_gapless(await journal.commits(), 4)
    await journal.close()


_WAITING = "SELECT pid FROM pg_locks WHERE NOT granted"


# -- jobs


async def test_a_job_that_waits_is_not_begun_before_the_append_is_committed(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection
) -> None:
    await journal.append(birth(active=True))
    await prompt.set_autocommit(False)
    async with psycopg.AsyncRawCursor(prompt) as cursor:
        await cursor.execute(SQL["defer_drives"], [["inst_000001"]])
        begin = b"SELECT id FROM procrastinate_fetch_job_v2(ARRAY['drive']::varchar[], NULL)"
        assert await journal._connections.select(begin) == [(None,)]
        await prompt.commit()
        [(job,)] = await journal._connections.select(begin)
        assert job is not None


async def test_a_driver_that_ends_while_its_run_is_woken_leaves_a_job(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection
) -> None:
    """An end without a record moves no version: only the row's lock tells."""
    await journal.append(birth(active=True))
    await prompt.execute("DELETE FROM procrastinate_jobs")
    await prompt.set_autocommit(False)
    await prompt.execute("UPDATE runs SET active = false")
    waking = asyncio.ensure_future(
        journal.append(replace(step("inst_000001", 1), row=run_row(active=True)))
    )
    while not await fetched(prompt, _WAITING):
        await prompt.execute("SELECT pg_sleep(0.001)")
    await prompt.commit()
    assert await waking == 2
    assert len(await fetched(prompt, _JOBS)) == 1


class Breaking:
    """Ends the journal's connections before the n-th statement of a write."""

    def __init__(self, prompt: psycopg.AsyncConnection) -> None:
        self._prompt = prompt
        self._execute = psycopg.AsyncConnection.execute
        self.left = -1

    async def execute(self, connection: Any, *given: Any, **more: Any) -> Any:
        if connection is not self._prompt:
            self.left -= 1
            if self.left == 0:
                await self._execute(self._prompt, _END_OTHERS)
        return await self._execute(connection, *given, **more)


_END_OTHERS = b"""
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def test_wherever_the_connection_breaks_an_active_run_has_its_job(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking = Breaking(prompt)
    monkeypatch.setattr(
        psycopg.AsyncConnection,
        "execute",
        lambda connection, *given, **more: breaking.execute(connection, *given, **more),
    )
    asked = [question_row("q1", "other")]
    word = OutboxMessage("target", "other", 2, "{}")
    for statement in range(1, 12):
        await prompt.execute(b"TRUNCATE runs, events, questions, procrastinate_jobs CASCADE")
        await outcomes(journal, [birth("first"), birth("other"), birth("target")])
        waking = step("other", 1, row=run_row("other", active=True), questions=asked)
        epoch, breaking.left = journal.epoch, statement
        told = await outcomes(journal, [birth("new", active=True), replace(waking, notices=[word])])
        breaking.left = -1
        active = {run_id for (run_id,) in await fetched(prompt, _ACTIVE)}
        jobs = {run_id for (run_id,) in await fetched(prompt, _JOBS)}
        assert active == jobs, statement
        assert (await journal.version("other") == 2) == ("other" in active)
        failed = any(isinstance(word, JournalUnavailable) for word in told)
        assert journal.epoch == epoch + failed
        if told == [1, 2]:
            break
    assert statement > 6


_ACTIVE = """
SELECT run_id FROM runs WHERE active UNION
SELECT 'target' FROM runs WHERE run_id = 'other' AND version = 2
"""
_JOBS = "SELECT lock FROM procrastinate_jobs WHERE status = 'todo'"


# -- damage


async def test_a_record_that_has_changed_is_refused_and_no_other(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection
) -> None:
    await outcomes(journal, [birth("inst_000001", count=3), birth("inst_000002", count=3)])
    await prompt.execute("UPDATE events SET payload = '{}' WHERE seq = 2 AND run = 1")
    with pytest.raises(JournalDamaged, match="record 2 of run inst_000001"):
        await journal.read("inst_000001")
    assert await journal.read("inst_000001", after=2) == records(2, 1)
    assert await journal.read("inst_000002") == records(0, 3)
    await prompt.execute("DELETE FROM events WHERE seq = 2")
    for given in ({}, {"most_text": 10_000}, {"after": 1}):
        with pytest.raises(JournalDamaged, match="lacks records of run inst_000001"):
            await journal.read("inst_000001", **given)  # type: ignore[arg-type]
    await prompt.execute("DELETE FROM events WHERE seq = 3")
    with pytest.raises(JournalDamaged, match="lacks records of run inst_000002"):
        await journal.read("inst_000002", after=1)


async def test_a_row_that_has_changed_is_refused_and_left_out_of_lists(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection
) -> None:
    asked = [question_row(f"q{n}") for n in range(1, 4)]
    await journal.append(replace(birth(), questions=asked))
    await journal.attach(Attached(kept=[ExpiringValue("t", key, "{}") for key in "abc"]))
    for n in range(1, 4):
        await journal.store_definition(StoredDefinition(f"d{n}", "plan", "n", "{}", float(n)))
    await journal.save_snapshot(Snapshot("inst_000001", 1, 1, "{}"))
    await prompt.execute("UPDATE questions SET role = 'viewer' WHERE question_id = 'q2'")
    await prompt.execute("UPDATE kept SET body = '[]' WHERE key = 'b'")
    await prompt.execute("UPDATE definitions SET body = '[]' WHERE digest = 'd2'")
    await prompt.execute("UPDATE snapshots SET payload = '[]'")
    for look in (
        lambda: journal.question("q2"),
        lambda: journal.kept("t", "b", 0.0),
        lambda: journal.definition("d2"),
    ):
        with pytest.raises(JournalDamaged):
            await look()
    assert [row.question_id for row in await journal.questions()] == ["q1", "q3"]
    assert [one.key for one in await journal.all_kept("t", 0.0)] == ["a", "c"]
    assert [one.digest for one in await journal.definitions("plan", "n")] == ["d3", "d1"]
    assert await journal.snapshot("inst_000001", 1) is None


# -- lookups that must not read everything


@pytest.mark.parametrize(
    ("statement", "parameters", "index"),
    [
        (SQL["wake_due"], "(5.0, 100)", "runs_due"),
        (SQL["append_many"], None, "runs_run_id_key"),
        (postgres_reading.SQL["next_wake"], "(-1.0)", "runs_wake"),
        (postgres_reading.SQL["due_runs"], "(5.0, 100)", "runs_wake"),
    ],
    ids=["wake_due", "append_many", "next_wake", "due_runs"],
)
async def test_one_of_many_is_found_by_an_index(
    prompt: psycopg.AsyncConnection, statement: bytes, parameters: str | None, index: str
) -> None:
    await prompt.execute(_MANY_TIMERS)
    await prompt.execute("ANALYZE runs")
    await prompt.execute("SET plan_cache_mode = force_generic_plan")
    await prompt.execute(b"PREPARE statement AS " + statement)
    given = parameters or _APPEND_ONE
    plan = await fetched(prompt, f"EXPLAIN EXECUTE statement {given}")
    text = "\n".join(line for (line,) in plan)
    assert index in text
    assert "Seq Scan on runs" not in text


_MANY_TIMERS = """
INSERT INTO runs (run_id, version, kind, name, definition, status, active, wake_at, root_id,
                  created_at, updated_at, title, summary)
SELECT 'run' || n, 1, 'plan', 'n', 'd', 'running', false, 1000 + n, 'run' || n, 0, 0, '', '{}'
FROM generate_series(1, 20000) AS n
"""
_APPEND_ONE = """(
    '{0}', '{run7}', '{1}', '{2}', '{NULL}', '{NULL}', '{0}', '{2}', '{0.5}', '{t}', '{p}', '{0}'
)"""


async def test_counts_of_many_are_told_again_for_a_while(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(5)])
    monkeypatch.setattr(postgres_reading, "COUNTED_EACH_TIME", 4)
    now = 100.0
    monkeypatch.setattr(postgres_reading.time, "monotonic", lambda: now)
    assert await journal.run_counts() == {("plan", "running"): 5}
    await journal.append(birth("inst_000009"))
    assert await journal.run_counts() == {("plan", "running"): 5}
    now += postgres_reading.COUNTS_KEPT_SECONDS
    assert await journal.run_counts() == {("plan", "running"): 6}


# -- a database that is away


async def test_connections_that_a_restart_has_closed_are_not_used(
    exposed: PostgresJournal, server: Server
) -> None:
    journal = exposed
    await asyncio.gather(journal.append(birth()), *(journal.version("x") for _ in range(8)))
    server.stop()
    server.start()
    assert await journal.append(step("inst_000001", 1)) == 2
    assert await asyncio.gather(*(journal.version("inst_000001") for _ in range(8))) == [2] * 8
    assert journal.epoch == 0


async def test_while_the_database_is_away_nothing_is_acknowledged(
    exposed: PostgresJournal, server: Server
) -> None:
    journal = exposed
    await journal.append(birth())
    server.stop()
    try:
        for _ in range(3):
            with pytest.raises(JournalUnavailable, match="goes on by itself"):
                await journal.append(step("inst_000001", 1))
        for look in (journal.commits(), journal.version("inst_000001"), journal.next_number("x")):
            with pytest.raises(JournalUnavailable):
                await look
        assert journal.epoch == 3
    finally:
        server.start()
    assert await journal.append(step("inst_000001", 1)) == 2
    assert await journal.next_number("x") == 1


async def test_of_a_server_that_dies_under_load_nothing_acknowledged_is_lost(
    exposed: PostgresJournal, server: Server
) -> None:
    journal, other = exposed, PostgresJournal(exposed.url)
    await other.open()
    load = Load([journal, other])
    deaths = asyncio.create_task(load.kill(server, after=(40, 90, 150)))
    names = [f"inst_{n:06d}" for n in range(8)]
    await asyncio.gather(*(load.live(name, 40, n % 2) for n, name in enumerate(names)))
    await deaths
    total = 0
    for name in names:
        found = [record.payload for record in await journal.read(name)]
        assert found == [json.dumps({"said": n}) for n in range(len(found))]
        assert set(load.acknowledged[name]) <= set(found)
        assert len(found) == 40
        total += len(found)
    assert journal.epoch + other.epoch > 0
    assert_gapless(await other.commits(limit=10_000), total)
    entries = await journal.audit(limit=10_000)
    assert verify(entries) is None
    assert len({entry.record.action for entry in entries}) == len(entries) == total
    await other.close()


class Load:
    """Runs that go on through two journals, however often their server dies."""

    def __init__(self, journals: Sequence[PostgresJournal]) -> None:
        self._journals = journals
        self.acknowledged: dict[str, list[str]] = {}
        self._count = 0
        self._changed = asyncio.Event()

    async def live(self, name: str, steps: int, side: int) -> None:
        journal, said = self._journals[side], self.acknowledged.setdefault(name, [])
        version = 0
        while version < steps:
            text = json.dumps({"said": version})
            attached = did(f"{name} {version}")
            append = Append(name, version, records(version, 1, text), attached=attached)
            if version == 0:
                append = replace(append, row=run_row(name, active=True))
            try:
                version = await journal.append(append)
                said.append(text)
                self._count += 1
                self._changed.set()
            except JournalUnavailable:
                version = await self._reloaded(journal, name)

    async def _reloaded(self, journal: PostgresJournal, name: str) -> int:
        while True:
            try:
                return await journal.version(name)
            except JournalUnavailable:
                await asyncio.sleep(0.01)

    async def kill(self, server: Server, after: Sequence[int]) -> None:
        for count in after:
            while self._count < count:
                self._changed.clear()
                await self._changed.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)


async def test_hints_are_heard_again_after_a_restart(
    exposed: PostgresJournal, server: Server
) -> None:
    journal = exposed
    hints = journal.hints()
    assert await anext(hints) == ""
    server.stop()
    server.start()
    assert await anext(hints) == ""
    await journal.tell(["again"])
    assert await anext(hints) == "again"
    await hints.aclose()


async def test_a_worker_is_told_of_a_job_after_the_commit(
    journal: PostgresJournal, prompt: psycopg.AsyncConnection
) -> None:
    await prompt.execute('LISTEN "procrastinate_queue_v1#drive"')
    await journal.append(birth(active=True))
    [notice] = [one async for one in prompt.notifies(timeout=60, stop_after=1)]
    told = json.loads(notice.payload)
    [(job,)] = await fetched(prompt, "SELECT id FROM procrastinate_jobs")
    assert told == {"type": "job_inserted", "job_id": job}


# -- what opening refuses


async def refusal(url: str, error: type[Exception] = OperatorError) -> str:
    with pytest.raises(error) as refused:
        await PostgresJournal(url).open()
    assert type(refused.value) is error
    return str(refused.value)


async def test_an_empty_database_is_to_be_migrated_first(
    empty_database: Callable[..., str],
) -> None:
    url = empty_database()
    assert "run `holdfast migrate`" in await refusal(url)
    assert await migrate(url) == postgres_migrations.SCHEMA
    assert await migrate(url) == 0
    journal = PostgresJournal(url)
    await journal.open()
    await journal.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[psycopg.AsyncConnection]:
    """Every connection that is made."""
    made: list[psycopg.AsyncConnection] = []
    connect_one = psycopg.AsyncConnection.connect

    async def connect_and_note(*given: Any, **more: Any) -> psycopg.AsyncConnection:
        made.append(await connect_one(*given, **more))
        return made[-1]

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", connect_and_note)
    return made


async def test_whoever_is_cancelled_at_any_step_leaves_no_connection_open(
    database: str, made: list[psycopg.AsyncConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the loop is so busy that psycopg lets others go first."""
    monkeypatch.setattr("psycopg.waiting.MAX_BUSY_TIME", -1.0)

    async def listen() -> None:
        journal = PostgresJournal(database)
        await journal.open()
        try:
            async with aclosing(journal.hints()) as hints:
                await anext(hints)
        finally:
            await journal.close()

    for turns in itertools.count():
        task = asyncio.create_task(listen())
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            break
        task.cancel()
        await asyncio.wait((task,))
        assert all(one.closed for one in made), turns


@pytest.mark.parametrize("part", ["_writer", "_hints", "_numbers", "_sealer"])
async def test_a_journal_whose_closing_is_broken_off_leaves_no_connection_open(
    database: str,
    made: list[psycopg.AsyncConnection],
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = PostgresJournal(database)
    await journal.open()
    await journal.append(birth("inst_000001", 2))

    async def broken_off() -> None:
        await stop()
        raise asyncio.CancelledError

    stop = getattr(journal, part).stop
    monkeypatch.setattr(getattr(journal, part), "stop", broken_off)
    with pytest.raises(asyncio.CancelledError):
        await journal.close()
    assert len(made) > 1
    assert all(one.closed for one in made)


async def test_migrations_that_meet_wait_for_each_other(
    empty_database: Callable[..., str],
) -> None:
    url = empty_database()
    steps = await asyncio.gather(*(migrate(url) for _ in range(3)))
    assert sorted(steps) == [0, 0, postgres_migrations.SCHEMA]


async def test_a_schema_of_another_time_is_refused(
    database: str, prompt: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prompt.execute("UPDATE installation SET schema = schema + 1")
    assert "newer Holdfast" in await refusal(database, JournalTooNew)
    with pytest.raises(JournalTooNew):
        await migrate(database)
    await prompt.execute("UPDATE installation SET schema = schema - 1")
    monkeypatch.setattr(postgres_migrations, "SCHEMA", postgres_migrations.SCHEMA + 1)
    assert "earlier Holdfast" in await refusal(database)


@pytest.mark.parametrize("table", ["users (id int)", "installation (name text)"])
async def test_the_database_of_another_program_is_left_alone(
    empty_database: Callable[..., str], table: str
) -> None:
    url = empty_database()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f"CREATE TABLE {table}".encode())
    assert "another program" in await refusal(url)
    with pytest.raises(OperatorError, match="another program"):
        await migrate(url)


async def test_a_journal_that_search_path_hides_is_not_begun_anew(
    database: str, empty_database: Callable[..., str]
) -> None:
    """It would look empty, and so would everything in it."""
    hidden = f"{database}&options=-csearch_path%3Delsewhere"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA elsewhere")
    for use in (migrate(hidden), PostgresJournal(hidden).open()):
        with pytest.raises(OperatorError, match="in the schema public, which this user does not"):
            await use
    with pytest.raises(JournalUnavailable, match=r"search_path of this user name a schema"):
        await migrate(f"{empty_database()}&options=-csearch_path%3Dnowhere")


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
async def test_a_time_limit_that_is_set_for_the_database_is_named(
    database: str, limit: str
) -> None:
    journal = PostgresJournal(f"{database}&options=-c{limit}%3D200")

    async def use() -> None:
        await journal.open()
        await journal.append(birth("a"))

    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE runs")
        with pytest.raises(JournalUnavailable, match=f"Where {limit} is set"):
            await use()
    await journal.close()


async def test_another_encoding_is_refused(empty_database: Callable[..., str]) -> None:
    url = empty_database("ENCODING 'LATIN1' LOCALE 'C'")
    assert "--encoding=UTF8" in await refusal(url)


@pytest.mark.parametrize("ahead", [-60.0, 60.0])
async def test_clocks_that_differ_are_refused(
    database: str, ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = postgres_migrations.time.time
    monkeypatch.setattr(postgres_migrations.time, "time", lambda: now() + ahead)
    assert "clock" in await refusal(database)
    assert "NTP" in await refusal(database)


async def test_another_key_is_refused(journal: PostgresJournal, database: str) -> None:
    await journal.confirm_key("one")
    await journal.confirm_key("one")
    with pytest.raises(OperatorError, match="HOLDFAST_SECRET_KEY"):
        await journal.confirm_key("another")


async def test_an_application_needs_the_key_that_its_database_was_begun_with(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(database=database, drives=False):
        pass
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", b64encode(bytes(32)).decode())
    with pytest.raises(OperatorError, match="another HOLDFAST_SECRET_KEY"):
        await Holdfast(database=database, drives=False).__aenter__()
    monkeypatch.delenv("HOLDFAST_SECRET_KEY")
    with pytest.raises(OperatorError, match="openssl rand"):
        await Holdfast(database=database, drives=False).__aenter__()


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    url = "postgresql://me:hush-hush@127.0.0.1:1/journal"
    told = await refusal(url, JournalUnavailable)
    assert "the database journal at 127.0.0.1:1" in told
    assert "hush-hush" not in told
    assert "hush-hush" not in await refusal("postgresql://me:hush-hush@[::1/x")


@pytest.mark.parametrize(
    "password", ["hush/hush", "5432/hush", "hush@hush", "hush%hush", "hu@s/hush"]
)
async def test_a_password_that_is_torn_by_its_signs_is_not_told_as_a_place(password: str) -> None:
    told = await refusal(f"postgresql://me:{password}@127.0.0.1:1/journal")
    assert "hush" not in told
    assert "with %2F, %40 and %25" in told


async def test_a_journal_that_is_not_open_says_so(database: str) -> None:
    journal = PostgresJournal(database)
    for refused in (journal.version, journal.append):
        with pytest.raises(JournalUnavailable, match="start the application first"):
            await refused(birth() if refused == journal.append else "a")  # type: ignore[operator]
    await journal.open()
    await journal.close()
    await journal.close()
    with pytest.raises(JournalUnavailable, match="start the application first"):
        await journal.take("a", Drive(1, 0))


def test_without_its_packages_it_is_told_what_to_install() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import holdfast\n"
        "from holdfast.errors import OperatorError\n"
        "try: import holdfast.journal.postgres\n"
        "except OperatorError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'holdfast[postgres]'" in told.stdout


def test_who_does_not_use_it_does_not_load_it() -> None:
    script = "import sys, holdfast, holdfast.app; print('psycopg' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False\n"


async def test_a_pooler_that_mixes_up_prepared_statements_is_named(database: str) -> None:
    """As PgBouncer before 1.21 does in transaction mode: a name is taken by another's statement."""
    connections = Connections(database)
    connections.open()
    async with connections.one() as connection:
        await connection.execute(b"PREPARE _pg3_9 AS SELECT 1", prepare=False)

    async def select_many() -> None:
        for number in range(10):
            await connections.select(b"SELECT %d" % number)

    with pytest.raises(JournalUnavailable, match=r"PgBouncer 1\.21 or newer"):
        await select_many()
    await connections.close()
