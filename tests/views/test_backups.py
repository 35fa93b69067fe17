"""Backups of a home in use: one moment of it, whole and verified; a restore is as strict."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import JournalDamaged, NotAllowed, NotFound, OperatorError
from holdfast.journal.home import DATABASE
from holdfast.journal.integrity import examine
from holdfast.journal.vault import KEY_FILE
from holdfast.model.run import RunStatus
from holdfast.views import backups
from holdfast.views.homes import reading
from holdfast.views.integrity import examined

CHAIN = """
plan_id: chain
name: Chain
main_task_id: "001"
tasks:
  - {task_id: "001", name: Chain}
  - {task_id: "002", name: One}
  - {task_id: "003", name: Two}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: work
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: human
    title: Well?
    form: {word: {type: text}, code: {type: secret}}
    success_output: {task_id: "001", status: Done}
"""


def unseen(what: str, done: int, total: int) -> None:
    pass


def names(place: Path) -> list[str]:
    return sorted(one.name for one in place.iterdir())


def application(home: Path) -> Holdfast:
    app = Holdfast(home)

    @app.tool(idempotent=True)
    async def work() -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"done": True}

    app.load_plan_text(CHAIN)
    return app


async def backed_up(home: Path, target: Path, key: Path | None = None) -> backups.Made:
    """As by another process: with a loop of its own."""

    def run() -> backups.Made:
        fetch = backups.copied_from(home / DATABASE)
        return asyncio.run(
            backups.make(fetch, target, key, keyed="included" if key else "none", shown=unseen)
        )

    return await asyncio.to_thread(run)


async def begin(app: Holdfast, count: int) -> list[str]:
    return [(await app.plans.start_plan_by_prompt(f"run {n}", "chain")).id for n in range(count)]


async def rested(app: Holdfast, run_ids: list[str]) -> None:
    for run_id in run_ids:
        await app.engine.wait_for_status(run_id, {RunStatus.PAUSE})


async def small_backup(tmp_path: Path) -> Path:
    async with application(tmp_path / "home") as app:
        [run_id] = await begin(app, 1)
        await rested(app, [run_id])
    return (await backed_up(tmp_path / "home", tmp_path / "kept")).place


async def test_a_home_is_backed_up_while_a_hundred_runs_go_on(tmp_path: Path) -> None:
    home, target, again = tmp_path / "home", tmp_path / "kept", tmp_path / "again"
    async with application(home) as app:
        before = await begin(app, 20)
        await rested(app, before)
        acknowledged = {run_id: await app.journal.version(run_id) for run_id in before}
        going = asyncio.gather(*(begin(app, 10) for _ in range(10)))
        made = await backed_up(home, target)
        await rested(app, [run_id for begun in await going for run_id in begun])
    assert made.manifest["sound"]
    manifest = await asyncio.to_thread(lambda: asyncio.run(backups.restore(target, again, unseen)))
    assert manifest == made.manifest
    async with reading(again / DATABASE) as journal:
        for run_id, version in acknowledged.items():
            assert await journal.version(run_id) == version
        report = await examined(journal, lambda done, total: None)
        assert (report.findings, report.counts["runs"]) == ([], manifest["counts"]["runs"])
    async with application(again) as app:
        run_ids = [row.run_id for row in await app.runs()]
        await rested(app, run_ids)
        assert await app.plans.start_plan_by_prompt("more", "chain")
    assert examine(again / DATABASE).findings == []


async def test_a_copy_of_many_pages_is_of_one_moment_though_the_home_is_written(
    tmp_path: Path,
) -> None:
    """Between two of its steps the home moves on; the copy does not."""
    home, target = tmp_path / "home", tmp_path / "kept"
    steps: list[int] = []
    async with application(home) as app:
        await begin(app, 30)
        loop = asyncio.get_running_loop()

        def stepped(what: str, done: int, total: int) -> None:
            if what == "pages copied" and done < total and len(steps) < 20:
                steps.append(done)
                asyncio.run_coroutine_threadsafe(begin(app, 1), loop).result()

        def run() -> backups.Made:
            fetch = backups.copied_from(home / DATABASE)
            return asyncio.run(backups.make(fetch, target, None, keyed="none", shown=stepped))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast.journal.backup.PAGES", 8)
            last = await app.journal.last_commit()
            made = await asyncio.to_thread(run)
        assert await app.journal.last_commit() > last
    assert len(steps) > 3
    assert made.manifest["sound"]
    assert made.manifest["counts"]["runs"] == 30


async def test_a_backup_tells_what_it_holds(tmp_path: Path) -> None:
    kept = await small_backup(tmp_path)
    manifest = json.loads((kept / backups.MANIFEST).read_text())
    async with reading(tmp_path / "home" / DATABASE) as journal:
        assert manifest["last_commit"] == await journal.last_commit()
        assert manifest["schema"] == journal.schema
    assert (manifest["counts"]["runs"], manifest["counts"]["runs replayed"]) == (1, 1)
    assert names(kept) == [DATABASE, backups.MANIFEST]
    assert {one.stat().st_mode & 0o777 for one in kept.iterdir()} == {0o600}


async def test_the_key_goes_along_only_where_it_is_asked_for(tmp_path: Path) -> None:
    async with application(tmp_path / "home") as app:
        assert app.vault.derived("anything")
        await begin(app, 1)
    key = backups.key_of(tmp_path / "home" / DATABASE)
    assert key is not None
    without = await backed_up(tmp_path / "home", tmp_path / "without")
    assert not (without.place / KEY_FILE).exists()
    included = await backed_up(tmp_path / "home", tmp_path / "with", key)
    assert (included.place / KEY_FILE).read_bytes() == key.read_bytes()
    assert (included.place / KEY_FILE).stat().st_mode & 0o777 == 0o600
    await backups.restore(included.place, tmp_path / "again", unseen)
    assert (tmp_path / "again" / KEY_FILE).read_bytes() == key.read_bytes()


async def test_a_backup_is_put_where_nothing_is(tmp_path: Path) -> None:
    kept = await small_backup(tmp_path)
    with pytest.raises(NotAllowed, match="is there already"):
        await backed_up(tmp_path / "home", kept)
    with pytest.raises(NotFound, match="holds no runs"):
        await backed_up(tmp_path / "nowhere", tmp_path / "other")
    assert names(tmp_path) == ["home", "kept"]


async def test_a_home_that_is_there_is_not_restored_over(tmp_path: Path) -> None:
    kept = await small_backup(tmp_path)
    before = sorted((one.name, one.read_bytes()) for one in (tmp_path / "home").iterdir())
    with pytest.raises(NotAllowed, match="is not empty"):
        await backups.restore(kept, tmp_path / "home", unseen)
    assert sorted((one.name, one.read_bytes()) for one in (tmp_path / "home").iterdir()) == before
    (tmp_path / "empty").mkdir()
    await backups.restore(kept, tmp_path / "empty", unseen)
    assert (tmp_path / "empty" / DATABASE).exists()


async def test_a_backup_that_has_changed_makes_no_home(tmp_path: Path) -> None:
    kept = await small_backup(tmp_path)
    content = bytearray((kept / DATABASE).read_bytes())
    content[len(content) // 2] ^= 1
    (kept / DATABASE).write_bytes(content)
    with pytest.raises(JournalDamaged, match="has changed since the backup"):
        await backups.restore(kept, tmp_path / "again", unseen)
    assert names(tmp_path) == ["home", "kept"]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE events SET payload = replace(payload, 'run 0', 'run 1')", "changed since"),
        ("DELETE FROM events WHERE place & 0xFFFFFFFF = 2", "missing"),
        ("UPDATE runs SET status = 'done'", "status is not what its events say"),
        ("UPDATE positions SET given = 5000", "last_commit is not what"),
    ],
)
async def test_a_forged_backup_makes_no_home(tmp_path: Path, damage: str, told: str) -> None:
    kept = await small_backup(tmp_path)
    with closing(sqlite3.connect(kept / DATABASE)) as database, database:
        database.execute(damage)
    manifest = json.loads((kept / backups.MANIFEST).read_text())
    manifest["sha256"] = backups.sha256_of(kept / DATABASE)
    (kept / backups.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(JournalDamaged, match=told):
        await backups.restore(kept, tmp_path / "again", unseen)
    assert names(tmp_path) == ["home", "kept"]


async def test_the_backup_of_a_damaged_home_says_so(tmp_path: Path) -> None:
    await small_backup(tmp_path)
    with closing(sqlite3.connect(tmp_path / "home" / DATABASE)) as database, database:
        database.execute("UPDATE events SET payload = replace(payload, 'run 0', 'run 1')")
    made = await backed_up(tmp_path / "home", tmp_path / "damaged")
    assert made.report.findings
    assert not made.manifest["sound"]
    with pytest.raises(JournalDamaged, match="Nothing was restored"):
        await backups.restore(made.place, tmp_path / "again", unseen)


async def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"has no manifest\.json"):
        await backups.restore(tmp_path / "nothing", tmp_path / "again", unseen)


def test_postgresql_has_tools_of_its_own(tmp_path: Path) -> None:
    assert backups.file_of(tmp_path / DATABASE) == tmp_path / DATABASE
    with pytest.raises(OperatorError, match="pg_dump"):
        backups.file_of("postgresql://localhost/holdfast")
