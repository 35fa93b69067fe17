"""What a caller sends holds nobody up: long work is cut into turns, bounded, or done beside the
loop. How long it takes is measured by `python -m bench.stalls`, not here."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from chat_scene import employ, open_chat, tell
from server_scene import Scene, serving, start

from holdfast import Holdfast
from holdfast.i18n.catalogue import said
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Attached, AuditRecord
from holdfast.runtime.offload import MOST_WAITING, aside
from holdfast.server import registered_plans as registered
from holdfast.server.problems import MOST_SPOKEN, in_language, problem
from holdfast.server.routes import audit, plans
from holdfast.server.serving import keep_for_good
from holdfast.views import reader
from holdfast.views.reader import RunReader
from holdfast.views.timeline import Following

OURS = "this is required: please fill it in"


async def test_long_work_is_done_by_one_worker_beside_the_loop() -> None:
    here = threading.get_ident()
    at_once, most = 0, 0

    def work() -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return threading.get_ident()
        finally:
            at_once -= 1

    ran = await asyncio.gather(*(aside(work) for _ in range(20)))
    assert len(set(ran)) == 1
    assert here not in ran
    assert most == 1


async def test_only_so_much_long_work_waits_and_the_rest_is_told_to_come_again(
    scene: Scene,
) -> None:
    """Whoever has gone meanwhile makes room, and what waited is done."""
    go_on = threading.Event()
    try:
        waiting = [asyncio.create_task(aside(go_on.wait)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        check = {"json": {"source": SOURCE}}
        refused = await scene.admin.post("/plans/check", **check)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json()["title"] == "Busy"
        assert "try again in a moment" in refused.json()["detail"]
        chinese = {"headers": {"Accept-Language": "zh"}}
        told = await scene.admin.post("/plans/check", **check, **chinese)
        assert "请稍后再试" in told.json()["detail"]
        waiting.pop().cancel()
        await asyncio.sleep(0)
        taken = asyncio.create_task(scene.admin.post("/plans/check", **check))
        await asyncio.sleep(0)
        go_on.set()
        assert await asyncio.gather(*waiting) == [True] * (MOST_WAITING - 1)
        assert (await taken).status_code == 200
    finally:
        go_on.set()


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        (registered, "load_plan", "/plans/check"),
        (plans, "plan_digest", "/plans/check"),
        (plans, "_shown", "/plans/apply_computer"),
        (plans, "render_svg", "/plans/apply_computer/graph.svg"),
    ],
)
async def test_plans_are_read_and_drawn_beside_the_loop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, path: str
) -> None:
    original, threads = getattr(module, name), set()

    def watched(*args: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name)
        return original(*args, **options)

    monkeypatch.setattr(module, name, watched)
    if path.endswith("check"):
        shown = (await scene.admin.get("/plans/apply_computer")).json()
        source = SOURCE if shown["source"] is None else shown["source"]
        assert (await scene.admin.post(path, json={"source": source})).status_code == 200
    else:
        assert (await scene.admin.get(path)).status_code == 200
    assert threads
    assert all(one.startswith("holdfast-aside") for one in threads)


SOURCE = """
plan_id: greet
name: Greet
main_task_id: "001"
tasks: [{task_id: "001", name: Greeted}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = 1"
    success_output: {task_id: "001", status: Done}
"""


class Turns:
    """Counts how often others had a turn."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


async def test_others_have_a_turn_while_the_audit_is_verified() -> None:
    journal = MemoryJournal()
    await journal.open()
    await journal.attach(Attached([AuditRecord(1.0, "Will", "did") for _ in range(2_000)]))
    turns = Turns()
    taking = asyncio.create_task(turns.take())
    assert (await audit.verified(RunReader(journal))).entries == 2_000
    taking.cancel()
    assert turns.count >= 2_000 // audit.SLICE


async def test_others_have_a_turn_while_a_timeline_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "TURN_SECONDS", 0.0)
    run_id = await start(scene, "grant_access")
    turns = Turns()
    taking = asyncio.create_task(turns.take())
    entries = await RunReader.of(scene.app).timeline(run_id)
    taking.cancel()
    assert len(entries) > 4
    assert turns.count >= len(entries)


async def test_others_have_a_turn_while_a_session_is_recalled(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "RECALLED", 1)
    turns = Turns()
    seen: list[int] = []
    original = Following.recall

    def recall(self: Following, records: Any) -> None:
        seen.append(turns.count)
        original(self, records)

    monkeypatch.setattr(Following, "recall", recall)
    employ(app)
    async with serving(app) as scene:
        session_id = await open_chat(scene.admin)
        await tell(scene, scene.admin, session_id, "hello")
        runs = RunReader.of(app)
        last = await runs.version(session_id)
        taking = asyncio.create_task(turns.take())
        await runs.timeline(session_id, last - 1)
        taking.cancel()
    assert len(set(seen)) == last - 1 > 2


async def test_others_have_a_turn_between_the_cards_of_an_inbox(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await start(scene)
    turns = Turns()
    seen: list[int] = []
    from holdfast.server.questions import Questions

    original = Questions.shown

    async def shown(self: Questions, *args: Any, **options: Any) -> Any:
        seen.append(turns.count)
        return await original(self, *args, **options)

    monkeypatch.setattr(Questions, "shown", shown)
    taking = asyncio.create_task(turns.take())
    assert (await scene.admin.get("/interactions")).status_code == 200
    taking.cancel()
    assert len(seen) == 5
    assert len(set(seen)) == 5


def test_a_text_is_looked_up_by_its_lines_and_never_part_by_part() -> None:
    assert said(OURS, "zh") != OURS
    assert said("; ".join([OURS] * 100), "zh") == "; ".join([OURS] * 100)
    short = "\n".join(["x"] * 1_000)
    assert said(short, "zh") == short


def test_of_many_mistakes_the_first_are_put_into_the_readers_language() -> None:
    fields = {str(number): OURS for number in range(MOST_SPOKEN + 1)}
    problems = [{"message": OURS}] * (MOST_SPOKEN + 1)
    told = in_language(problem(422, OURS, extra={"fields": fields, "problems": problems}), "zh")
    for found in (list(told["fields"].values()), [one["message"] for one in told["problems"]]):
        assert found[MOST_SPOKEN - 1] != OURS
        assert found[MOST_SPOKEN] == OURS


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"k{number}: &a{number} x\n" for number in range(25_000)),
        "".join(f"k{number}: x\n" for number in range(10_000)),
        "a: [" + "1," * 240_000 + "]",
        "plan_id: x\ntasks:\n" + '  - {task_id: "1"}\n' * 11_000,
        "- " + "!" + "t" * 400_000 + " x",
    ],
)
@pytest.mark.parametrize("path", ["/plans/check", "/plans"])
async def test_a_source_full_of_mistakes_is_answered_in_short(
    scene: Scene, source: str, path: str
) -> None:
    chinese = {"Accept-Language": "zh"}
    refused = await scene.admin.post(path, json={"source": source}, headers=chinese)
    assert refused.status_code == 422
    assert 0 < len(refused.json()["problems"]) <= MOST_SPOKEN
    assert "more" not in refused.json()["problems"][-1]["message"]
    assert len(refused.content) < 100_000


async def test_what_a_server_begins_with_is_not_looked_at_by_the_collector_again() -> None:
    async with Holdfast.in_memory() as app:
        before = gc.get_freeze_count()
        keep_for_good(app, app.asgi())
        assert gc.get_freeze_count() > before


async def test_a_server_leaves_the_collector_alone_where_its_application_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("frozen"))
    async with Holdfast.in_memory(tune_collector=False) as app:
        keep_for_good(app, app.asgi())
    assert frozen == []
