"""What the run page shows besides graph and timeline: head, failures, sub-runs, cards.

A request looks up the run, what the caller may do with it and its view without parts once; all
parts of a page are made of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.console.views.card import Card, card_from
from holdfast.console.views.runs import ENDED, prompt_of
from holdfast.drawing.picture import Condition
from holdfast.model.conversation import EngineState
from holdfast.model.rows import QuestionQuery, RunQuery
from holdfast.model.run import RunKind
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission
from holdfast.server.questions import Questions
from holdfast.server.schemas.runs import RunLine
from holdfast.server.services import Services
from holdfast.server.showing import line_of, listed
from holdfast.views.actions import run_actions
from holdfast.views.failures import Failures, failures
from holdfast.views.pictures import TaskRow, task_counts, task_rows
from holdfast.views.reader import RunVersion
from holdfast.views.records import Raised, RunView

MOST_TRACEBACKS: Final = 20
MOST_CARDS: Final = 10
MOST_CHILDREN: Final = 50


@dataclass(frozen=True, slots=True)
class Head:
    """`ended_at` is when it ended, `actions` what the caller may do with it."""

    run: RunLine
    version: int
    started_by: str
    prompt: str
    digest: str
    phase: EngineState | None
    will_pause: bool
    counts: Mapping[Condition, int]
    ended_at: float | None
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run that the caller may see: `view` is without its parts, `operates` says whether they may
    command it."""

    run: RunVersion
    view: RunView
    operates: bool


async def see(served: Services, caller: Caller, run_id: str) -> SeenRun:
    """NotFound where there is no run that the caller may see."""
    subject = await caller.subject_of(served, run_id)
    run = await served.reader.at(run_id)
    return SeenRun(run, run.view(parts=False), caller.may(Permission.OPERATE, subject))


async def head_of(seen: SeenRun) -> Head:
    return await seen.run.beside(_head, seen)


def _head(seen: SeenRun) -> Head:
    run, view = seen.run, seen.view
    talk = run.conversation()
    line = line_of(view)
    return Head(
        run=line,
        version=view.version,
        started_by=view.started_by,
        prompt=prompt_of(line),
        digest=view.definition,
        phase=talk.phase if talk else None,
        will_pause=talk is not None and talk.pausing,
        counts=task_counts(run),
        ended_at=view.updated_at if view.status in ENDED else None,
        actions=run_actions(run) if seen.operates else (),
    )


async def failures_of(served: Services, seen: SeenRun) -> Failures | None:
    return await failures(served.reader, seen.run, seen.view.error, operates=seen.operates)


async def raised_in(served: Services, seen: SeenRun) -> Sequence[Raised]:
    """Tracebacks, the newest first; only for callers who may operate the run."""
    if not seen.operates:
        return ()
    return (await served.reader.tracebacks(seen.run.run_id))[:MOST_TRACEBACKS]


async def open_cards(
    served: Services, caller: Caller, view: RunView, language: str | None = None
) -> list[Card]:
    """The open questions of this run and of its sub-runs, the oldest first."""
    questions = Questions(served, caller)
    query = QuestionQuery(frozenset({"open"}), root_id=view.root_id, limit=MOST_CARDS)
    found, _ = await questions.listed(query, below=view.run_id)
    return [await card_from(served, questions, one, language) for one in found]


async def tasks_of(run: RunVersion) -> tuple[TaskRow, ...]:
    """Those of a conversation; a thousand may wait for each other in half a million ways."""
    return await aside(task_rows, run) if run.kind is RunKind.CONVERSATION else ()


async def children_of(served: Services, caller: Caller, run_id: str) -> list[RunLine]:
    query = RunQuery(parent_id=run_id, limit=MOST_CHILDREN)
    children, _ = await listed(served, caller, query)
    return children
