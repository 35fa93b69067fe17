"""How an installation is: what monitoring reads again and again, and what `doctor` looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_SKEW: Final = 2.0
"""By how many seconds the clocks of the database and of this machine may differ."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Where more than `MOST_COUNTED` of anything are there, so many are told."""

    unsealed: int
    """Records that have no place among all commits yet."""
    sealing_lag: float
    """For how many seconds the oldest of them, or of the deeds, has waited."""
    jobs_waiting: int
    jobs_delayed: int
    """Handed back by a worker, to be driven later."""
    oldest_job: float
    jobs_driven: int
    jobs_stalled: int
    workers: int
    slots: int
    slots_held: int


@dataclass(frozen=True, slots=True)
class Process:
    """A server or a worker that has the database open, and for how long it has been silent: None
    where that may not be seen."""

    role: str
    version: str
    name: str
    silent: float | None


@dataclass(frozen=True, slots=True)
class StalledDrive:
    run_id: str
    worker: int
    silent: float


@dataclass(frozen=True, slots=True)
class RetriedDrive:
    run_id: str
    attempts: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    seconds: float
    holder: str
    writes: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """Of runs some are named. Without `figures` the schema is none of this program's."""

    schema: int
    wanted_schema: int
    clock_skew: float
    connections: int
    connections_allowed: int
    hidden: bool = False
    """Whether what others do in the database may not be seen."""
    transactions: tuple[OpenTransaction, ...] = ()
    figures: Figures | None = None
    processes: tuple[Process, ...] = ()
    stalled: tuple[StalledDrive, ...] = ()
    retried: tuple[RetriedDrive, ...] = ()
    forgotten: tuple[str, ...] = ()
    overdue: tuple[tuple[str, float], ...] = ()
    quarantined: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
