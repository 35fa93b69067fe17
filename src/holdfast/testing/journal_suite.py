"""The conformance suite: what every journal must do, whichever store it keeps.

Subclass `JournalSuite` in a test module (with `asyncio_mode = "auto"`) and give it
a fixture `connect`: a function that returns an unopened journal on the same empty
store, each time it is called.

    class TestSqlite(JournalSuite):
        @pytest.fixture
        def connect(self, tmp_path):
            return lambda: SqliteJournal(tmp_path / "journal.db")

A new behaviour of the port starts here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.errors import InternalError, JournalUnavailable, VersionConflict
from holdfast.journal.port import (
    Append,
    Journal,
    OutboxMessage,
    Snapshot,
    StoredDefinition,
)
from holdfast.testing.journal_keeping import KeepingSuite
from holdfast.testing.journal_samples import (
    birth,
    outcomes,
    question_row,
    records,
    run_row,
    step,
)


class JournalSuite(KeepingSuite):
    """The behaviours, one test each."""

    async def test_what_was_appended_is_read_back_in_order(self, journal: Journal) -> None:
        assert await journal.append(birth(count=2)) == 2
        assert await journal.append(step("inst_000001", 2, count=3)) == 5
        assert await journal.read("inst_000001") == records(0, 5)
        assert await journal.version("inst_000001") == 5

    async def test_a_read_may_start_anywhere_and_stop_early(self, journal: Journal) -> None:
        await journal.append(birth(count=5))
        assert await journal.read("inst_000001", after=3) == records(3, 2)
        assert await journal.read("inst_000001", after=1, limit=2) == records(1, 2)
        assert await journal.read("inst_000001", after=5) == []
        assert await journal.read("inst_000001", after=9, limit=1) == []

    async def test_a_long_history_comes_back_whole(self, journal: Journal) -> None:
        await journal.append(birth(count=2500))
        assert await journal.read("inst_000001") == records(0, 2500)
        assert await journal.read("inst_000001", after=700, limit=1500) == records(700, 1500)

    async def test_a_page_ends_with_the_record_that_fills_it(self, journal: Journal) -> None:
        small, large = '{"value": 1}', json.dumps({"value": "x" * 5_000})
        await journal.append(birth(count=3))
        more = records(3, 2, large) + records(5, 4, small)
        await journal.append(Append("inst_000001", 3, more))
        every = await journal.read("inst_000001")
        for after, most, count in [
            (0, 1, 1),
            (0, 2 * len(small), 2),
            (0, 2 * len(small) + 1, 3),
            (0, 5_000, 4),
            (3, 5_000, 1),
            (3, 3 * 5_000, 6),
            (9, 1, 0),
            (99, 1, 0),
        ]:
            page = await journal.read("inst_000001", after, most_text=most)
            assert page == every[after : after + count], (after, most)
        assert await journal.read("inst_000001", 0, 2, 10_000) == every[:2]
        assert await journal.read("inst_000009", 0, 2, 10_000) == []

    async def test_an_unknown_run_is_empty(self, journal: Journal) -> None:
        assert await journal.read("inst_000009") == []
        assert await journal.version("inst_000009") == 0
        assert await journal.run("inst_000009") is None

    async def test_runs_do_not_see_each_others_records(self, journal: Journal) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}", count=n) for n in range(1, 6)])
        for n in range(1, 6):
            assert await journal.read(f"inst_{n:06d}") == records(0, n)

    @pytest.mark.parametrize(
        "text", ["张三 的入职", "🪢 \U0010ffff", "line\nline\t\\u0000", "x" * 9000]
    )
    async def test_every_text_survives(self, journal: Journal, text: str) -> None:
        await journal.append(
            Append(
                "inst_000001",
                0,
                records(0, 1, text),
                run_row(title=text, summary=json.dumps({"prompt": text})),
            )
        )
        assert (await journal.read("inst_000001"))[0].payload == text
        assert await journal.run("inst_000001") == run_row(
            title=text, summary=json.dumps({"prompt": text})
        )

    async def test_a_stale_append_changes_nothing(self, journal: Journal) -> None:
        await journal.append(birth())
        await journal.append(step("inst_000001", 1))
        stale = step(
            "inst_000001",
            1,
            row=run_row(status="done"),
            questions=[question_row("q1")],
            notices=[OutboxMessage("inst_000002", "inst_000001", 2, "{}")],
            child_appends=[birth("child")],
        )
        with pytest.raises(VersionConflict, match="inst_000001"):
            await journal.append(stale)
        assert await journal.version("inst_000001") == 2
        assert await journal.run("inst_000001") == run_row()
        assert await journal.run("child") is None
        assert await journal.question("q1") is None
        assert await journal.notices() == []

    async def test_an_append_from_the_future_is_a_conflict(self, journal: Journal) -> None:
        await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(step("inst_000001", 7))
        with pytest.raises(VersionConflict):
            await journal.append(step("inst_000002", 1))

    async def test_a_run_is_created_once(self, journal: Journal) -> None:
        await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(birth(status="done"))
        assert await journal.run("inst_000001") == run_row()

    @pytest.mark.parametrize(
        "append",
        [
            Append("inst_000001", 1, records(2, 1)),
            Append("inst_000001", 1, [*records(1, 1), *records(1, 1)]),
            Append("inst_000001", 1, [*records(1, 1), *records(3, 1)]),
            Append("inst_000002", 0, records(0, 1)),
            Append("inst_000002", 0, [], run_row("inst_000002")),
            step("inst_000001", 1, row=run_row("inst_000002")),
            step("inst_000001", 1, questions=[question_row("q1", "inst_000002")]),
            step("inst_000001", 1, notices=[OutboxMessage("a", "inst_000002", 1, "{}")]),
            step("inst_000001", 1, child_appends=[step("child", 1)]),
        ],
        ids=[
            "gap before",
            "repeated record",
            "gap between",
            "birth without a row",
            "birth without a record",
            "row of another run",
            "question of another run",
            "notice of another run",
            "birth beyond zero",
        ],
    )
    async def test_a_malformed_append_is_refused_whole(
        self, journal: Journal, append: Append
    ) -> None:
        await journal.append(birth())
        with pytest.raises(InternalError):
            await journal.append(append)
        assert await journal.read("inst_000001") == records(0, 1)
        assert len(await journal.runs()) == 1

    async def test_a_hundred_appenders_leave_one_winner_per_version(self, journal: Journal) -> None:
        await journal.append(birth())
        for expected in range(1, 6):
            contest = [
                Append("inst_000001", expected, records(expected, 1, f'"{rival}"'))
                for rival in range(100)
            ]
            told = await outcomes(journal, contest)
            [winner] = [rival for rival, word in enumerate(told) if word == expected + 1]
            losers = [word for word in told if isinstance(word, VersionConflict)]
            assert len(losers) == 99
            [latest] = await journal.read("inst_000001", after=expected)
            assert latest.payload == f'"{winner}"'

    async def test_a_conflict_fails_only_itself(self, journal: Journal) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(40)])
        stale = range(0, 40, 4)
        told = await outcomes(
            journal, [step(f"inst_{n:06d}", 5 if n in stale else 1) for n in range(40)]
        )
        for n, word in enumerate(told):
            assert isinstance(word, VersionConflict) if n in stale else word == 2
            assert await journal.version(f"inst_{n:06d}") == (1 if n in stale else 2)

    async def test_appends_made_in_order_are_taken_in_order(self, journal: Journal) -> None:
        await journal.append(birth())
        told = await outcomes(journal, [step("inst_000001", n) for n in range(1, 400)])
        assert told == list(range(2, 401))
        assert await journal.read("inst_000001") == records(0, 400)

    async def test_what_is_acknowledged_is_read_at_once(self, journal: Journal) -> None:
        async def live(run_id: str) -> None:
            version = await journal.append(birth(run_id))
            for _ in range(20):
                version = await journal.append(step(run_id, version))
                assert await journal.version(run_id) == version
                assert (await journal.read(run_id, after=version - 1))[0].seq == version

        await asyncio.gather(*(live(f"inst_{n:06d}") for n in range(10)))

    async def test_a_row_changes_only_when_one_is_given(self, journal: Journal) -> None:
        await journal.append(birth())
        await journal.append(step("inst_000001", 1))
        assert await journal.run("inst_000001") == run_row()
        changed = run_row(
            status="pause",
            active=True,
            wake_at=2000.5,
            updated_at=1500.0,
            title="paused",
            summary='{"done": 1}',
        )
        await journal.append(step("inst_000001", 2, row=changed))
        assert await journal.run("inst_000001") == changed
        retitled = replace(changed, title="still paused", updated_at=1600.0)
        await journal.append(step("inst_000001", 3, row=retitled))
        assert await journal.run("inst_000001") == retitled

    async def test_who_a_run_is_stays_as_it_was_born(self, journal: Journal) -> None:
        await journal.append(birth())
        other = run_row(
            kind="chat", name="x", definition="y", root_id="z", parent_id="p", created_at=1.0
        )
        await journal.append(step("inst_000001", 1, row=replace(other, status="done")))
        assert await journal.run("inst_000001") == run_row(status="done")

    async def test_an_append_may_carry_no_record(self, journal: Journal) -> None:
        await journal.append(birth())
        await journal.append(Append("inst_000001", 1, [], row=run_row(status="done")))
        assert await journal.version("inst_000001") == 1
        assert await journal.run("inst_000001") == run_row(status="done")

    async def test_children_are_born_with_their_parents_append(self, journal: Journal) -> None:
        await journal.append(birth())
        grandchild = birth("grandchild", parent_id="child", root_id="inst_000001")
        child = replace(
            birth("child", parent_id="inst_000001", root_id="inst_000001"),
            child_appends=[grandchild],
            questions=[question_row("q1", "child", root_id="inst_000001")],
        )
        await journal.append(step("inst_000001", 1, child_appends=[child]))
        assert await journal.version("child") == 1
        assert await journal.version("grandchild") == 1
        assert await journal.question("q1") is not None

    async def test_a_birth_that_fails_takes_its_parent_along(self, journal: Journal) -> None:
        await outcomes(journal, [birth("inst_000001"), birth("inst_000002"), birth("taken")])
        greedy = step(
            "inst_000001",
            1,
            row=run_row(status="done"),
            child_appends=[birth("fresh"), birth("taken")],
            notices=[OutboxMessage("inst_000002", "inst_000001", 2, "{}")],
        )
        told = await outcomes(journal, [greedy, step("inst_000002", 1)])
        assert isinstance(told[0], VersionConflict)
        assert told[1] == 2
        assert await journal.run("inst_000001") == run_row()
        assert await journal.version("inst_000001") == 1
        assert await journal.run("fresh") is None
        assert await journal.notices() == []

    async def test_twins_with_one_name_cannot_be_born(self, journal: Journal) -> None:
        await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(
                step("inst_000001", 1, child_appends=[birth("twin"), birth("twin")])
            )
        assert await journal.run("twin") is None

    async def test_a_notice_is_left_and_heard_exactly_once(self, journal: Journal) -> None:
        await outcomes(journal, [birth("parent"), birth("child"), birth("other")])
        word = OutboxMessage("parent", "child", 2, '{"said": "done"}')
        elsewhere = OutboxMessage("other", "child", 2, "{}")
        await journal.append(step("child", 1, notices=[word, elsewhere, word]))
        assert await journal.notices("parent") == [word]
        assert await journal.notices() == [word, elsewhere]
        await journal.append(step("parent", 1, heard=[("child", 2), ("child", 9)]))
        assert await journal.notices("parent") == []
        assert await journal.notices("other") == [elsewhere]
        await journal.append(step("parent", 2, heard=[("child", 2)]))
        assert await journal.notices() == [elsewhere]

    async def test_a_notice_stays_when_the_hearing_append_fails(self, journal: Journal) -> None:
        await outcomes(journal, [birth("parent"), birth("child")])
        word = OutboxMessage("parent", "child", 2, "{}")
        await journal.append(step("child", 1, notices=[word]))
        with pytest.raises(VersionConflict):
            await journal.append(step("parent", 7, heard=[("child", 2)]))
        assert await journal.notices() == [word]

    async def test_notices_come_in_the_order_they_were_left(self, journal: Journal) -> None:
        await outcomes(journal, [birth("parent"), birth("z"), birth("a")])
        for seq, source in enumerate(["z", "a", "z", "a"]):
            version = await journal.version(source)
            note = OutboxMessage("parent", source, version + 1, f'"{seq}"')
            await journal.append(step(source, version, notices=[note]))
        assert [n.payload for n in await journal.notices("parent")] == ['"0"', '"1"', '"2"', '"3"']

    async def test_everything_is_there_after_reopening(
        self, journal: Journal, connect: Callable[[], Journal]
    ) -> None:
        await journal.append(birth(active=True, wake_at=12.5))
        word = OutboxMessage("inst_000002", "inst_000001", 2, "{}")
        asked = question_row("q1")
        await journal.append(step("inst_000001", 1, questions=[asked], notices=[word]))
        kept = Snapshot("inst_000001", 2, 1, "{}")
        await journal.save_snapshot(kept)
        await journal.store_definition(StoredDefinition("d", "plan", "n", "b", 1.0))
        await journal.close()
        again = connect()
        await again.open()
        assert await again.read("inst_000001") == records(0, 2)
        assert await again.run("inst_000001") == run_row(active=True, wake_at=12.5)
        assert await again.question("q1") == asked
        assert await again.notices() == [word]
        assert await again.snapshot("inst_000001", 1) == kept
        assert await again.definition("d") is not None
        assert await again.active_runs() == ["inst_000001"]
        await again.close()

    async def test_closing_finishes_what_was_accepted(
        self, journal: Journal, connect: Callable[[], Journal]
    ) -> None:
        accepted = [
            asyncio.ensure_future(journal.append(birth(f"inst_{n:06d}"))) for n in range(50)
        ]
        await asyncio.sleep(0)
        await journal.close()
        assert await asyncio.gather(*accepted) == [1] * 50
        again = connect()
        await again.open()
        assert len(await again.runs()) == 50
        await again.close()

    async def test_a_closed_journal_accepts_nothing(self, journal: Journal) -> None:
        await journal.close()
        await journal.close()
        with pytest.raises(JournalUnavailable):
            await journal.append(birth())
        with pytest.raises(JournalUnavailable):
            await journal.read("inst_000001")

    async def test_a_sound_store_never_changes_its_epoch(self, journal: Journal) -> None:
        before = journal.epoch
        await journal.append(birth())
        with pytest.raises(VersionConflict):
            await journal.append(birth())
        assert journal.epoch == before
