"""The feed of all runs: one order, nothing lost to the slow, nothing shown to strangers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chains import chain
from listeners import Heard, listening_to, recorded, seen
from server_scene import Scene, furnish, start

from holdfast import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Committed, QuestionQuery, QuestionRow, Record
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.hub import Hub
from holdfast.server.streams import feed as feeding
from holdfast.server.streams import frames as telling
from holdfast.server.streams.feed import Entry, Feed, Ring, Sight
from holdfast.server.streams.sse import Frame, Frames, encoded
from holdfast.testing.journal_samples import birth, question_row
from holdfast.views.reader import RunReader

ALL = Sight(lambda name: True, everything=True)


class WatchedJournal(MemoryJournal):
    """Counts what is read, may have forgotten old commits, lack runs, and be down."""

    reads = 0
    text = 0
    forgotten_up_to = 0
    down = 0
    removed: str | None = None

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        if self.down:
            self.down -= 1
            raise JournalUnavailable("the disk is full")
        found = await super().commits(max(after, self.forgotten_up_to), limit)
        return [one for one in found if one.run_id != self.removed]

    async def forgotten(self) -> int:
        return self.forgotten_up_to

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        most_text: int | None = None,
    ) -> list[Record]:
        found = await super().read(run_id, after, limit, most_text)
        self.reads += 1
        self.text += sum(len(one.payload) for one in found)
        return found


class Ear:
    """A client of the feed that takes what it is given when it wants to."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.heard: list[Heard] = []
        self.cursor: str | None = None

    async def next(self) -> list[Heard]:
        """The blocks that one pull brings."""
        text = encoded(await anext(self.frames)).decode()
        blocks = [Heard.parse(one) for one in text.removesuffix("\n\n").split("\n\n")]
        for one in blocks:
            self.cursor = one.id or self.cursor
        self.heard += [one for one in blocks if "data" in one.fields]
        return blocks

    async def until(self, position: int) -> None:
        async with asyncio.timeout(30):
            while int(self.cursor or 0) < position:
                await self.next()


@asynccontextmanager
async def fed(ring: Ring | None = None) -> AsyncIterator[tuple[Holdfast, WatchedJournal, Feed]]:
    journal = WatchedJournal()
    app = Holdfast(journal=journal)
    furnish(app)
    async with app, Feed(RunReader(journal), app.engine.hub, app.engine.clock, ring) as feed:
        yield app, journal, feed


async def order(app: Holdfast) -> str:
    """A run that is over, of eight records."""
    instance = await app.plans.start_plan_by_prompt("", "apply_computer")
    await instance.wait_until_settled()
    [row] = [one for one in await app.inbox() if one.run_id == instance.id]
    await app.answer(row.question_id, data={"computer_model": "MacBook Pro"})
    await instance.wait_for_completion()
    return instance.id


async def pages(feed: Feed) -> list[list[tuple[int, Entry]]]:
    """The whole feed as it is read."""
    found, position, full = [], 0, True
    while full:
        page = await feed.after(position)
        assert page is not None
        full = page.full
        if page.entries:
            found.append(page.entries)
            position = page.entries[-1][0]
    return found


async def everything(journal: MemoryJournal, after: int = 0) -> list[tuple[str, int]]:
    """All records in the order of their commits."""
    found = []
    for one in await journal.commits(after, 10_000):
        found += [(one.run_id, seq) for seq in range(one.first, one.last + 1)]
    return found


async def test_the_feed_goes_on_from_any_cursor_and_misses_and_repeats_nothing() -> None:
    async with fed() as (app, journal, feed):
        await asyncio.gather(*(order(app) for _ in range(5)))
        last, expected = await journal.last_commit(), await everything(journal)
        assert len(expected) == last >= 40
        for cut in range(last):
            async with aclosing(feed.frames(ALL, str(cut))) as frames:
                ear = Ear(frames)
                await ear.until(last)
                assert recorded(ear.heard) == expected[cut:]
                assert [one.id for one in ear.heard] == [str(n) for n in range(cut + 1, last + 1)]


async def test_a_newcomer_sees_what_is_asked_and_then_what_comes() -> None:
    async with fed() as (app, journal, feed):
        instance = await app.plans.start_plan_by_prompt("", "apply_computer")
        await instance.wait_until_settled()
        now = await journal.last_commit()
        async with aclosing(feed.frames(ALL, None)) as frames:
            ear = Ear(frames)
            [question] = await ear.next()
            assert (question.event, question.id) == ("INTERACTION", None)
            assert question.data["runId"] == instance.id
            assert [one.fields for one in await ear.next()] == [{"id": str(now)}]
            await order(app)
            await ear.until(await journal.last_commit())
            assert recorded(ear.heard) == await everything(journal, now)


async def test_one_that_fell_out_of_the_ring_reads_the_journal_and_catches_up() -> None:
    async with fed(Ring(most_entries=4)) as (app, journal, feed):
        async with aclosing(feed.frames(ALL, "0")) as slow, aclosing(feed.frames(ALL, "0")) as fast:
            ear, other = Ear(slow), Ear(fast)
            for _ in range(4):
                await order(app)
                await other.until(await journal.last_commit())
                assert len(feed.ring) <= 4
            await ear.until(await journal.last_commit())
            assert recorded(ear.heard) == recorded(other.heard) == await everything(journal)
            await order(app)
            await ear.until(await journal.last_commit())
            assert recorded(ear.heard) == await everything(journal)
        assert feed.resyncs == 0


async def test_before_within_and_at_the_end_of_the_ring_every_cursor_is_served() -> None:
    ring = Ring(most_entries=4)
    async with fed(ring) as (app, journal, feed), aclosing(feed.frames(ALL, "0")) as first:
        ear = Ear(first)
        for _ in range(2):
            await order(app)
            await ear.until(await journal.last_commit())
        last, expected = await journal.last_commit(), await everything(journal)
        await seen(lambda: ring.high == last)
        assert len(ring) == 4
        for cut in range(last):
            assert feed.tails(cut) == (cut >= last - 4)
            async with aclosing(feed.frames(ALL, str(cut))) as frames:
                late = Ear(frames)
                await late.until(last)
                assert recorded(late.heard) == expected[cut:]


async def test_many_clients_cost_one_reading() -> None:
    async with fed() as (app, journal, feed):
        await order(app)
        now = str(await journal.last_commit())
        ears = [Ear(feed.frames(ALL, now)) for _ in range(20)]
        waiting = [asyncio.create_task(ear.next()) for ear in ears]
        await seen(lambda: feed.clients == 20 and feed.tails(int(now)))
        before = journal.reads
        await order(app)
        await asyncio.gather(*waiting)
        last = await journal.last_commit()
        await asyncio.gather(*(ear.until(last) for ear in ears))
        assert journal.reads - before <= last - int(now)
        assert all(ear.heard == ears[0].heard for ear in ears)
        for ear in ears:
            await ear.frames.aclose()


async def test_while_nobody_listens_nothing_is_read() -> None:
    async with fed() as (app, journal, feed):
        await order(app)
        before = journal.reads
        await order(app)
        await asyncio.sleep(0)
        assert (journal.reads - before, len(feed.ring), feed.clients) == (0, 0, 0)


async def test_a_cursor_that_is_no_longer_known_is_moved_to_now_and_told_so() -> None:
    async with fed() as (app, journal, feed):
        await order(app)
        journal.forgotten_up_to = 5
        last = await journal.last_commit()
        for cursor in ("2", str(last + 100)):
            async with aclosing(feed.frames(ALL, cursor)) as frames:
                ear = Ear(frames)
                [told] = await ear.next()
                assert (told.event, told.id) == ("resync", str(last))
                await order(app)
                last, before = await journal.last_commit(), last
                await ear.until(last)
                assert recorded(ear.heard[1:]) == (await everything(journal))[before - 5 :]
        assert feed.resyncs == 2


async def test_whoever_may_see_little_sees_that_and_is_told_where_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeding, "UNSEEN", 5)
    sight = Sight(lambda name: name == "plan:grant_access")
    async with fed() as (app, journal, feed), aclosing(feed.frames(sight, "0")) as behind:
        ear = Ear(behind)
        waiting = asyncio.create_task(ear.next())
        await order(app)
        assert [one.fields.keys() for one in await waiting] == [{"id"}]
        instance = await app.plans.start_plan_by_prompt("", "grant_access")
        await instance.wait_for_completion()
        await ear.until(await journal.last_commit())
        assert {run for run, _ in recorded(ear.heard)} == {instance.id}
        assert len(ear.heard) == await journal.version(instance.id)


async def test_a_journal_that_is_down_for_a_while_delays_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeding, "RETRY_JOURNAL", 0.01)
    async with fed() as (app, journal, feed):
        await order(app)
        now = await journal.last_commit()
        async with aclosing(feed.frames(ALL, str(now))) as frames:
            ear = Ear(frames)
            waiting = asyncio.create_task(ear.next())
            await seen(lambda: feed.tails(now))
            journal.down = 3
            await order(app)
            await waiting
            await ear.until(await journal.last_commit())
            assert recorded(ear.heard) == await everything(journal, now)


def test_the_ring_is_bounded_by_count_and_bytes() -> None:
    ring = Ring(most_entries=10, most_bytes=100)
    for position, size in enumerate([1] * 50 + [30] * 50, 1):
        ring.add(position, Entry("plan", b"x" * size))
        assert len(ring) <= 10
        assert ring.bytes <= 100
        assert ring.high - ring.low + 1 == len(ring)
    ring.add(101, Entry("plan", b"x" * 101))
    assert (len(ring), ring.bytes, ring.low) == (0, 0, ring.high + 1)


def test_the_ring_has_holes_where_the_journal_has() -> None:
    ring = Ring(most_entries=10)
    for position in (1, 2, 6, 9):
        ring.add(position, Entry("plan", b"%d" % position))
    assert [ring.chunk(after, ALL) for after in (0, 3, 6, 9)] == [
        *((b"1269", 9), (b"69", 9), (b"9", 9), (b"", 9))
    ]
    ring.add(1000, Entry("plan", b"z"))
    assert (len(ring), ring.low, ring.chunk(999, ALL)) == (1, 1000, (b"z", 1000))
    assert len(ring) == ring.high - ring.low + 1


async def test_where_a_run_was_removed_the_feed_goes_on_behind_it() -> None:
    async with fed() as (app, journal, feed), aclosing(feed.frames(ALL, "0")) as frames:
        ear = Ear(frames)
        await order(app)
        await ear.until(await journal.last_commit())
        # It is removed before the feed has read it; the next one follows a hole.
        journal.removed = "inst_000002"
        await order(app)
        await order(app)
        last, left = await journal.last_commit(), await everything(journal)
        await ear.until(last)
        assert recorded(ear.heard) == left
        assert {run_id for run_id, _ in left} == {"inst_000001", "inst_000003"}
        for cut in range(last):
            async with aclosing(feed.frames(ALL, str(cut))) as late:
                behind = Ear(late)
                await behind.until(last)
                assert recorded(behind.heard) == await everything(journal, cut)
        assert feed.resyncs == 0


async def test_what_is_larger_than_the_ring_is_told_all_the_same() -> None:
    ring = Ring(most_bytes=200)
    async with fed(ring) as (app, journal, feed), aclosing(feed.frames(ALL, "0")) as frames:
        ear = Ear(frames)
        await order(app)
        await ear.until(await journal.last_commit())
        assert recorded(ear.heard) == await everything(journal)
        assert feed.ring.bytes <= 200


async def test_a_client_is_handed_a_chunk_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "CHUNK", 500)
    async with fed() as (app, journal, feed):
        await order(app)
        longest = max(len(entry.body) for _, entry in (await pages(feed))[0])
        async with aclosing(feed.frames(ALL, "0")) as frames:
            size = 0
            ear = Ear(frames)
            while int(ear.cursor or 0) < await journal.last_commit():
                part = "".join(
                    f"{name}: {text}\n"
                    for one in await ear.next()
                    for name, text in one.fields.items()
                )
                size = max(size, len(part.encode()))
        assert size <= 500 + longest


async def test_of_large_records_no_more_is_read_than_is_handed_on() -> None:
    async with fed() as (app, journal, feed):

        async def touch() -> dict[str, str]:
            return {"note": "x" * 50_000}

        app.tool(touch, idempotent=True)
        app.load_plan_text(chain(30))
        started = [await app.plans.start_plan_by_prompt("", "chain") for _ in range(3)]
        for instance in started:
            assert await instance.wait_for_completion() == "done"
        last, before = await journal.last_commit(), journal.text
        read = await pages(feed)
        assert [place for page in read for place, _ in page] == [*range(1, last + 1)]
        sizes = [[len(entry.body) for _, entry in page] for page in read]
        largest, total = max(map(max, sizes)), sum(map(sum, sizes))
        assert total > 3 * 30 * 50_000
        assert max(map(sum, sizes)) < 2 * feeding.CHUNK + largest
        assert journal.text - before < 2 * total
        async with aclosing(feed.frames(ALL, "0")) as frames:
            ear = Ear(frames)
            await ear.until(last)
            assert recorded(ear.heard) == await everything(journal)
        assert journal.text - before < 4 * total


async def test_large_records_reach_those_who_go_along_the_ring() -> None:
    async with fed() as (app, journal, feed), aclosing(feed.frames(ALL, "0")) as frames:

        async def touch() -> dict[str, str]:
            return {"note": "x" * 50_000}

        app.tool(touch, idempotent=True)
        app.load_plan_text(chain(30))
        ear = Ear(frames)
        waiting = asyncio.create_task(ear.next())
        instance = await app.plans.start_plan_by_prompt("", "chain")
        assert await instance.wait_for_completion() == "done"
        await waiting
        await ear.until(await journal.last_commit())
        assert recorded(ear.heard) == await everything(journal)
        assert feed.resyncs == 0


async def test_over_http_people_hear_of_what_they_may_see(scene: Scene) -> None:
    narrow = await scene.somebody(grants={"grant_access": ["viewer"]})
    async with (
        asyncio.timeout(30),
        listening_to(scene.admin, "/events") as wide,
        listening_to(narrow, "/events") as little,
    ):
        await wide.block()
        await little.block()
        hidden = await start(scene)
        shown = await start(scene, "grant_access")
        told = await wide.until("RunCompleted")
        assert {run for run, _ in recorded(told)} == {hidden, shown}
        told = await little.until("RunCompleted")
        assert {run for run, _ in recorded(told)} == {shown}
        cursor = told[0].id
    async with asyncio.timeout(30), listening_to(narrow, "/events", last=cursor) as little:
        again = await little.until("RunCompleted")
        assert [one.fields for one in again] == [one.fields for one in told[1:]]


async def test_over_http_a_bad_cursor_and_a_stranger_are_refused(scene: Scene) -> None:
    for bad in ("soon", "-1", "1.5", "9" * 40):
        answer = await scene.admin.get("/events", params={"after": bad})
        assert answer.status_code == 422, bad
    assert (await scene.stranger.get("/events")).status_code == 401
    nobody = await scene.somebody()
    assert (await nobody.get("/events")).status_code == 403


async def test_more_questions_than_a_newcomer_is_shown_are_announced(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.streams.frames.MOST_QUESTIONS", 2)
    for _ in range(3):
        await start(scene)
    async with asyncio.timeout(30), listening_to(scene.admin, "/events") as one:
        *shown, more = [await one.event() for _ in range(3)]
        assert [heard.event for heard in shown] == ["INTERACTION"] * 2
        assert more.event == "MORE_QUESTIONS"
        assert more.data == {"after": shown[-1].data["requestId"]}
    left: Any = (await scene.admin.get("/interactions", params=more.data)).json()
    assert len(left["interactions"]) == 1


async def test_many_questions_that_are_hidden_are_not_all_gone_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telling, "_PAGE", 2)
    monkeypatch.setattr(telling, "_MOST_PAGES", 3)
    journal, looked_at, turns = MemoryJournal(), list[str](), 0
    await journal.open()
    for number in range(1, 11):
        run_id = f"inst_{number:06}"
        asked = [question_row(f"q{number}", run_id)]
        await journal.append(replace(birth(run_id), questions=asked))

    async def hidden(row: QuestionRow) -> bool:
        looked_at.append(row.question_id)
        return False

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    found = telling.open_questions(RunReader(journal), QuestionQuery(), hidden, lambda: 0.0, "en")
    assert [one async for one in found] == [Frame({"after": "q6"}, "MORE_QUESTIONS")]
    assert looked_at == [f"q{number}" for number in range(1, 7)]
    assert turns >= 2
    beside.cancel()
    await journal.close()


@pytest.mark.own_store  # its file is damaged
async def test_a_damaged_record_is_told_as_such_and_hides_no_other(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    furnish(app)
    async with app:
        for _ in range(3):
            await order(app)
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as other, other:
        other.execute("UPDATE events SET at = at + 1 WHERE place = (2 << 32 | 2)")
    async with app, Feed(RunReader.of(app), app.engine.hub, app.engine.clock) as feed:
        page = await feed.after(0)
        assert page is not None
        told = [(place, entry.body) for place, entry in page.entries]
        assert [place for place, _ in told] == list(range(1, len(told) + 1))
        damaged = [frame for _, frame in told if b"RecordDamaged" in frame]
        assert damaged
        assert all(b'"inst_000002"' in frame for frame in damaged)
        sound = [frame for _, frame in told if b'"inst_000003"' in frame]
        assert len(sound) == await app.journal.version("inst_000003")


async def test_a_run_that_is_removed_while_it_is_read_leaves_a_hole() -> None:
    """The feed has its place among the commits, and finds nothing of it any more."""

    class Leaving(MemoryJournal):
        async def read(self, run_id: str, *given: Any, **more: Any) -> list[Record]:
            return [] if run_id == "b" else await super().read(run_id, *given, **more)

    journal = Leaving()
    await journal.open()
    for run_id in ("a", "b", "c"):
        await journal.append(birth(run_id, 2))
    feed = Feed(RunReader(journal), Hub(journal), SystemClock())
    page = await feed.after(0)
    assert page is not None
    assert [place for place, _ in page.entries] == [1, 2, 3, 4, 5, 6]
    assert [entry.name == "" for _, entry in page.entries] == [
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    await journal.close()
