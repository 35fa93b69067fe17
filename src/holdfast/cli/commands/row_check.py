"""Whether the rows that lists and inboxes show say what the events say: every run is replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace

from holdfast.cli.home_reader import HomeReader
from holdfast.core.run.state import RunState
from holdfast.errors import HoldfastError
from holdfast.journal.integrity import Report
from holdfast.journal.port import DAMAGED_RUN, QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.runtime.projections import question_row, request_of, run_row

_ALL = 1_000_000
_TRIES = 5
_RUN = ("kind", "name", "definition", "root_id", "parent_id", "created_at")
_STANDING = ("status", "active", "wake_at")
_TOLD = ("title", "updated_at")
_QUESTION = ("run_id", "root_id", "status", "type", "title", "role", "opened_at", "deadline")


async def compare(reading: HomeReader, report: Report) -> None:
    """Runs and questions that are known to be damaged are not named twice."""
    known = {one.name for one in report.findings}
    async for row in _runs(reading):
        if row.run_id in known:
            continue
        try:
            problems = await _problems(reading, row.run_id, known)
        except HoldfastError as error:
            problems = [("run", row.run_id, f"cannot be replayed: {error}")]
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            problems = [("run", row.run_id, f"cannot be replayed: {what}")]
        report.count("runs replayed")
        for problem in problems:
            report.found(*problem)


async def _runs(reading: HomeReader) -> AsyncIterator[RunRow]:
    query = RunQuery()
    while rows := await reading.runs(query):
        for row in rows:
            yield row
        query = replace(query, before=rows[-1].run_id)


async def _problems(
    reading: HomeReader, run_id: str, known: set[str]
) -> list[tuple[str, str, str]]:
    """Once more where the run has moved on meanwhile; one that never rests is let be."""
    for _ in range(_TRIES):
        version = await reading.version(run_id)
        state = await reading.state(run_id)
        row = await reading.journal.run(run_id)
        asked = await reading.journal.questions(QuestionQuery(run_id=run_id, limit=_ALL))
        if row is not None and version == state.version == await reading.version(run_id):
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
