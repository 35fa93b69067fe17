"""What a deploy would break: runs that are under way and need what an application has not.

A run keeps its plan, its agent and its forms as they were when it began. Tools, the agents and
plans that it calls, and handlers are those of the process that goes on with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, replace

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError
from holdfast.i18n.message import msg
from holdfast.journal.integrity import Finding
from holdfast.journal.port import Journal
from holdfast.model.rows import QuestionQuery, RunQuery, RunRow, request_of
from holdfast.model.run import FINISHED, RunStatus
from holdfast.runs.required_tools import Need, own_needs
from holdfast.views.home import committed_state

UNDER_WAY = frozenset(one.value for one in RunStatus) - FINISHED
PAGE = 1000
NAMED = 5


@dataclass(frozen=True, slots=True)
class Lack:
    """What runs need and the application has not; `why` where their records cannot be read."""

    kind: str
    name: str
    runs: tuple[str, ...]
    why: str = ""


async def lacking(
    journal: Journal, app: Holdfast, plans: Collection[str] = ()
) -> AsyncIterator[Lack]:
    """`plans` are known besides the application's own: those that were registered."""
    found: dict[tuple[str, str, str], list[str]] = {}
    async for row in _under_way(journal):
        async for kind, name, why in _lacked(journal, app, plans, row):
            found.setdefault((kind, name, why), []).append(row.run_id)
    for (kind, name, why), runs in found.items():
        yield Lack(kind, name, tuple(runs), why)


def problem(lack: Lack) -> Finding:
    shown = ", ".join(lack.runs[:NAMED]) + (", …" if len(lack.runs) > NAMED else "")
    if lack.why:
        words = msg(
            "runs that this release cannot read ({count}; {why}): {runs}",
            count=len(lack.runs),
            why=lack.why,
            runs=shown,
        )
        remedy = msg("do not deploy it before they have ended")
    else:
        words = msg(
            "runs need the {kind} {name}, which the application has not ({count}): {runs}",
            count=len(lack.runs),
            kind=_KINDS[lack.kind],
            name=lack.name,
            runs=shown,
        )
        remedy = msg("keep it until they have ended, or cancel them")
    return Finding("deploy", lack.name, words, remedy=remedy)


_KINDS = {
    "tool": msg("tool"),
    "agent": msg("agent"),
    "plan": msg("plan"),
    "handler": msg("handler"),
}


async def _under_way(journal: Journal) -> AsyncIterator[RunRow]:
    query = RunQuery(status=UNDER_WAY, limit=PAGE)
    while rows := await journal.runs(query):
        for row in rows:
            yield row
        query = replace(query, before=rows[-1].run_id)


async def _lacked(
    journal: Journal, app: Holdfast, plans: Collection[str], row: RunRow
) -> AsyncIterator[tuple[str, str, str]]:
    try:
        state = await committed_state(journal, row.run_id)
    except HoldfastError as error:
        yield "run", row.name, str(error)
        return
    for need in dict.fromkeys(own_needs(state)):
        if not _has(app, plans, need):
            yield *need, ""
    asked = QuestionQuery(run_id=row.run_id, status=frozenset({"open"}), limit=PAGE)
    for question in await journal.questions(asked):
        for name in app.interactions.missing(request_of(question)):
            yield "handler", name, ""


def _has(app: Holdfast, plans: Collection[str], need: Need) -> bool:
    kind, name = need
    match kind:
        case "tool":
            return name in app.tools
        case "agent":
            return name in app.engine.definitions.agent_ids()
        case "plan":
            return name in app.engine.definitions.plan_ids() or name in plans
        case _:
            return True
