"""Whether a home is sound: its records against their checksums, the audit's chain, and the rows
that lists show against what the events say, for which every run is replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from holdfast.core.run.state import RunState
from holdfast.errors import HoldfastError
from holdfast.journal.examination import walk
from holdfast.journal.integrity import Report, examine, to_json
from holdfast.journal.port import Journal, verify
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.rows import (
    DAMAGED_RUN,
    AuditEntry,
    QuestionQuery,
    QuestionRow,
    RunQuery,
    RunRow,
    request_of,
)
from holdfast.runtime.machines import run_row
from holdfast.runtime.projections import question_row
from holdfast.views.home import committed_state

__all__ = ["Report", "broken_link", "compare", "examined", "looked_at", "to_json"]

Progress: TypeAlias = Callable[[int, int], None]


def _not_shown(done: int, total: int) -> None:
    pass


_ALL = 1_000_000
_TRIES = 5
_RUN = ("kind", "name", "definition", "root_id", "parent_id", "created_at")
_STANDING = ("status", "active", "wake_at")
_TOLD = ("title", "updated_at")
_QUESTION = ("run_id", "root_id", "status", "type", "title", "role", "opened_at", "deadline")


async def examined(journal: Journal, read: Progress, replayed: Progress = _not_shown) -> Report:
    """Everything is read, and every run replayed; both hear how many of how many runs are."""
    if isinstance(journal, SqliteJournal):
        report = examine(journal.path, read)
    else:
        report = await walk(journal, read)
    await compare(journal, report, replayed)
    return report


async def looked_at(journal: Journal) -> Report:
    """How many runs there are, and of a file whether its pages are sound."""
    report = Report({"runs": sum((await journal.run_counts()).values())})
    if isinstance(journal, SqliteJournal):
        for problem in await journal.check():
            report.found("file", "pages", problem)
    return report


def broken_link(entry: AuditEntry, last: AuditEntry | None) -> str | None:
    """What is wrong with an entry of the audit, after the one before."""
    return verify([entry], last)


async def compare(journal: Journal, report: Report, progress: Progress = _not_shown) -> None:
    """Runs and questions that are known to be damaged are not named twice."""
    known = {one.name for one in report.findings}
    total = sum((await journal.run_counts()).values())
    done = 0
    async for row in _runs(journal):
        progress(done := done + 1, total)
        if row.run_id in known:
            continue
        try:
            problems = await _problems(journal, row.run_id, known)
        except HoldfastError as error:
            problems = [("run", row.run_id, f"cannot be replayed: {error}")]
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            problems = [("run", row.run_id, f"cannot be replayed: {what}")]
        report.count("runs replayed")
        for problem in problems:
            report.found(*problem)


async def _runs(journal: Journal) -> AsyncIterator[RunRow]:
    query = RunQuery()
    while rows := await journal.runs(query):
        for row in rows:
            yield row
        query = replace(query, before=rows[-1].run_id)


async def _problems(journal: Journal, run_id: str, known: set[str]) -> list[tuple[str, str, str]]:
    """Once more where the run has moved on meanwhile; one that never rests is let be."""
    for _ in range(_TRIES):
        version = await journal.version(run_id)
        state = await committed_state(journal, run_id)
        row = await journal.run(run_id)
        asked = await journal.questions(QuestionQuery(run_id=run_id, limit=_ALL))
        if row is not None and version == state.version == await journal.version(run_id):
            questions = {one.question_id: one for one in asked}
            return [*_of_run(row, state), *_of_questions(questions, state, known)]
    return []


def _of_run(row: RunRow, state: RunState) -> Iterator[tuple[str, str, str]]:
    """What people are told of a run that goes on by itself may lag behind."""
    if row.title == DAMAGED_RUN:
        yield "run", row.run_id, "its row cannot be read any more"
        return
    told = run_row(state)
    for name in (*_RUN, *_STANDING, *(() if told.active else _TOLD)):
        if getattr(row, name) != getattr(told, name):
            yield "run", row.run_id, f"its row's {name} is not what its events say"
    if not told.active and not _is_same_summary(row.summary, told.summary):
        yield "run", row.run_id, "its row's summary is not what its events say"


def _is_same_summary(found: str, told: str) -> bool:
    """Where both speak: another version of Holdfast may have told more, or less."""
    one, other = json.loads(found), json.loads(told)
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _of_questions(
    rows: Mapping[str, QuestionRow], state: RunState, known: set[str]
) -> Iterator[tuple[str, str, str]]:
    for question_id, question in state.questions.items():
        if question_id in known:
            continue
        row = rows.get(question_id)
        if row is None:
            yield "question", question_id, f"has no row; run {state.run_id} asks it"
        elif not _is_told(row, question_row(state, question)):
            yield "question", question_id, "its row is not what its run's events say"
    for question_id, row in rows.items():
        if row.status == "open" and question_id not in state.questions:
            yield "question", question_id, f"is open, and run {state.run_id} does not ask it"


def _is_told(row: QuestionRow, told: QuestionRow) -> bool:
    same = all(getattr(row, name) == getattr(told, name) for name in _QUESTION)
    return same and request_of(row) == request_of(told)
