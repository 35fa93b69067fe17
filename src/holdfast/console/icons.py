"""Icons as line paths on a grid of twelve; those of a status are the graph's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from holdfast.drawing.picture import Condition
from holdfast.drawing.svg import ICONS
from holdfast.model.run import RunStatus

PATHS: Final[Mapping[str, str]] = {
    **{str(condition): path for condition, path in ICONS.items()},
    "plus": "M6 1.5V10.5M1.5 6H10.5",
    "close": "M2.5 2.5L9.5 9.5M9.5 2.5L2.5 9.5",
    "down": "M2.5 4.5L6 8L9.5 4.5",
    "left": "M7.5 2.5L4 6L7.5 9.5",
    "right": "M4.5 2.5L8 6L4.5 9.5",
    "alert": "M6 1.2L11.2 10.6H.8ZM6 4.6V7.2M6 8.9V9",
    "person": "M8.4 3.6A2.4 2.4 0 1 1 3.6 3.6A2.4 2.4 0 1 1 8.4 3.6M1.4 11A4.6 4 0 0 1 10.6 11",
    "globe": "M11 6A5 5 0 1 1 1 6A5 5 0 1 1 11 6M1 6H11M6 1C3 4 3 8 6 11C9 8 9 4 6 1",
    "retry": ICONS[Condition.RETRYING],
    "copy": "M4 4H10.5V10.5H4ZM2 8V1.5H8.5",
    "clock": "M11 6A5 5 0 1 1 1 6A5 5 0 1 1 11 6M6 3V6L8 7.2",
    "play": "M3 1.8L10 6L3 10.2Z",
    "more": "M2 6V6.01M6 6V6.01M10 6V6.01",
}

CONDITIONS: Final[Mapping[RunStatus, Condition]] = {
    RunStatus.NOT_STARTED: Condition.IDLE,
    RunStatus.RUNNING: Condition.RUNNING,
    RunStatus.PAUSE: Condition.WAITING,
    RunStatus.CONTINUE: Condition.RUNNING,
    RunStatus.DONE: Condition.DONE,
    RunStatus.ERROR: Condition.FAILED,
    RunStatus.CANCELLING: Condition.CANCELLED,
    RunStatus.CANCELLED: Condition.CANCELLED,
}


def icon(name: str) -> Markup:
    """Hidden from screen readers: the text beside it says the same."""
    return Markup(  # noqa: S704 (all parts are our own)
        f'<svg class="icon i-{name}" viewBox="0 0 12 12" aria-hidden="true">'
        f'<path d="{PATHS[name]}"/></svg>'
    )


def condition(status: str) -> str:
    """The colour and icon of a run's status."""
    return str(CONDITIONS[RunStatus(status)])
