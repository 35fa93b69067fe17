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
from holdfast.views.stories.phrases import Voice
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


async def graph_of(served: Services, run: RunVersion, say: Voice, at: int | None) -> Graph | None:
    """None for a chat, and for a conversation before its first turn."""
    if picture(run, say) is None:
        return None
    shown = run if at is None else await served.reader.at(run.run_id, max(at, 1))
    told = None if at is None else await last_entry(served.reader, shown, say)
    svg = await aside(_drawn, shown, say)
    return None if svg is None else Graph(run.run_id, svg, shown.version, run.version, told)


def _drawn(run: RunVersion, say: Voice) -> Markup | None:
    shown = picture(run, say)
    if shown is None:
        return None
    return Markup(draw(shown, styled=False, say=say))  # noqa: S704 (escaped where it is drawn)
