"""A run's timeline as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.console.formatting import query
from holdfast.model.run import RunKind
from holdfast.server.services import Services
from holdfast.views.reader import RunVersion
from holdfast.views.records import TimelineEntry
from holdfast.views.timeline_pages import timeline_page


@dataclass(frozen=True, slots=True)
class Timeline:
    """`before` is where this page begins, `older` where the next one does.

    The first page's address names the oldest row that it shows, and so keeps it.
    `drawn`: the run has a graph, which can be shown as it was at each event.
    """

    run_id: str
    rows: tuple[TimelineEntry, ...]
    before: int | None
    older: int | None
    drawn: bool

    @property
    def part(self) -> str:
        since = self.rows[-1].seq if self.rows and self.before is None else None
        page = query(before=self.before, since=since)
        return f"/console/parts/runs/{self.run_id}/timeline{page}"


async def timeline_of(
    served: Services, run: RunVersion, before: int | None, since: int | None = None
) -> Timeline:
    page = await timeline_page(served.reader, run, before, since)
    drawn = run.kind is not RunKind.CHAT
    return Timeline(run.run_id, page.entries, before, page.older, drawn)
