"""What a log line is about, for whatever is logged within: the work that is carried out, and the
request that is served.

The task that carries a run sets `CARRIED` once and notes each attempt in it, because setting a
variable anew for each would cost 0.8 % of a step, and this costs 0.3 %. So lines of a person's own
tool, of its threads and of the libraries under it name the run and the step. A task that a tool
leaves behind when it returns is taken for whatever its run does next.

The server sets `REQUEST`; what the engine goes on to do belongs to no request (`background`).
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from holdfast.model.effects import Work


@dataclass(slots=True)
class Carried:
    """`work` is the attempt that the task has begun last."""

    work: Work | None = None


@dataclass(slots=True)
class Request:
    """`person` is the caller's id, once they are known."""

    id: str
    person: str = ""


CARRIED: Final[ContextVar[Carried | None]] = ContextVar("holdfast_carried", default=None)
REQUEST: Final[ContextVar[Request | None]] = ContextVar("holdfast_request", default=None)


def carrying(work: Work | None = None) -> Carried:
    """From now on this task's log lines are about what is noted in the result."""
    carried = Carried(work)
    CARRIED.set(carried)
    return carried
