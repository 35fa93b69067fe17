"""A run's graph, now or at an earlier event."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from holdfast.drawing.svg import draw
from holdfast.runtime.offload import aside
from holdfast.server.services import Services
from holdfast.views.pictures import picture
from holdfast.views.reader import RunVersion
from holdfast.views.records import TimelineEntry
from holdfast.views.timeline_pages import last_entry


@dataclass(frozen=True, slots=True)
class Graph:
    """`seq` is the event that it shows, `version` the newest; `told` describes an earlier event."""

    run_id: str
    svg: Markup
    seq: int
    version: int
    told: TimelineEntry | None

    @property
    def part(self) -> str:
        at = "" if self.told is None else f"?at={self.seq}"
        return f"/console/parts/runs/{self.run_id}/graph{at}"


async def graph_of(
    served: Services, run: RunVersion, language: str, at: int | None
) -> Graph | None:
    """None for a chat, and for a conversation before its first turn."""
    shown = run if at is None else await served.reader.at(run.run_id, max(at, 1))
    told = None if at is None else await last_entry(served.reader, shown)
    svg = await aside(_drawn, shown, language)
    return None if svg is None else Graph(run.run_id, svg, shown.version, run.version, told)


def _drawn(run: RunVersion, language: str) -> Markup | None:
    shown = picture(run)
    if shown is None:
        return None
    drawn = draw(shown, styled=False, language=language)
    return Markup(drawn)  # noqa: S704 (the drawing escapes every text itself)
