"""What is measured: every figure by name, and the probe of `trial.py` that yields it.

One probe may yield several figures: a chain gives its speed, its cost per step and its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SYSTEMS = ("holdfast", "langgraph", "dbos", "burr", "raw")

Better = Literal["more", "less"]

WITHOUT_QUADRATIC_COST = ("holdfast", "dbos")
"""Who can chain ten thousand distinct effects within the time of a run."""


@dataclass(frozen=True, slots=True)
class Work:
    """One figure; `probe` is the kind of trial and its sizes, `systems` who can do it in time."""

    name: str
    title: str
    unit: str
    better: Better
    probe: str
    quick: bool = False
    systems: tuple[str, ...] = SYSTEMS[:4]


def _chains(length: int) -> list[Work]:
    quick = length in (100, 1000)
    probe, title = f"chain:{length}", f"chain of {length:,} distinct effects"
    systems = SYSTEMS[:4] if length <= 1000 else WITHOUT_QUADRATIC_COST
    return [
        Work(f"chain_{length}", title, "steps/s", "more", probe, quick, systems),
        Work(f"step_us_{length}", f"{title}: cost of a step", "µs", "less", probe, False, systems),
        Work(
            f"bytes_per_step_{length}",
            f"{title}: database growth per step",
            "bytes",
            "less",
            probe,
            length == 1000,
            systems,
        ),
    ]


def _loops(length: int) -> list[Work]:
    probe, title = f"loop:{length}", f"{length:,} effects in a loop over one node"
    return [
        Work(f"loop_{length}", title, "steps/s", "more", probe),
        Work(f"loop_{length}_bytes", f"{title}: growth per step", "bytes", "less", probe),
    ]


def _waiting(count: int, systems: tuple[str, ...]) -> list[Work]:
    probe, title = f"waiting:{count}", f"{count:,} waiting runs"
    figures = (
        ("memory_mb", "memory they add", "MB"),
        ("startup_s", "start-up", "s"),
        ("continue_ms", "continue one", "ms"),
    )
    return [
        Work(f"waiting_{count}_{key}", f"{title}: {what}", unit, "less", probe, systems=systems)
        for key, what, unit in figures
    ]


WORKS: tuple[Work, ...] = (
    *_chains(10),
    *_chains(100),
    *_chains(1000),
    *_chains(10_000),
    *_loops(100),
    *_loops(1000),
    Work(
        "runs_100x10", "100 runs at once, 10 effects each", "steps/s", "more", "runs:100x10", True
    ),
    Work("pause_continue_ms", "pause to continue, p50", "ms", "less", "pause:50", True),
    *_waiting(1000, SYSTEMS[:4]),
    *_waiting(100_000, ("holdfast",)),
    Work("recovery_1000_s", "1,000 active runs after SIGKILL", "s", "less", "recovery:1000"),
)


def chosen(*, quick: bool, only: list[str]) -> list[Work]:
    """The works asked for; naming one explicitly takes it even into a quick run."""
    if only:
        return [work for work in WORKS if work.name in only]
    return [work for work in WORKS if work.quick or not quick]


def probes(works: list[Work], system: str) -> list[str]:
    """The probes `system` must run to yield `works`, each once, in order."""
    return list(dict.fromkeys(work.probe for work in works if system in work.systems))
