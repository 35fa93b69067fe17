"""The part of the conformance suite about finding things again: lists, pages, caches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.errors import NotFound, VersionConflict
from holdfast.journal.port import (
    Journal,
    QuestionQuery,
    QuestionRow,
    RunQuery,
    Snapshot,
    StoredDefinition,
    questions_below,
)
from holdfast.testing.journal_samples import birth, outcomes, question_row, run_row, step


class LookupSuite:
    """What every journal must find; `JournalSuite` includes it."""

    @pytest.fixture
    def connect(self) -> Callable[[], Journal]:
        raise NotImplementedError("a journal's test class says how to reach its store")

    @pytest.fixture
    async def journal(self, connect: Callable[[], Journal]) -> AsyncIterator[Journal]:
        journal = connect()
        await journal.open()
        yield journal
        await journal.close()

    async def test_questions_open_and_close_with_their_append(self, journal: Journal) -> None:
        await journal.append(birth())
        asked = question_row("q1", deadline=1500.5)
        await journal.append(step("inst_000001", 1, questions=[asked]))
        assert await journal.question("q1") == asked
        closed = replace(asked, status="answered", closed_at=1400.0, body='{"answer": 1}')
        await journal.append(step("inst_000001", 2, questions=[closed]))
        assert await journal.question("q1") == closed
        assert await journal.question("q2") is None

    async def test_questions_are_found_by_what_is_asked_for(self, journal: Journal) -> None:
        await outcomes(journal, [birth("a"), birth("b", root_id="a", parent_id="a")])
        of_a = [
            question_row("q1", "a"),
            question_row("q2", "a", status="answered"),
            question_row("q3", "a", role=None),
        ]
        of_b = [question_row("q4", "b", root_id="a", role="admin"), question_row("q5", "b")]
        await journal.append(step("a", 1, questions=of_a))
        await journal.append(step("b", 1, questions=of_b))
        opened = frozenset({"open"})
        expected = {
            QuestionQuery(): "q1 q2 q3 q4 q5",
            QuestionQuery(limit=2): "q1 q2",
            QuestionQuery(role="approver"): "q1 q2 q5",
            QuestionQuery(status=opened): "q1 q3 q4 q5",
            QuestionQuery(status=opened, limit=2): "q1 q3",
            QuestionQuery(status=opened, role="approver"): "q1 q5",
            QuestionQuery(status=frozenset({"open", "answered"}), limit=3): "q1 q2 q3",
            QuestionQuery(status=frozenset()): "",
            QuestionQuery(run_id="a"): "q1 q2 q3",
            QuestionQuery(run_id="b", root_id="a"): "q4",
            QuestionQuery(run_id="a", status=opened, role="approver"): "q1",
            QuestionQuery(root_id="a"): "q1 q2 q3 q4",
            QuestionQuery(root_id="a", status=opened): "q1 q3 q4",
            QuestionQuery(root_id="a", role="admin"): "q4",
        }
        for query, ids in expected.items():
            found = await journal.questions(query)
            assert " ".join(row.question_id for row in found) == ids, query

    async def test_questions_are_found_by_when_they_are_due(self, journal: Journal) -> None:
        await journal.append(birth("a"))
        rows = [
            question_row("q1", "a", deadline=30.5),
            question_row("q2", "a"),
            question_row("q3", "a", deadline=20.0, role="admin"),
            question_row("q4", "a", deadline=10.0, status="expired"),
        ]
        await journal.append(step("a", 1, questions=rows))
        opened = frozenset({"open"})
        expected = {
            QuestionQuery(due_before=99.0): "q1 q3 q4",
            QuestionQuery(due_before=20.0): "q4",
            QuestionQuery(due_before=20.1): "q3 q4",
            QuestionQuery(due_before=99.0, status=opened): "q1 q3",
            QuestionQuery(due_before=99.0, status=opened, role="admin"): "q3",
            QuestionQuery(due_before=30.5, run_id="a"): "q3 q4",
            QuestionQuery(due_before=30.5, root_id="a", status=opened): "q3",
        }
        for query, ids in expected.items():
            found = await journal.questions(query)
            assert " ".join(row.question_id for row in found) == ids, query

    @pytest.mark.parametrize("newest", [False, True])
    async def test_pages_of_questions_join_whatever_is_asked_for(
        self, journal: Journal, newest: bool
    ) -> None:
        await journal.append(birth("a"))
        rows = [
            question_row(f"q{n}", "a", status="open" if n % 3 else "answered") for n in range(25)
        ]
        await journal.append(step("a", 1, questions=rows))
        some = frozenset({"open"})
        for query in [
            QuestionQuery(),
            QuestionQuery(run_id="a"),
            QuestionQuery(root_id="a", status=some),
            QuestionQuery(status=some),
            QuestionQuery(status=frozenset({"open", "answered"})),
            QuestionQuery(status=some, role="approver"),
        ]:
            whole = await journal.questions(query)
            turned = await journal.questions(replace(query, newest=True))
            assert turned == whole[::-1]
            query = replace(query, newest=newest)
            whole = turned if newest else whole
            seen: list[QuestionRow] = []
            while page := await journal.questions(
                replace(query, after=seen[-1].question_id if seen else None, limit=4)
            ):
                seen += page
            assert seen == whole, query

    async def test_all_questions_of_a_run_and_those_below_it_are_read(
        self, journal: Journal
    ) -> None:
        born = [
            birth(one, root_id="a", parent_id=None if one == "a" else "a")
            for one in ("a", "a.L1.1", "a.L10.1")
        ]
        await outcomes(journal, born)
        for below in ("a", "a.L1.1", "a.L10.1"):
            names = [f"{below}-{n:04}" for n in range(1001 if below == "a.L1.1" else 1)]
            asked = [question_row(one, below, root_id="a") for one in names]
            closed = replace(asked[0], question_id=f"{below}-closed", status="answered")
            await journal.append(step(below, 1, questions=[*asked, closed]))
        found = [one.question_id async for one in questions_below(journal, "a.L1.1", "a")]
        assert found == [f"a.L1.1-{n:04}" for n in range(1001)]
        later = questions_below(journal, "a", "a", after=found[-1])
        assert [one.question_id async for one in later] == ["a.L10.1-0000"]
        answered = questions_below(journal, "a", "a", frozenset({"answered"}))
        assert [one.run_id async for one in answered] == ["a", "a.L1.1", "a.L10.1"]

    async def test_a_page_after_an_unknown_question_is_refused(self, journal: Journal) -> None:
        with pytest.raises(NotFound, match="q404"):
            await journal.questions(QuestionQuery(after="q404"))

    async def test_runs_and_questions_are_counted(self, journal: Journal) -> None:
        assert await journal.run_counts() == {}
        assert await journal.question_counts() == {}
        child_appends = [birth("a"), birth("b"), birth("c", status="done"), birth("d", kind="chat")]
        await outcomes(journal, child_appends)
        asked = [
            question_row("q1", "a"),
            question_row("q2", "a"),
            question_row("q3", "a", status="answered"),
            question_row("q4", "a", type="TOOL_APPROVAL"),
        ]
        await journal.append(step("a", 1, questions=asked))
        assert await journal.run_counts() == {
            ("plan", "running"): 2,
            ("plan", "done"): 1,
            ("chat", "running"): 1,
        }
        assert await journal.question_counts() == {
            ("open", "missing_info"): 2,
            ("answered", "missing_info"): 1,
            ("open", "TOOL_APPROVAL"): 1,
        }
        await journal.append(step("b", 1, row=run_row("b", status="done")))
        assert (await journal.run_counts())["plan", "done"] == 2

    async def test_counts_follow_every_change(self, journal: Journal) -> None:
        await journal.append(birth("a"))
        assert await journal.run_counts() == {("plan", "running"): 1}
        assert await journal.question_counts() == {}
        of_child: dict[str, Any] = {"parent_id": "a", "root_id": "a", "kind": "chat"}
        child = birth("b", **of_child)
        asked = [question_row("q1", "a"), question_row("q2", "a")]
        await journal.append(step("a", 1, child_appends=[child], questions=asked))
        assert await journal.run_counts() == {("plan", "running"): 1, ("chat", "running"): 1}
        assert await journal.question_counts() == {("open", "missing_info"): 2}
        answered = question_row("q1", "a", status="answered")
        paused = run_row("a", status="pause")
        await journal.append(step("a", 2, questions=[answered], row=paused))
        await journal.append(step("a", 3, row=paused))
        assert await journal.run_counts() == {("plan", "pause"): 1, ("chat", "running"): 1}
        assert await journal.question_counts() == {
            ("open", "missing_info"): 1,
            ("answered", "missing_info"): 1,
        }
        with pytest.raises(VersionConflict):
            await journal.append(step("a", 1, row=run_row("a", status="done")))
        again = [birth("c"), birth("a"), step("b", 1, row=run_row("b", **of_child, status="done"))]
        await outcomes(journal, again)
        assert await journal.run_counts() == {
            ("plan", "pause"): 1,
            ("plan", "running"): 1,
            ("chat", "done"): 1,
        }

    async def test_runs_are_found_by_what_is_asked_for(self, journal: Journal) -> None:
        child_appends = [
            birth("a"),
            birth("b", status="pause"),
            birth("c", kind="chat", name="helper"),
            birth("d", parent_id="a", root_id="a", status="pause"),
            birth("e", parent_id="a", root_id="a", name="helper", status="done"),
        ]
        for append in child_appends:
            await journal.append(append)
        paused = frozenset({"pause"})
        expected = {
            RunQuery(): "e d c b a",
            RunQuery(limit=2): "e d",
            RunQuery(before="d"): "c b a",
            RunQuery(before="d", limit=1): "c",
            RunQuery(roots_only=True): "c b a",
            RunQuery(kind="chat"): "c",
            RunQuery(kind="plan", roots_only=True): "b a",
            RunQuery(status=paused): "d b",
            RunQuery(status=paused, roots_only=True): "b",
            RunQuery(status=paused, before="d"): "b",
            RunQuery(status=frozenset({"pause", "done"}), limit=2): "e d",
            RunQuery(status=frozenset({"pause", "running"}), kind="plan"): "d b a",
            RunQuery(status=frozenset()): "",
            RunQuery(name="helper"): "e c",
            RunQuery(name="helper", roots_only=True): "c",
            RunQuery(name="helper", status=frozenset({"done"})): "e",
            RunQuery(name="helper", before="e", kind="chat"): "c",
            RunQuery(parent_id="a"): "e d",
            RunQuery(parent_id="a", status=paused): "d",
            RunQuery(parent_id="a", name="helper"): "e",
            RunQuery(parent_id="a", before="e"): "d",
            RunQuery(parent_id="a", roots_only=True): "",
        }
        for query, ids in expected.items():
            found = await journal.runs(query)
            assert " ".join(row.run_id for row in found) == ids, query

    async def test_pages_of_runs_join_without_gap_or_repeat(self, journal: Journal) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(25)])
        seen: list[str] = []
        while page := await journal.runs(RunQuery(before=seen[-1] if seen else None, limit=10)):
            seen += [row.run_id for row in page]
        assert sorted(seen, reverse=True) == seen
        assert len(seen) == 25

    async def test_a_page_after_an_unknown_run_is_refused(self, journal: Journal) -> None:
        with pytest.raises(NotFound, match="inst_000404"):
            await journal.runs(RunQuery(before="inst_000404"))

    async def test_a_restart_finds_active_runs_and_timers(self, journal: Journal) -> None:
        assert await journal.active_runs() == []
        assert await journal.next_wake() is None
        for name, active, wake_at in [
            ("a", True, None),
            ("b", False, 30.5),
            ("c", True, 10.0),
            ("d", False, None),
            ("e", False, 20.0),
        ]:
            await journal.append(birth(name, active=active, wake_at=wake_at))
        assert await journal.active_runs() == ["a", "c"]
        assert await journal.next_wake() == 10.0
        assert await journal.next_wake(10.0) == 20.0
        assert await journal.next_wake(30.5) is None
        assert await journal.due_runs(9.9) == []
        assert await journal.due_runs(20.0) == ["c", "e"]
        assert await journal.due_runs(99.0, limit=2) == ["c", "e"]
        await journal.append(step("c", 1, row=run_row("c", active=False)))
        assert await journal.active_runs() == ["a"]
        assert await journal.next_wake() == 20.0

    async def test_only_the_newest_snapshot_is_kept(self, journal: Journal) -> None:
        await journal.append(birth(count=5))
        assert await journal.snapshot("inst_000001", 1) is None
        old = Snapshot("inst_000001", 2, 1, '"two"')
        new = Snapshot("inst_000001", 4, 1, '"four"')
        await journal.save_snapshot(new)
        await journal.save_snapshot(old)
        assert await journal.snapshot("inst_000001", 1) == new

    async def test_a_snapshot_is_never_ahead_of_its_run(self, journal: Journal) -> None:
        await journal.append(birth(count=2))
        await journal.save_snapshot(Snapshot("inst_000001", 3, 1, '"ahead"'))
        await journal.save_snapshot(Snapshot("inst_000404", 1, 1, '"nobody"'))
        assert await journal.snapshot("inst_000001", 1) is None
        assert await journal.snapshot("inst_000404", 1) is None

    async def test_a_snapshot_of_another_schema_does_not_count(self, journal: Journal) -> None:
        await journal.append(birth(count=3))
        await journal.save_snapshot(Snapshot("inst_000001", 3, 1, '"old schema"'))
        assert await journal.snapshot("inst_000001", 2) is None
        renewed = Snapshot("inst_000001", 2, 2, '"new schema"')
        await journal.save_snapshot(renewed)
        assert await journal.snapshot("inst_000001", 2) == renewed
        assert await journal.snapshot("inst_000001", 1) is None

    async def test_a_definition_is_stored_once_by_its_digest(self, journal: Journal) -> None:
        first = StoredDefinition("sha256:1", "plan", "入职", "tasks: []", 5.5, {"file": "a.yaml"})
        await journal.store_definition(first)
        await journal.store_definition(replace(first, body="changed"))
        assert await journal.definition("sha256:1") == first
        assert await journal.definition("sha256:2") is None

    async def test_every_version_of_a_definition_is_found_the_newest_first(
        self, journal: Journal
    ) -> None:
        old = StoredDefinition("sha256:9", "plan", "入职", "1", 5.5, {"file": "a.yaml"})
        new = StoredDefinition("sha256:1", "plan", "入职", "2", 6.5)
        for stored in (
            new,
            old,
            StoredDefinition("sha256:2", "agent", "入职", "3", 7.5),
            StoredDefinition("sha256:3", "plan", "other", "4", 8.5),
        ):
            await journal.store_definition(stored)
        assert await journal.definitions("plan", "入职") == [new, old]
        assert await journal.definitions("plan", "nobody") == []

    async def test_numbers_rise_from_one_in_every_series(self, journal: Journal) -> None:
        assert [await journal.next_number("inst") for _ in range(3)] == [1, 2, 3]
        assert await journal.next_number("chat") == 1

    async def test_numbers_go_on_behind_the_runs_that_exist(
        self, journal: Journal, connect: Callable[[], Journal]
    ) -> None:
        for run_id in ["inst_000007", "inst_1000000", "inst_999999", "chat_000003", "inst_x00009"]:
            await journal.append(birth(run_id))
        await journal.append(birth("inst_000007_000099", parent_id="inst_000007"))
        await journal.close()
        again = connect()
        await again.open()
        assert await again.next_number("inst") == 1000001
        assert await again.next_number("chat") == 4
        assert await again.next_number("in") == 1
        await again.close()

    async def test_a_number_in_use_is_never_given(self, journal: Journal) -> None:
        assert await journal.next_number("inst") == 1
        await journal.append(birth("inst_000002"))
        assert await journal.next_number("inst") == 3
