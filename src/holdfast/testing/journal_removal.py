"""The part of the conformance suite about runs that are removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.errors import NameTaken, VersionConflict
from holdfast.journal.port import (
    NOTHING,
    Append,
    Attached,
    ExpiringValue,
    OutboxMessage,
    PrunedJournal,
    QuestionQuery,
    Removal,
    RunQuery,
    Snapshot,
    verify,
)
from holdfast.testing.journal_keeping import did, places
from holdfast.testing.journal_samples import birth, question_row, run_row, step


def finished(run_id: str, count: int = 1, **changes: Any) -> Append:
    return birth(run_id, count, **{"status": "done", **changes})


async def gone(
    journal: PrunedJournal, *run_ids: str, attached: Attached = NOTHING, **names: Any
) -> list[str]:
    """Remove a tree, and do all that removing leaves to do; what was refused."""
    versions = {run_id: await journal.version(run_id) for run_id in run_ids}
    refused = await journal.remove([Removal(versions, **names)], attached)
    while await journal.reclaim():
        pass
    return refused


class RemovalSuite:
    """What every journal must do from which runs can be removed; `connect` is as in
    `JournalSuite`."""

    @pytest.fixture
    async def journal(self, connect: Callable[[], PrunedJournal]) -> Any:
        opened = connect()
        await opened.open()
        yield opened
        await opened.close()

    async def test_a_finished_run_goes_with_everything_that_is_its_own(
        self, journal: PrunedJournal
    ) -> None:
        secrets = [ExpiringValue("secret", "mine", "{}"), ExpiringValue("secret", "other", "{}")]
        for run_id in ("a", "b"):
            asked = question_row(f"q-{run_id}", run_id, status="answered")
            await journal.append(replace(finished(run_id, 3), questions=[asked]))
            await journal.save_snapshot(Snapshot(run_id, 3, 1, "{}"))
        await journal.attach(Attached(kept=secrets))
        assert await gone(journal, "a", dropped=[("secret", "mine")]) == []
        assert (await journal.run("a"), await journal.version("a")) == (None, 0)
        assert await journal.read("a") == []
        assert await journal.snapshot("a", 1) is None
        assert await journal.question("q-a") is None
        assert await journal.all_kept("secret", 0.0) == secrets[1:]
        assert [row.run_id for row in await journal.runs()] == ["b"]
        assert [row.run_id for row in await journal.questions()] == ["b"]
        assert len(await journal.read("b")) == 3
        assert await journal.snapshot("b", 1) is not None
        assert dict(await journal.run_counts()) == {("plan", "done"): 1}
        assert dict(await journal.question_counts()) == {("answered", "missing_info"): 1}

    async def test_counts_follow_what_goes(self, journal: PrunedJournal) -> None:
        for run_id in ("a", "b"):
            asked = question_row(f"q-{run_id}", run_id, status="answered")
            await journal.append(replace(finished(run_id), questions=[asked]))
        assert dict(await journal.run_counts()) == {("plan", "done"): 2}
        assert dict(await journal.question_counts()) == {("answered", "missing_info"): 2}
        await gone(journal, "a")
        assert dict(await journal.run_counts()) == {("plan", "done"): 1}
        assert dict(await journal.question_counts()) == {("answered", "missing_info"): 1}
        await gone(journal, "b")
        assert not dict(await journal.run_counts())
        assert not dict(await journal.question_counts())

    @pytest.mark.parametrize("status", ["running", "pause", "continue", "cancelling"])
    async def test_a_run_that_is_not_finished_stays(
        self, journal: PrunedJournal, status: str
    ) -> None:
        await journal.append(birth("a", status=status))
        assert await gone(journal, "a") == ["a"]
        assert await journal.version("a") == 1

    async def test_what_goes_on_is_waited_for_or_has_moved_on_stays(
        self, journal: PrunedJournal
    ) -> None:
        await journal.append(finished("goes_on", active=True))
        await journal.append(finished("has_a_timer", wake_at=5.0))
        await journal.append(replace(finished("asks"), questions=[question_row("q", "asks")]))
        await journal.append(finished("is_told"))
        told = [OutboxMessage("is_told", "tells", 1, "{}")]
        await journal.append(replace(finished("tells"), notices=told))
        for run_id in ("goes_on", "has_a_timer", "asks", "is_told", "tells"):
            assert await gone(journal, run_id) == [run_id]
            assert await journal.version(run_id) == 1
        await journal.append(finished("moved_on"))
        await journal.append(step("moved_on", 1))
        assert await journal.remove([Removal({"moved_on": 1})]) == ["moved_on"]
        assert await journal.remove([Removal({"never_was": 1})]) == ["never_was"]
        assert await journal.version("moved_on") == 2

    async def test_a_tree_goes_as_a_whole_or_not_at_all(self, journal: PrunedJournal) -> None:
        child = finished("a.1", root_id="a", parent_id="a")
        below = finished("a.1.1", root_id="a", parent_id="a.1")
        grown = replace(child, child_appends=[below])
        await journal.append(replace(finished("a"), child_appends=[grown]))
        assert await gone(journal, "a") == ["a"]
        assert await gone(journal, "a", "a.1") == ["a"]
        assert await gone(journal, "a.1", "a.1.1") == ["a.1"]
        assert len(await journal.runs()) == 3
        assert await gone(journal, "a", "a.1", "a.1.1") == []
        assert await journal.runs() == []

    async def test_a_living_run_below_keeps_the_tree(self, journal: PrunedJournal) -> None:
        child = birth("a.1", root_id="a", parent_id="a", status="running")
        await journal.append(replace(finished("a"), child_appends=[child]))
        assert await gone(journal, "a", "a.1") == ["a"]
        assert len(await journal.runs()) == 2

    async def test_one_that_stays_keeps_the_others_and_what_is_attached(
        self, journal: PrunedJournal
    ) -> None:
        await journal.append(finished("a"))
        await journal.append(birth("b"))
        both = [Removal({"a": 1}), Removal({"b": 1})]
        assert await journal.remove(both, did("removed")) == ["b"]
        assert await journal.version("a") == 1
        assert await journal.audit() == []
        assert await journal.remove(both[:1], did("removed")) == []
        entries = await journal.audit()
        assert [one.record.action for one in entries] == ["removed"]
        assert verify(entries) is None

    async def test_what_is_claimed_with_a_removal_is_claimed_or_nothing_goes(
        self, journal: PrunedJournal
    ) -> None:
        claim = Attached(claimed=(ExpiringValue("request", "k1", "{}"),), at=1.0)
        for run_id in "ab":
            await journal.append(finished(run_id))
        assert await gone(journal, "a", attached=claim) == []
        assert await journal.kept("request", "k1", 1.0) is not None
        with pytest.raises(NameTaken):
            await gone(journal, "b", attached=claim)
        assert [row.run_id for row in await journal.runs()] == ["b"]
        assert await journal.run_counts() == {("plan", "done"): 1}

    async def test_positions_are_not_given_twice_and_those_who_follow_go_on(
        self, journal: PrunedJournal
    ) -> None:
        for run_id in ("a", "b", "c"):
            await journal.append(finished(run_id, 2))
        await gone(journal, "b")
        assert places(await journal.commits()) == [
            (1, "a", 1),
            (2, "a", 2),
            (5, "c", 1),
            (6, "c", 2),
        ]
        assert places(await journal.commits(3)) == [(5, "c", 1), (6, "c", 2)]
        await gone(journal, "c")
        assert await journal.last_commit() == 6
        await journal.append(step("a", 2))
        assert places(await journal.commits(2)) == [(7, "a", 3)]
        await gone(journal, "a")
        assert await journal.commits() == []
        assert await journal.last_commit() == 7

    async def test_neither_an_id_nor_a_number_is_given_twice(
        self, journal: PrunedJournal, connect: Callable[[], PrunedJournal]
    ) -> None:
        for n in (1, 2, 3):
            await journal.append(finished(f"inst_{n:06d}"))
        await gone(journal, "inst_000003")
        await gone(journal, "inst_000002")
        await journal.close()
        again = connect()
        await again.open()
        assert await again.next_number("inst") == 4
        await again.append(finished("later", 2))
        assert [row.run_id for row in await again.runs(RunQuery(before="later"))] == ["inst_000001"]
        assert len(await again.read("later")) == 2
        await again.close()

    async def test_a_run_that_is_gone_takes_no_append(self, journal: PrunedJournal) -> None:
        await journal.append(finished("a", 2))
        await gone(journal, "a")
        with pytest.raises(VersionConflict):
            await journal.append(step("a", 2))
        with pytest.raises(VersionConflict):
            await journal.append(replace(step("a", 2), row=run_row("a")))
        assert await journal.append(birth("a")) == 1
        assert len(await journal.read("a")) == 1

    async def test_many_go_while_others_are_written(self, journal: PrunedJournal) -> None:
        for n in range(60):
            await journal.append(finished(f"old_{n:06d}", 30))
        removals = [Removal({f"old_{n:06d}": 30}) for n in range(60)]
        assert await journal.remove(removals) == []
        version = await journal.append(birth("new"))
        while await journal.reclaim():
            version = await journal.append(step("new", version))
        assert len(await journal.read("new")) == version
        assert {run_id for _, run_id, _ in places(await journal.commits(0, 5000))} == {"new"}
        assert await journal.questions(QuestionQuery()) == []
