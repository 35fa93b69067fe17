"""What the runs page shows: a page of the runs that the caller may see, and its filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from holdfast.console.formatting import query
from holdfast.model.rows import DAMAGED_RUN, RunQuery
from holdfast.model.run import JOURNAL_KINDS, RunKind, RunStatus
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission, agent, plan, run_of
from holdfast.server.schemas.runs import RunLine
from holdfast.server.services import Services
from holdfast.server.showing import listed

PAGE: Final = 50

STATUSES: Final[Mapping[str, frozenset[str]]] = {
    "running": frozenset(
        {RunStatus.NOT_STARTED, RunStatus.RUNNING, RunStatus.CONTINUE, RunStatus.CANCELLING}
    ),
    "pause": frozenset({RunStatus.PAUSE}),
    "error": frozenset({RunStatus.ERROR}),
    "done": frozenset({RunStatus.DONE}),
    "cancelled": frozenset({RunStatus.CANCELLED}),
}
"""The values of the status filter, and the statuses of each."""

ENDED: Final = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})
CANCELLABLE: Final = frozenset(RunStatus) - {
    RunStatus.DONE,
    RunStatus.CANCELLING,
    RunStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Filters:
    """The page's query; `before` is the last run of the page before."""

    status: str | None = None
    plan: str | None = None
    kind: RunKind | None = None
    before: str | None = None

    @property
    def narrow(self) -> bool:
        return bool(self.status or self.plan or self.kind or self.before)

    def link(self, **changes: str | None) -> str:
        """The path with these changes, from the first page."""
        members = {**asdict(self), "before": None, **changes}
        return f"/console/runs{query(**members)}"

    @property
    def part(self) -> str:
        return f"/console/parts/runs{query(**asdict(self))}"

    def asked(self) -> RunQuery:
        return RunQuery(
            status=STATUSES[self.status] if self.status else None,
            name=self.plan,
            kind=JOURNAL_KINDS[self.kind] if self.kind else None,
            roots_only=True,
            before=self.before,
            limit=PAGE,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """`facts` are shown where there is no prompt; `actions` are what the caller may do now."""

    run: RunLine
    prompt: str
    facts: str
    done: int | None
    tasks: int | None
    skipped: int
    waiting: int
    retries: int
    turn: int | None
    ended_at: float | None
    actions: tuple[str, ...]

    @property
    def damaged(self) -> bool:
        return self.run.title == DAMAGED_RUN


@dataclass(frozen=True, slots=True)
class RunsPage:
    filters: Filters
    rows: tuple[Row, ...]
    older: str | None
    may_operate: bool
    sample: str
    """A plan to start, for an empty list; empty where the caller may start none."""

    @property
    def statuses(self) -> tuple[str, ...]:
        return tuple(STATUSES)

    @property
    def kinds(self) -> tuple[RunKind, ...]:
        return tuple(RunKind)


async def runs_page(served: Services, caller: Caller, filters: Filters) -> RunsPage:
    lines, following = await listed(served, caller, filters.asked())
    rows = tuple(
        _row(line, caller.may(Permission.OPERATE, run_of(line.kind, line.name))) for line in lines
    )
    older = filters.link(before=following) if following else None
    plans = startable_plans(served, caller)
    sample = plans[0].plan_id if plans else ""
    return RunsPage(filters, rows, older, any(row.actions for row in rows), sample)


def _row(line: RunLine, operates: bool) -> Row:
    summary: Mapping[str, Any] = line.summary.model_dump()
    return Row(
        run=line,
        prompt=prompt_of(line),
        facts="" if prompt_of(line) else line.summary.facts or "",
        done=summary.get("done"),
        tasks=summary.get("tasks"),
        skipped=summary.get("skipped") or 0,
        waiting=summary.get("waiting") or 0,
        retries=summary.get("retries") or 0,
        turn=summary.get("turn"),
        ended_at=line.updated_at if line.status in ENDED else None,
        actions=_actions(line.status) if operates else (),
    )


def prompt_of(line: RunLine) -> str:
    """The run's prompt, unless it only names the plan."""
    prompt = line.summary.prompt or ""
    return "" if prompt in (line.name, line.title) else prompt


def _actions(status: RunStatus) -> tuple[str, ...]:
    can = {"cancel": status in CANCELLABLE, "resume": status is RunStatus.ERROR}
    return tuple(one for one, possible in can.items() if possible)


def names_of_runs(served: Services, caller: Caller) -> list[str]:
    """The plans and agents that the list may be filtered by."""
    library = served.app.engine.definitions
    plans = [one for one in library.plan_ids() if caller.sees(plan(one))]
    return sorted([*plans, *(one for one in library.agent_ids() if caller.sees(agent(one)))])


@dataclass(frozen=True, slots=True)
class Startable:
    plan_id: str
    name: str


def startable_plans(served: Services, caller: Caller) -> list[Startable]:
    """The plans that the caller may start, by name."""
    library = served.app.engine.definitions
    names = [one for one in library.plan_ids() if caller.may(Permission.OPERATE, plan(one))]
    found = [Startable(one, library.current(one).plan.name) for one in names]
    return sorted(found, key=lambda one: one.name)
