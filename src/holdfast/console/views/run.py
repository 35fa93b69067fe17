"""What the run page shows besides graph and timeline: head, failures, sub-runs, cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.console.views.card import Card, card_from
from holdfast.console.views.runs import ENDED, prompt_of
from holdfast.drawing.picture import Condition
from holdfast.model.conversation import EngineState
from holdfast.model.rows import QuestionQuery, RunQuery
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission, run_of
from holdfast.server.questions import Questions
from holdfast.server.schemas.runs import RunLine, RunShown
from holdfast.server.services import Services
from holdfast.server.showing import listed, run_shown
from holdfast.views.actions import run_actions
from holdfast.views.failures import Failures, failures
from holdfast.views.pictures import task_counts
from holdfast.views.reader import RunVersion
from holdfast.views.records import Raised

MOST_TRACEBACKS: Final = 20
MOST_CARDS: Final = 10
MOST_CHILDREN: Final = 50


@dataclass(frozen=True, slots=True)
class Head:
    """`ended_at` is when it ended, `actions` what the caller may do with it."""

    run: RunShown
    prompt: str
    digest: str
    phase: EngineState | None
    will_pause: bool
    counts: Mapping[Condition, int]
    ended_at: float | None
    actions: tuple[str, ...]


async def may_operate(served: Services, caller: Caller, run_id: str) -> bool:
    root = await served.reader.root(run_id)
    return root is not None and caller.may(Permission.OPERATE, run_of(root.kind, root.name))


async def head_of(served: Services, caller: Caller, run: RunVersion) -> Head:
    shown = await run_shown(served, run.run_id)
    operates = await may_operate(served, caller, run.run_id)
    view, talk = run.view(parts=False), run.conversation()
    return Head(
        run=shown,
        prompt=prompt_of(shown),
        digest=view.definition,
        phase=talk.phase if talk else None,
        will_pause=talk is not None and talk.pausing,
        counts=task_counts(run),
        ended_at=view.updated_at if view.status in ENDED else None,
        actions=run_actions(run) if operates else (),
    )


async def failures_of(served: Services, caller: Caller, run: RunVersion) -> Failures | None:
    operates = await may_operate(served, caller, run.run_id)
    return await failures(served.reader, run, operates=operates)


async def raised_in(served: Services, caller: Caller, run: RunVersion) -> Sequence[Raised]:
    """Tracebacks, the newest first; only for callers who may operate the run."""
    if not await may_operate(served, caller, run.run_id):
        return ()
    return (await served.reader.tracebacks(run.run_id))[:MOST_TRACEBACKS]


async def open_cards(served: Services, caller: Caller, run: RunVersion) -> list[Card]:
    """The open questions of this run and of its sub-runs, the oldest first."""
    questions = Questions(served, caller)
    root_id = run.view(parts=False).root_id
    query = QuestionQuery(frozenset({"open"}), root_id=root_id, limit=MOST_CARDS)
    found, _ = await questions.listed(query, below=run.run_id)
    return [await card_from(served, questions, one) for one in found]


async def children_of(served: Services, caller: Caller, run: RunVersion) -> list[RunLine]:
    query = RunQuery(parent_id=run.run_id, limit=MOST_CHILDREN)
    children, _ = await listed(served, caller, query)
    return children
