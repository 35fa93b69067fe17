"""The conformance suite of shared journals: what holds where two of them are open on one store.

Subclass `SharedSuite` beside `JournalSuite`. Besides `connect` it needs two fixtures: `jobs`, a
function that tells the drive jobs in the store in order of their ids, and `lose_jobs`, one that
removes them all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TypeAlias

import pytest

from holdfast.errors import (
    JournalUnavailable,
    NameGone,
    NameTaken,
    Superseded,
    VersionConflict,
)
from holdfast.journal.port import Append, Attached, Drive, ExpiringValue, OutboxMessage, verify
from holdfast.journal.shared import SharedJournal
from holdfast.model.record import record
from holdfast.testing.journal_keeping import assert_gapless, did, places
from holdfast.testing.journal_samples import (
    birth,
    outcomes,
    question_row,
    records,
    run_row,
    step,
)


@record
class Job:
    """A drive job as the dispatcher has it; `status` is "todo" or "doing"."""

    id: int
    run_id: str
    status: str
    attempt: int


Jobs: TypeAlias = Callable[[], Awaitable[list[Job]]]


def asleep(append: Append) -> Append:
    return replace(append, row=run_row(append.run_id, active=False))


def awake(append: Append) -> Append:
    return replace(append, row=run_row(append.run_id, active=True))


class SharedSuite:
    """The behaviours, one test each."""

    @pytest.fixture
    async def journals(
        self, connect: Callable[[], SharedJournal]
    ) -> AsyncIterator[tuple[SharedJournal, SharedJournal]]:
        first, second = connect(), connect()
        await first.open()
        await second.open()
        yield first, second
        await first.close()
        await second.close()

    @pytest.fixture
    def first(self, journals: tuple[SharedJournal, SharedJournal]) -> SharedJournal:
        return journals[0]

    @pytest.fixture
    def second(self, journals: tuple[SharedJournal, SharedJournal]) -> SharedJournal:
        return journals[1]

    async def test_what_one_has_appended_the_other_reads_at_once(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        assert first.shared
        await first.append(birth())
        await second.append(step("inst_000001", 1, count=2))
        assert await first.append(step("inst_000001", 3)) == 4
        assert await second.read("inst_000001") == records(0, 4)
        assert await first.versions(["inst_000001", "inst_000404"]) == {"inst_000001": 4}
        assert await second.versions([]) == {}

    async def test_of_rivals_at_two_journals_one_wins(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        for run_id in ("a", "b"):
            told = await asyncio.gather(
                *(outcomes(one, [birth(run_id)] * 10) for one in (first, second))
            )
            words = [word for some in told for word in some]
            assert Counter(map(type, words)) == {int: 1, VersionConflict: 19}
        for expected in range(1, 20):
            told = await asyncio.gather(
                *(outcomes(one, [step("a", expected)] * 5) for one in (first, second))
            )
            words = [word for some in told for word in some]
            assert Counter(map(type, words)) == {int: 1, VersionConflict: 9}

    async def test_two_that_append_to_the_same_runs_hold_nobody_up(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        names = [f"inst_{n:06d}" for n in range(20)]
        await outcomes(first, [birth(name) for name in names])

        async def go_on(journal: SharedJournal, name: str, other: str) -> None:
            for n in range(10):
                version = await journal.version(name)
                notice = OutboxMessage(other, name, version + 1, "{}")
                asked = question_row(f"{name} {version}", name)
                append = awake(step(name, version))
                if n % 2:
                    append = replace(append, notices=[notice], questions=[asked])
                with suppress(VersionConflict):
                    await journal.append(append)

        await asyncio.gather(
            *(go_on(first, name, names[0]) for name in names),
            *(go_on(second, name, names[-1]) for name in reversed(names)),
        )
        versions = await first.versions(names)
        assert all(version >= 11 for version in versions.values())
        assert_gapless(await second.commits(), sum(versions.values()))

    async def test_no_number_is_given_twice(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        await first.append(birth("inst_000005"))
        numbers = await asyncio.gather(
            *(one.next_number("inst") for one in (first, second) for _ in range(50))
        )
        assert sorted(numbers) == list(range(6, 106))

    async def test_of_many_who_claim_a_name_one_has_it(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        def claiming(n: int) -> Append:
            claimed = ExpiringValue("request", "key", f'"inst_{n:06d}"')
            return replace(birth(f"inst_{n:06d}"), attached=Attached(claimed=[claimed], at=10.0))

        told = await asyncio.gather(
            *(
                outcomes(one, [claiming(2 * n + side) for n in range(10)])
                for side, one in enumerate((first, second))
            )
        )
        words = [word for some in told for word in some]
        assert Counter(map(type, words)) == {int: 1, NameTaken: 19}
        [row] = await second.runs()
        kept = await first.kept("request", "key", 10.0)
        assert kept is not None
        assert kept.body == f'"{row.run_id}"'

    async def test_of_many_who_spend_what_is_kept_one_does(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        await first.attach(Attached(kept=[ExpiringValue("link", "l", "{}", 99.0)]))
        spending = Attached(spent=[("link", "l")], at=10.0)
        told = await asyncio.gather(
            *(one.attach(spending) for one in (first, second) for _ in range(10)),
            return_exceptions=True,
        )
        assert Counter(map(type, told)) == {type(None): 1, NameGone: 19}

    async def test_every_record_and_deed_is_sealed_once(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        async def live(journal: SharedJournal, run_id: str) -> None:
            version = await journal.append(replace(birth(run_id), attached=did(f"{run_id} 0")))
            for n in range(1, 15):
                deed = did(f"{run_id} {n}") if n % 3 == 0 else Attached()
                version = await journal.append(step(run_id, version, count=2, attached=deed))

        async def read_along() -> None:
            while not done.is_set():
                for journal in (first, second):
                    seen.extend(await journal.commits(seen[-1].position if seen else 0))
                    await journal.audit(limit=1)

        seen = await first.commits()
        done = asyncio.Event()
        reading = asyncio.create_task(read_along())
        names = [f"inst_{n:06d}" for n in range(8)]
        await asyncio.gather(*(live((first, second)[n % 2], name) for n, name in enumerate(names)))
        done.set()
        await reading
        seen.extend(await second.commits(seen[-1].position))
        assert_gapless(seen, 8 * 29)
        assert places(await first.commits()) == places(seen)
        for name in names:
            assert [n for _, run_id, n in places(seen) if run_id == name] == list(range(1, 30))
        entries = await first.audit()
        assert verify(entries) is None
        assert entries == await second.audit()
        deeds = [entry.record.action for entry in entries]
        assert sorted(deeds) == sorted(f"{name} {n}" for name in names for n in range(0, 15, 3))
        for name in names:
            mine = [int(deed.split()[1]) for deed in deeds if deed.split()[0] == name]
            assert mine == sorted(mine)

    async def test_a_driver_is_superseded_by_a_later_one(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        await first.append(birth())
        old, again, other = Drive(5, 0), Drive(5, 1), Drive(9, 0)
        assert await first.take("inst_000001", old) == 1
        assert await first.take("inst_000001", old) == 1
        await first.append(step("inst_000001", 1, drive=old))
        assert await second.take("inst_000001", again) == 2
        assert not await first.take("inst_000001", old)
        stale = step("inst_000001", 2, drive=old, row=run_row(status="done"))
        for append in (
            stale,
            step("inst_000001", 2, drive=old),
            step("inst_000001", 1, drive=old),
            step("inst_000001", 2, drive=old, questions=[question_row("q1")]),
        ):
            with pytest.raises(Superseded, match="inst_000001"):
                await first.append(append)
        assert await second.append(step("inst_000001", 2, drive=again)) == 3
        assert await first.take("inst_000001", other)
        assert not await second.take("inst_000001", again)
        assert await first.run("inst_000001") == run_row()
        assert await first.question("q1") is None
        assert not await first.take("inst_000404", other)

    async def test_a_crowd_of_drivers_is_judged_one_by_one(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        names = [f"inst_{n:06d}" for n in range(12)]
        await outcomes(first, [birth(name) for name in names])
        for n, name in enumerate(names):
            assert await first.take(name, Drive(n + 1, 0))
            if n % 3 == 0:
                assert await second.take(name, Drive(100 + n, 0))
        told = await outcomes(
            first,
            [
                step(name, 7 if n % 3 == 1 else 1, drive=Drive(n + 1, 0))
                for n, name in enumerate(names)
            ],
        )
        expected = [Superseded, VersionConflict, int]
        assert [type(word) for word in told] == [expected[n % 3] for n in range(12)]

    async def test_who_does_not_drive_is_not_asked_who_does(self, first: SharedJournal) -> None:
        await first.append(birth())
        await first.take("inst_000001", Drive(5, 0))
        assert await first.append(step("inst_000001", 1)) == 2
        with pytest.raises(VersionConflict):
            await first.append(step("inst_000001", 1, drive=Drive(5, 0)))

    async def test_a_birth_that_is_active_is_to_be_driven(
        self, first: SharedJournal, jobs: Jobs
    ) -> None:
        child = birth("inst_000001.1", parent_id="inst_000001", active=True)
        await first.append(replace(birth(active=True), child_appends=[child]))
        await first.append(birth("inst_000002", active=False))
        assert [(job.run_id, job.status) for job in await jobs()] == [
            ("inst_000001", "todo"),
            ("inst_000001.1", "todo"),
        ]

    async def test_what_wakes_a_run_has_it_driven_once(
        self, first: SharedJournal, second: SharedJournal, jobs: Jobs
    ) -> None:
        await first.append(birth())
        await second.append(step("inst_000001", 1))
        await second.append(asleep(step("inst_000001", 2)))
        assert await jobs() == []
        await second.append(awake(step("inst_000001", 3)))
        [job] = await jobs()
        assert (job.run_id, job.status) == ("inst_000001", "todo")
        await first.append(awake(step("inst_000001", 4)))
        await first.append(asleep(step("inst_000001", 5)))
        await first.append(awake(step("inst_000001", 6)))
        assert await jobs() == [job]

    async def test_what_its_driver_does_wakes_nobody(
        self, first: SharedJournal, jobs: Jobs
    ) -> None:
        await first.append(birth())
        await first.take("inst_000001", Drive(5, 0))
        await first.append(replace(awake(step("inst_000001", 1)), drive=Drive(5, 0)))
        assert await jobs() == []

    async def test_an_append_that_fails_has_nothing_driven(
        self, first: SharedJournal, jobs: Jobs
    ) -> None:
        await outcomes(first, [birth(), birth("taken")])
        word = OutboxMessage("taken", "inst_000001", 2, "{}")
        held = Attached(spent=[("link", "never")])
        for failing in (
            awake(step("inst_000001", 7)),
            step("inst_000001", 7, notices=[word]),
            replace(awake(step("inst_000001", 1)), child_appends=[birth("taken", active=True)]),
            replace(awake(step("inst_000001", 1)), attached=held),
            birth("taken", active=True),
        ):
            with pytest.raises((VersionConflict, NameGone)):
                await first.append(failing)
        assert await jobs() == []

    async def test_a_notice_has_its_target_driven(self, first: SharedJournal, jobs: Jobs) -> None:
        await outcomes(first, [birth("parent", active=False), birth("child"), birth("other")])
        await first.take("child", Drive(5, 0))
        word = OutboxMessage("parent", "child", 2, "{}")
        await first.append(step("child", 1, notices=[word], drive=Drive(5, 0)))
        assert [job.run_id for job in await jobs()] == ["parent"]
        assert await first.notices_for(["parent", "other"]) == [word]
        assert await first.notices_for(["other"]) == []

    async def test_a_birth_may_be_driven_by_who_bears_it(
        self, first: SharedJournal, second: SharedJournal, jobs: Jobs
    ) -> None:
        [job, another] = await first.reserve_jobs(2)
        assert another > job
        assert not set(await second.reserve_jobs(2)) & {job, another}
        drive = Drive(job, 0)
        await first.append(replace(birth(active=True), drive=drive))
        assert await jobs() == [Job(job, "inst_000001", "doing", 0)]
        assert not await second.take("inst_000001", Drive(job - 1, 3))
        word = OutboxMessage("inst_000001", "child", 2, "{}")
        await second.append(birth("child"))
        await second.append(step("child", 1, notices=[word]))
        assert [(one.run_id, one.status) for one in await jobs()] == [
            ("inst_000001", "doing"),
            ("inst_000001", "todo"),
        ]
        ending = replace(asleep(step("inst_000001", 1)), drive=drive, ends_drive=True)
        with pytest.raises(VersionConflict):
            await first.append(replace(ending, expected=3, records=records(3, 1)))
        assert len(await jobs()) == 2
        await first.append(ending)
        assert [one.status for one in await jobs()] == ["todo"]

    async def test_many_drives_end_together(self, first: SharedJournal, jobs: Jobs) -> None:
        ids = await first.reserve_jobs(10)
        drives = {f"inst_{n:06d}": Drive(job, 0) for n, job in enumerate(ids)}
        told = await outcomes(
            first, [replace(birth(name, active=True), drive=one) for name, one in drives.items()]
        )
        assert told == [1] * 10
        assert [job.status for job in await jobs()] == ["doing"] * 10
        ending = [
            replace(asleep(step(name, 1 if n else 5)), drive=one, ends_drive=True)
            for n, (name, one) in enumerate(drives.items())
        ]
        told = await outcomes(first, ending)
        assert [type(word) for word in told] == [VersionConflict, *[int] * 9]
        assert [job.id for job in await jobs()] == [ids[0]]

    async def test_timers_that_are_due_have_their_runs_driven(
        self, first: SharedJournal, second: SharedJournal, jobs: Jobs
    ) -> None:
        for name, active, wake_at in [
            ("a", False, 30.0),
            ("b", False, 10.0),
            ("c", True, 5.0),
            ("d", False, None),
            ("e", False, 20.0),
        ]:
            row = run_row(name, active=active, wake_at=wake_at)
            await first.append(replace(birth(name), row=row))
        before = len(await jobs())
        assert await first.wake_due(9.0) == 0
        assert sum(await asyncio.gather(first.wake_due(20.0), second.wake_due(20.0))) == 2
        assert [job.run_id for job in await jobs()][before:] == ["b", "e"]
        assert await second.wake_due(20.0) == 0
        assert await first.active_runs() == ["b", "c", "e"]
        assert await first.version("b") == 1
        assert await first.wake_due(99.0, limit=1) == 1

    async def test_what_was_forgotten_is_driven(
        self, first: SharedJournal, jobs: Jobs, lose_jobs: Callable[[], Awaitable[None]]
    ) -> None:
        await outcomes(first, [birth("a", active=True), birth("b"), birth("c"), birth("d")])
        await first.append(step("b", 1, notices=[OutboxMessage("c", "b", 2, "{}")]))
        assert await first.wake_forgotten() == 0
        await lose_jobs()
        assert await first.wake_forgotten(limit=1) == 1
        assert await first.wake_forgotten() == 1
        assert await first.wake_forgotten() == 0
        assert sorted(job.run_id for job in await jobs()) == ["a", "c"]

    async def test_what_one_tells_all_hear(
        self, first: SharedJournal, second: SharedJournal
    ) -> None:
        async with aclosing(first.hints()) as here, aclosing(second.hints()) as there:
            assert [await anext(here), await anext(there)] == ["", ""]
            await first.tell(["one", "张三"])
            await second.tell(["three"])
            for hints in (here, there):
                assert {await anext(hints) for _ in range(3)} == {"one", "张三", "three"}

    async def test_hints_end_with_the_journal(self, connect: Callable[[], SharedJournal]) -> None:
        journal = connect()
        await journal.open()
        hints = journal.hints()
        assert await anext(hints) == ""
        await journal.close()
        assert [hint async for hint in hints] == []
        with pytest.raises(JournalUnavailable):
            await journal.tell(["late"])
