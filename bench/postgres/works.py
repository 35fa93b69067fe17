"""What is measured on PostgreSQL, by whom, and what has to come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IN_PROCESS = "holdfast"
WORKERS = {"1 worker": 1, "2 workers": 2, "4 workers": 4}
PEERS = ("langgraph", "dbos")
SYSTEMS = ("raw", IN_PROCESS, *PEERS, *WORKERS)

Better = Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Work:
    """One figure, and the probe that yields it."""

    name: str
    title: str
    unit: str
    better: Better
    probe: str


WORKS = (
    Work("chain_100", "chain of 100 effects", "steps/s", "more", "chain:100"),
    Work("chain_1000", "chain of 1,000 effects", "steps/s", "more", "chain:1000"),
    Work("runs_100x10", "100 runs at once, 10 effects each", "steps/s", "more", "runs:100x10"),
    Work("first_p50_ms", "start to first effect, p50", "ms", "less", "first:100"),
    Work("first_p99_ms", "start to first effect, p99", "ms", "less", "first:100"),
    Work("pause_continue_ms", "pause to continue, p50", "ms", "less", "pause:30"),
)

PROBES = tuple(dict.fromkeys(work.probe for work in WORKS))


@dataclass(frozen=True, slots=True)
class Mark:
    """Of a figure of ours: so many times a peer's, or at most so much by itself."""

    work: str
    system: str
    peer: str | None
    wanted: float

    def reached(self, figures: dict[str, dict[str, float | None]]) -> float | None:
        """The ratio, or the figure itself where there is no peer."""
        ours = figures[self.work].get(self.system)
        theirs = figures[self.work].get(self.peer) if self.peer else 1.0
        return ours / theirs if ours and theirs else None

    def holds(self, reached: float) -> bool:
        return reached >= self.wanted if self.peer else reached <= self.wanted


MARKS = (
    *(Mark(work, IN_PROCESS, peer, 3) for work in ("chain_100", "chain_1000") for peer in PEERS),
    *(Mark("runs_100x10", IN_PROCESS, peer, 5) for peer in PEERS),
    *(Mark("runs_100x10", system, "langgraph", 2) for system in WORKERS),
    *(Mark("first_p50_ms", system, None, 40) for system in (IN_PROCESS, *WORKERS)),
)
