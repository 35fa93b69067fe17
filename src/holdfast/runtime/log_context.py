"""What a log line is about, for whatever is logged within: the work that is carried out, and the
request that is served.

The task that carries a run sets `CARRIED` once and notes each attempt in it, because setting a
variable anew for each would cost 0.8 % of a step, and this costs 0.3 %. So lines of a person's own
tool, of its threads and of the libraries under it name the run and the step. A task that a tool
leaves behind when it returns is taken for whatever its run does next.

The server sets `REQUEST` to the request's state, which has its id and, once the caller is known,
the `person`; what the engine goes on to do belongs to no request (`background`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from holdfast.model.effects import Work


class Carried:
    """`work` is the attempt that a task has begun last."""

    work: Work | None = None


CARRIED: Final[ContextVar[Carried | None]] = ContextVar("holdfast_carried", default=None)
REQUEST: Final[ContextVar[Mapping[str, Any] | None]] = ContextVar("holdfast_request", default=None)
