"""The part of the conformance suite about what is attached, and about the order of all commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from holdfast.errors import InternalError, NameGone, NameTaken, VersionConflict
from holdfast.journal.port import (
    Attached,
    AuditRecord,
    Committed,
    ExpiringValue,
    Journal,
    verify,
)
from holdfast.testing.journal_lookups import LookupSuite
from holdfast.testing.journal_samples import audit_record, birth, outcomes, step

Place: TypeAlias = tuple[int, str, int]


def places(stretches: Sequence[Committed]) -> list[Place]:
    """Every record in the stretches: its position among all, its run and its number there."""
    return [
        (one.position - one.last + seq, one.run_id, seq)
        for one in stretches
        for seq in range(one.first, one.last + 1)
    ]


def did(*words: str, at: float = 1000.5) -> Attached:
    return Attached([audit_record(word, at=at) for word in words])


LINK = ("link", "a")


def claim(body: str = "1", expires_at: float | None = None, at: float = 0.0) -> Attached:
    return Attached(claimed=[ExpiringValue("request", "r", body, expires_at)], at=at)


class KeepingSuite(LookupSuite):
    """What every journal must keep; `JournalSuite` includes it."""

    async def test_what_is_kept_is_found_by_its_name(self, journal: Journal) -> None:
        token, other = (
            ExpiringValue("token", "a", '{"n": 1}'),
            ExpiringValue("link", "a", '{"n": 2}'),
        )
        await journal.attach(Attached(kept=[token, other]))
        assert await journal.kept("token", "a", 0.0) == token
        assert await journal.kept("link", "a", 0.0) == other
        assert await journal.kept("token", "b", 0.0) is None
        renewed = replace(token, body='{"n": 3}', expires_at=50.5)
        await journal.attach(Attached(kept=[renewed]))
        assert await journal.kept("token", "a", 0.0) == renewed

    async def test_what_is_dropped_is_gone_and_only_that(self, journal: Journal) -> None:
        both = [ExpiringValue("token", "a", "1"), ExpiringValue("token", "b", "2")]
        await journal.attach(Attached(kept=both))
        await journal.attach(Attached(dropped=[("token", "a"), ("token", "never"), ("x", "b")]))
        assert await journal.all_kept("token", 0.0) == both[1:]

    async def test_what_is_dropped_and_kept_at_once_is_kept(self, journal: Journal) -> None:
        kept = ExpiringValue("token", "a", "1")
        await journal.attach(Attached(kept=[kept], dropped=[("token", "a")]))
        assert await journal.kept("token", "a", 0.0) == kept

    async def test_all_of_one_kind_come_in_order_of_their_keys(self, journal: Journal) -> None:
        keys = ["b", "张", "a", "B", "é", "🪢"]
        await journal.attach(Attached(kept=[ExpiringValue("plan", key, "{}") for key in keys]))
        await journal.attach(Attached(kept=[ExpiringValue("token", "c", "{}")]))
        assert [one.key for one in await journal.all_kept("plan", 0.0)] == sorted(keys)

    async def test_what_has_expired_counts_as_gone(self, journal: Journal) -> None:
        short, long = ExpiringValue("link", "a", "1", 100.0), ExpiringValue("link", "b", "2")
        await journal.attach(Attached(kept=[short, long]))
        assert await journal.kept("link", "a", 99.9) == short
        assert await journal.kept("link", "a", 100.0) is None
        assert await journal.all_kept("link", 99.9) == [short, long]
        assert await journal.all_kept("link", 100.0) == [long]

    async def test_what_has_expired_is_let_go_when_deeds_are_done_later(
        self, journal: Journal
    ) -> None:
        old = [ExpiringValue("link", f"{n}", "1", 100.0) for n in range(5)]
        lasting = [ExpiringValue("link", "x", "2", 300.0), ExpiringValue("link", "y", "3")]
        await journal.attach(Attached(kept=[*old, *lasting]))
        await journal.attach(did("looked", at=99.0))
        assert await journal.all_kept("link", 0.0) == [*old, *lasting]
        await journal.attach(did("looked", at=200.0))
        assert await journal.all_kept("link", 0.0) == lasting

    async def test_what_is_claimed_is_kept_if_nothing_is_there(self, journal: Journal) -> None:
        await journal.attach(claim("first"))
        with pytest.raises(NameTaken) as taken:
            await journal.attach(replace(claim("second"), audit=[audit_record("forged")]))
        assert (taken.value.kind, taken.value.key) == ("request", "r")
        kept = await journal.kept("request", "r", 0.0)
        assert kept is not None
        assert kept.body == "first"
        assert await journal.audit() == []
        other = ExpiringValue("request", "s", "other"), ExpiringValue("token", "r", "another")
        await journal.attach(Attached(claimed=other))
        assert await journal.all_kept("request", 0.0) == [kept, other[0]]

    async def test_what_has_expired_may_be_claimed_anew(self, journal: Journal) -> None:
        await journal.attach(claim("first", expires_at=100.0))
        with pytest.raises(NameTaken):
            await journal.attach(claim("second", expires_at=200.0, at=99.9))
        await journal.attach(claim("third", expires_at=300.0, at=100.0))
        kept = await journal.kept("request", "r", 150.0)
        assert kept is not None
        assert (kept.body, kept.expires_at) == ("third", 300.0)

    async def test_what_is_spent_is_dropped_if_it_is_there(self, journal: Journal) -> None:
        link, other = ExpiringValue(*LINK, "1", 100.0), ExpiringValue("link", "b", "2")
        await journal.attach(Attached(kept=[link, other]))
        await journal.attach(Attached(spent=[LINK], at=99.9))
        assert await journal.all_kept("link", 0.0) == [other]
        with pytest.raises(NameGone) as gone:
            await journal.attach(Attached([audit_record("forged")], spent=[("link", "b"), LINK]))
        assert (gone.value.kind, gone.value.key) == LINK
        assert await journal.all_kept("link", 0.0) == [other]
        assert await journal.audit() == []

    async def test_what_has_expired_cannot_be_spent(self, journal: Journal) -> None:
        await journal.attach(Attached(kept=[ExpiringValue(*LINK, "1", 100.0)]))
        with pytest.raises(NameGone):
            await journal.attach(Attached(spent=[LINK], at=100.0))
        await journal.attach(Attached(spent=[LINK], at=99.9))

    async def test_one_name_stands_in_one_attachment_once(self, journal: Journal) -> None:
        twice = claim().claimed[0]
        with pytest.raises(NameTaken):
            await journal.attach(Attached(claimed=[twice, twice]))
        assert await journal.all_kept("request", 0.0) == []
        await journal.attach(Attached(kept=[ExpiringValue(*LINK, "1")]))
        with pytest.raises(NameGone):
            await journal.attach(Attached(spent=[LINK, LINK]))
        assert len(await journal.all_kept("link", 0.0)) == 1

    async def test_an_append_whose_claim_is_taken_fails_as_a_whole(self, journal: Journal) -> None:
        await journal.append(replace(birth(), attached=claim("first")))
        late = replace(claim("late"), audit=[audit_record("forged")])
        with pytest.raises(NameTaken):
            await journal.append(replace(birth("inst_000002"), attached=late))
        company = [birth("inst_000001.child")]
        with pytest.raises(NameTaken):
            await journal.append(step("inst_000001", 1, child_appends=company, attached=late))
        gone = Attached(spent=[LINK])
        with pytest.raises(NameGone):
            await journal.append(step("inst_000001", 1, child_appends=company, attached=gone))
        assert await journal.version("inst_000001") == 1
        assert [row.run_id for row in await journal.runs()] == ["inst_000001"]
        assert await journal.last_commit() == 1
        assert await journal.audit() == []
        await journal.append(step("inst_000001", 1, child_appends=company))
        assert await journal.version("inst_000001") == 2

    async def test_only_an_append_itself_claims_or_spends(self, journal: Journal) -> None:
        await journal.append(birth())
        for attached in (claim(), Attached(spent=[LINK])):
            child = replace(birth("inst_000001.child"), attached=attached)
            with pytest.raises(InternalError):
                await journal.append(step("inst_000001", 1, child_appends=[child]))
        assert await journal.version("inst_000001") == 1

    async def test_of_many_that_claim_one_name_at_once_one_is_taken(self, journal: Journal) -> None:
        many = [
            replace(birth(f"inst_{n:06d}"), attached=claim(f"{n}") if n % 2 else did(f"{n}"))
            for n in range(40)
        ]
        alone = [journal.attach(claim("alone")) for _ in range(5)]
        told, claimed = await asyncio.gather(
            outcomes(journal, many), asyncio.gather(*alone, return_exceptions=True)
        )
        failed = [one for one in [*told[1::2], *claimed] if isinstance(one, NameTaken)]
        assert len(failed) == 24
        assert told[::2] == [1] * 20
        kept = await journal.kept("request", "r", 0.0)
        assert kept is not None
        born = {row.run_id for row in await journal.runs()}
        winner = set() if kept.body == "alone" else {f"inst_{int(kept.body):06d}"}
        assert born == {f"inst_{n:06d}" for n in range(0, 40, 2)} | winner
        assert_gapless(await journal.commits(), len(born))
        assert len(await journal.audit()) == 20

    async def test_of_many_that_spend_one_name_at_once_one_is_taken(self, journal: Journal) -> None:
        await journal.attach(Attached(kept=[ExpiringValue(*LINK, "1")]))
        many = [
            journal.attach(Attached([audit_record(f"{n}")], spent=[LINK], at=50.0))
            for n in range(20)
        ]
        told = await asyncio.gather(*many, return_exceptions=True)
        assert [one for one in told if one is not None and not isinstance(one, NameGone)] == []
        assert told.count(None) == 1
        assert [one.record.action for one in await journal.audit()] == [f"{told.index(None)}"]

    async def test_deeds_come_back_in_order_and_chained(self, journal: Journal) -> None:
        assert await journal.audit() == []
        await journal.attach(did("one", "two"))
        await journal.append(replace(birth(), attached=did("three")))
        await journal.append(step("inst_000001", 1, attached=did("four")))
        entries = await journal.audit()
        assert [entry.number for entry in entries] == [1, 2, 3, 4]
        assert [entry.record for entry in entries] == [
            audit_record("one"),
            audit_record("two"),
            audit_record("three"),
            audit_record("four"),
        ]
        assert verify(entries) is None
        assert await journal.audit(after=2) == entries[2:]
        assert await journal.audit(after=1, limit=2) == entries[1:3]
        assert await journal.audit(after=4) == []

    async def test_every_field_of_a_deed_is_kept_and_covered(self, journal: Journal) -> None:
        done = AuditRecord(
            5, "will.zhang", "answered", "q1", "inst_000001", "sha", "::1", '{"王": 1}'
        )
        await journal.attach(Attached([done]))
        [entry] = await journal.audit()
        assert entry.record == done
        assert verify([entry]) is None
        for field in ("who", "action", "subject", "run_id", "seen", "origin", "detail"):
            change: dict[str, Any] = {field: "forged"}
            forged = replace(entry, record=replace(done, **change))
            assert verify([forged]) is not None, field
        assert verify([replace(entry, record=replace(done, at=5.5))]) is not None

    async def test_a_crowd_of_deeds_makes_one_chain(self, journal: Journal) -> None:
        child_appends = [
            replace(birth(f"inst_{n:06d}"), attached=did(f"began {n}", f"looked at {n}"))
            for n in range(40)
        ]
        alone = [journal.attach(did(f"alone {n}")) for n in range(20)]
        await asyncio.gather(outcomes(journal, child_appends), *alone)
        entries = await journal.audit()
        assert len(entries) == 100
        assert verify(entries) is None
        told = [entry.record.action for entry in entries]
        for n in range(40):
            assert told[told.index(f"began {n}") + 1] == f"looked at {n}"

    async def test_an_append_that_fails_leaves_nothing_attached(self, journal: Journal) -> None:
        await outcomes(journal, [birth(), birth("taken")])
        attached = Attached(
            [audit_record("forged")], [ExpiringValue("token", "a", "1")], [("token", "old")]
        )
        old = ExpiringValue("token", "old", "0")
        await journal.attach(Attached([audit_record("first")], [old]))
        stale = step("inst_000001", 7, attached=attached)
        greedy = step("inst_000001", 1, child_appends=[birth("taken")], attached=attached)
        for failing in (stale, greedy):
            with pytest.raises(VersionConflict):
                await journal.append(failing)
        assert [entry.record.action for entry in await journal.audit()] == ["first"]
        assert await journal.all_kept("token", 0.0) == [old]

    async def test_a_failure_in_a_crowd_leaves_no_hole_in_the_chain(self, journal: Journal) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(30)])
        failing = range(0, 30, 3)
        crowd = [
            step(
                f"inst_{n:06d}",
                1,
                attached=did(f"{n}"),
                child_appends=[birth("inst_000001")] if n in failing else [],
            )
            for n in range(30)
        ]
        told = await outcomes(journal, crowd)
        assert [n for n, word in enumerate(told) if word != 2] == list(failing)
        entries = await journal.audit()
        assert {entry.record.action for entry in entries} == {
            f"{n}" for n in range(30) if n not in failing
        }
        assert verify(entries) is None
        assert_gapless(await journal.commits(), 30 + 20)

    async def test_something_may_be_attached_without_a_record(self, journal: Journal) -> None:
        await journal.append(birth())
        kept = ExpiringValue("request", "r", "{}")
        attached = Attached([audit_record("again")], [kept])
        await journal.append(replace(step("inst_000001", 1, count=0), attached=attached))
        assert await journal.version("inst_000001") == 1
        assert await journal.kept("request", "r", 0.0) == kept
        assert len(await journal.audit()) == 1
        assert await journal.last_commit() == 1

    async def test_every_record_has_its_place_in_the_order_of_commits(
        self, journal: Journal
    ) -> None:
        assert await journal.last_commit() == 0
        assert await journal.commits() == []
        await journal.append(birth("a", count=2))
        await journal.append(step("a", 2))
        await journal.append(step("a", 3, child_appends=[birth("b")]))
        await journal.append(step("b", 1, count=2))
        await journal.append(step("a", 4))
        told = places(await journal.commits())
        runs = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("b", 2), ("b", 3), ("a", 5)]
        assert told == [(n, *one) for n, one in enumerate(runs, 1)]
        assert await journal.last_commit() == 8

    async def test_one_may_go_on_from_every_position(self, journal: Journal) -> None:
        for n in range(1, 5):
            for run_id in ("a", "b", "c")[: 4 - n or 1]:
                version = await journal.version(run_id)
                await journal.append(
                    step(run_id, version, count=n) if version else birth(run_id, count=n)
                )
        whole = places(await journal.commits())
        assert [position for position, _, _ in whole] == list(range(1, len(whole) + 1))
        for after in range(len(whole) + 2):
            assert places(await journal.commits(after)) == whole[after:], after
            first = await journal.commits(after, limit=1)
            assert len(first) <= 1
            assert places(first) == whole[after:][: len(places(first))]

    async def test_who_follows_the_commits_misses_nothing(self, journal: Journal) -> None:
        async def live(run_id: str) -> None:
            version = await journal.append(birth(run_id))
            for _ in range(20):
                version = await journal.append(step(run_id, version, count=2))

        async def follow() -> None:
            while len(seen) < 10 * 41:
                for stretch in await journal.commits(seen[-1][0] if seen else 0, limit=3):
                    seen.extend(places([stretch]))
                await asyncio.sleep(0)

        seen: list[Place] = []
        await asyncio.gather(follow(), *(live(f"inst_{n:06d}") for n in range(10)))
        assert [position for position, _, _ in seen] == list(range(1, 411))
        for n in range(10):
            mine = [seq for _, run_id, seq in seen if run_id == f"inst_{n:06d}"]
            assert mine == list(range(1, 42))

    async def test_a_failed_append_has_no_place_among_the_commits(self, journal: Journal) -> None:
        await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(step("inst_000001", 1, child_appends=[birth("x"), birth("x")]))
        assert await journal.commits() == [Committed(1, "inst_000001", 1, 1)]

    async def test_what_was_attached_is_there_after_reopening(
        self, journal: Journal, connect: Callable[[], Journal]
    ) -> None:
        kept = ExpiringValue("token", "a", "{}", 9999.5)
        attached = Attached([audit_record("one")], [kept])
        await journal.append(replace(birth(), attached=attached))
        before = await journal.audit()
        await journal.close()
        again = connect()
        await again.open()
        assert await again.kept("token", "a", 0.0) == kept
        assert await again.audit() == before
        await again.append(step("inst_000001", 1, attached=did("two")))
        await again.append(birth("inst_000002"))
        assert verify(await again.audit()) is None
        assert_gapless(await again.commits(), 3)
        await again.close()


def assert_gapless(stretches: Sequence[Committed], count: int) -> None:
    told = places(stretches)
    assert [position for position, _, _ in told] == list(range(1, count + 1))
    assert len({(run_id, seq) for _, run_id, seq in told}) == count
