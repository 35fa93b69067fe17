"""Health, readiness and numbers."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from chat_scene import asks_to_pay, employ
from server_scene import Scene, serving, start

from holdfast import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Attached
from holdfast.server import readiness as probe
from holdfast.testing.journal_samples import birth

LATE = """
plan_id: late
name: Late
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Still there?
    success_output: {task_id: "001", status: Done}
"""


class Moody(MemoryJournal):
    """A journal that takes nothing while it is in the mood."""

    refuses = False
    asked = 0

    async def attach(self, attached: Attached) -> None:
        self.asked += 1
        if self.refuses:
            raise JournalUnavailable("the disk of /secret/place is full")
        await super().attach(attached)


async def test_anybody_may_ask_whether_it_lives(scene: Scene) -> None:
    assert (await scene.stranger.get("/healthz")).json() == {"status": "alive"}
    assert (await scene.stranger.get("/readyz")).json() == {"status": "ready", "damaged_runs": 0}


@pytest.mark.own_store  # its file is damaged
async def test_a_run_that_cannot_be_read_is_counted_while_the_others_go_on(tmp_path: Path) -> None:
    """Also one that nobody asks for: its timer has come."""
    async with serving(late(tmp_path)) as scene:
        await start(scene, "late")
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as other, other:
        other.execute("UPDATE events SET payload = '{}' WHERE place & 7 = 2")
        other.execute("UPDATE runs SET wake_at = 1")
    app = late(tmp_path)
    async with serving(app) as scene:
        async with asyncio.timeout(20):
            while not app.engine.damaged:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
        ready = await scene.stranger.get("/readyz")
        assert ready.json() == {"status": "ready", "damaged_runs": 1}
        refused = await scene.admin.get("/runs/inst_000001")
        assert refused.status_code == 503


def late(home: Path) -> Holdfast:
    app = Holdfast(home)
    app.load_plan_text(LATE)
    return app


async def test_it_is_not_ready_while_the_journal_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.0)
    journal = Moody()
    async with Holdfast(journal=journal) as app, serving(app) as scene:
        journal.refuses = True
        refused = await scene.stranger.get("/readyz")
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        assert "/secret/place" not in refused.text
        assert (await scene.stranger.get("/healthz")).status_code == 200
        journal.refuses = False
        assert (await scene.stranger.get("/readyz")).status_code == 200


async def test_however_many_ask_the_journal_is_asked_once() -> None:
    journal = Moody()
    async with Holdfast(journal=journal) as app, serving(app) as scene:
        before = journal.asked
        for _ in range(5):
            await scene.stranger.get("/readyz")
        assert journal.asked - before <= 2


async def test_the_numbers_tell_of_runs_questions_requests_and_streams(app: Holdfast) -> None:
    employ(app)
    async with serving(app) as scene:
        await asks_to_pay(scene)
        await scene.stranger.get("/chats")
        await scene.stranger.get("/no/such/place/4711")
        viewer = await scene.as_a("viewer")
        answer = await viewer.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = answer.text.splitlines()
        assert 'holdfast_runs{kind="react",status="pause"} 1' in lines
        assert 'holdfast_interactions{status="open",type="TOOL_APPROVAL"} 1' in lines
        chats = 'holdfast_http_requests_total{method="GET",route="/chats",status="401"} 1'
        assert chats in lines
        unrouted = 'holdfast_http_requests_total{method="GET",route="(none)",status="404"} 1'
        assert unrouted in lines
        assert "holdfast_stream_clients 0" in lines
        assert "holdfast_refused_logins_total 1" in lines
        assert "holdfast_uptime_seconds" in answer.text
        assert "4711" not in answer.text
        assert "chat_000001" not in answer.text


async def test_the_numbers_are_for_who_may_read_everything(scene: Scene) -> None:
    assert (await scene.stranger.get("/metrics")).status_code == 401
    guest = await scene.somebody(grants={"apply_computer": ["admin"]}, name="guest")
    assert (await guest.get("/metrics")).status_code == 403


async def test_a_real_journal_is_ready(tmp_path: Path) -> None:
    async with Holdfast(tmp_path) as app, serving(app) as scene:
        assert (await scene.stranger.get("/readyz")).status_code == 200


async def test_of_a_database_the_numbers_tell_of_jobs_workers_and_order(database: str) -> None:
    idle = {"unsealed_records", "jobs_waiting", "jobs_stalled", "workers", "slots_held"}
    async with Holdfast(database=database, drives=False) as app, serving(app) as scene:
        follower = app.engine.follower
        assert follower is not None
        follower.sweeps.clear()  # it would seal what is to be seen unsealed
        lines = (await scene.admin.get("/metrics")).text.splitlines()
        assert {f"holdfast_{one} 0" for one in idle - {"unsealed_records"}} <= set(lines)
        await app.journal.append(birth("a", 3, active=True))
        lines = await _numbers(scene)
        assert (lines["holdfast_unsealed_records"], lines["holdfast_jobs_waiting"]) == (3.0, 1.0)
        assert lines["holdfast_sealing_lag_seconds"] > 0
        with psycopg.connect(database, autocommit=True) as prompt:
            prompt.execute(b"UPDATE procrastinate_jobs SET scheduled_at = now() - interval '90 s'")
            prompt.execute(b"INSERT INTO slots SELECT generate_series(1, 4)")
            prompt.execute(b"INSERT INTO procrastinate_workers DEFAULT VALUES")
            prompt.execute(b"UPDATE slots SET worker = (SELECT max(id) FROM procrastinate_workers)")
            lines = await _numbers(scene)
            assert 90 <= lines["holdfast_oldest_job_seconds"] < 150
            assert (lines["holdfast_workers"], lines["holdfast_slots_held"]) == (1.0, 4.0)
            gone = b"UPDATE procrastinate_workers SET last_heartbeat = now() - interval '9 s'"
            prompt.execute(gone)
            prompt.execute(b"UPDATE procrastinate_jobs SET status = 'doing'")
            lines = await _numbers(scene)
        assert (lines["holdfast_workers"], lines["holdfast_slots_held"]) == (0.0, 0.0)
        assert (lines["holdfast_jobs_stalled"], lines["holdfast_jobs_driven"]) == (1.0, 1.0)


async def _numbers(scene: Scene) -> dict[str, float]:
    text = (await scene.admin.get("/metrics")).text
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}
