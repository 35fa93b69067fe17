"""A run's graph, now or at an earlier event, and how many tasks are in which condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from holdfast.console.replayed import Past
from holdfast.console.views.timeline import Told, told_event
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.drawing.graph import picture_of
from holdfast.drawing.picture import Condition, Picture
from holdfast.drawing.svg import draw
from holdfast.drawing.tasks import picture_of_tasks
from holdfast.runtime.offload import aside
from holdfast.server.services import Services
from holdfast.views.stories.phrases import Voice

ORDER: Final = (
    Condition.RUNNING,
    Condition.RETRYING,
    Condition.WAITING,
    Condition.FAILED,
    Condition.DONE,
    Condition.SKIPPED,
    Condition.CANCELLED,
    Condition.IDLE,
)
"""The order in which counts are shown."""


@dataclass(frozen=True, slots=True)
class Graph:
    """`seq` is the event that it shows, `version` the newest; `told` describes an earlier event."""

    run_id: str
    svg: Markup
    seq: int
    version: int
    told: Told | None

    @property
    def part(self) -> str:
        at = "" if self.told is None else f"?at={self.seq}"
        return f"/console/parts/runs/{self.run_id}/graph{at}"


async def graph_of(
    served: Services, past: Past, state: RunState, say: Voice, at: int | None
) -> Graph | None:
    """None for a chat, and for a conversation before its first turn."""
    if picture(state, say) is None:
        return None
    shown = state if at is None else await past.state(served.journal, state, max(at, 1))
    told = None if at is None else await told_event(served, shown, say)
    svg = await aside(_drawn, shown, say)
    if svg is None:
        return None
    return Graph(state.run_id, svg, shown.version, state.version, told)


def picture(state: RunState, say: Voice) -> Picture | None:
    if isinstance(state, PlanState):
        return picture_of(state.plan.plan, state, say)
    if isinstance(state, ConversationState) and state.turn:
        return picture_of_tasks(state, say)
    return None


def _drawn(state: RunState, say: Voice) -> Markup | None:
    shown = picture(state, say)
    if shown is None:
        return None
    return Markup(draw(shown, styled=False, say=say))  # noqa: S704 (escaped where it is drawn)


def counts_of(state: RunState, say: Voice) -> Mapping[Condition, int]:
    """Tasks per condition; the goal, which is the main task again, is not counted."""
    shown = picture(state, say)
    nodes = shown.nodes if shown else ()
    tasks = [one for one in nodes if not {"goal", "listener"} & {*one.classes.split()}]
    counts = Counter(one.condition for one in tasks)
    return {one: counts[one] for one in ORDER if counts[one]}
