"""Who runs when, and for how long: never two at once, and every probe goes round all systems.

The disk of a shared machine is fast in one minute and slow in the next. So the systems take turns
probe by probe, raw commits first, and a further round of a probe is taken by all of them or by
none. The first round is always done.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import raw
from bench.child import Outcome, Session, run_stage, run_until_stalled, session
from bench.works import Work, probes

FAST_FIRST = ("holdfast", "burr", "langgraph", "dbos")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to repeat; when to begin no further round, and when to cut short, in seconds."""

    repeats: int
    total: float
    limit: float
    stage_limit: float
    raw_seconds: float


QUICK = Pace(repeats=5, total=150.0, limit=175.0, stage_limit=175.0, raw_seconds=0.25)
FULL = Pace(repeats=5, total=240.0, limit=600.0, stage_limit=270.0, raw_seconds=0.5)


def measure(
    works: list[Work], systems: list[str], pace: Pace, scratch: Path
) -> tuple[dict[str, Outcome], list[raw.RawSample]]:
    """Every system's outcome, and the raw samples taken in between."""
    began = time.perf_counter()
    outcomes = {name: Outcome() for name in FAST_FIRST if name in systems}
    wanted = {name: probes(works, name) for name in outcomes}
    with tempfile.TemporaryDirectory(prefix=".work-", dir=scratch) as folder:
        home = Path(folder)
        raws = _take_turns(wanted, outcomes, pace, began, home)
        for name, outcome in outcomes.items():
            _restarts(name, wanted[name], pace, home / name, outcome)
        raws.append(raw.measure(home, pace.raw_seconds))
    return outcomes, raws


def _take_turns(
    wanted: dict[str, list[str]],
    outcomes: dict[str, Outcome],
    pace: Pace,
    began: float,
    home: Path,
) -> list[raw.RawSample]:
    speed = [probe for some in wanted.values() for probe in some if not _restarting(probe)]
    raws, costs = [raw.measure(home, pace.raw_seconds)], dict.fromkeys(speed, 0.0)
    with ExitStack() as stack:
        sessions: dict[str, Session] = {}
        for name, outcome in outcomes.items():
            opening = session(name, _fresh(home / name), pace.limit, outcome)
            sessions[name] = stack.enter_context(opening)
        for _ in range(pace.repeats):
            for probe in costs:
                elapsed = time.perf_counter() - began
                if costs[probe] and elapsed + costs[probe] > pace.total:
                    continue
                raws.append(raw.measure(home, pace.raw_seconds))
                for name, one in sessions.items():
                    if one.alive and probe in wanted[name]:
                        one.ask(probe, pace.limit - (time.perf_counter() - began))
                costs[probe] = time.perf_counter() - began - elapsed
    return raws


def _restarting(probe: str) -> bool:
    return probe.startswith(("waiting", "recovery"))


def _restarts(name: str, wanted: list[str], pace: Pace, home: Path, outcome: Outcome) -> None:
    """What needs a process to end and another to take up what it left."""
    for probe in filter(_restarting, wanted):
        kind, _, count = probe.partition(":")
        leave = _waiting if kind == "waiting" else _recovery
        leave(name, int(count), pace.stage_limit, _fresh(home), outcome)


def _waiting(name: str, count: int, limit: float, home: Path, outcome: Outcome) -> None:
    request = {"home": str(home / "waiting"), "count": count}
    (home / "waiting").mkdir()
    if run_stage(name, {**request, "stage": "fill"}, limit, outcome):
        run_stage(name, {**request, "stage": "wake"}, limit, outcome)


def _recovery(name: str, count: int, limit: float, home: Path, outcome: Outcome) -> None:
    request = {"home": str(home), "count": count}
    if run_until_stalled(name, {**request, "stage": "stall"}, limit, outcome):
        run_stage(name, {**request, "stage": "recover"}, limit, outcome)


def _fresh(home: Path) -> Path:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    return home


def figures(
    works: list[Work], systems: list[str], outcomes: dict[str, Outcome], raws: list[raw.RawSample]
) -> dict[str, dict[str, float | None]]:
    """`{work: {system: figure}}`, the median of the samples; null where there is none."""
    table: dict[str, dict[str, float | None]] = {}
    for work in works:
        row = table[work.name] = {}
        for system in systems:
            outcome = outcomes.get(system)
            samples = outcome.samples.get(work.name, []) if outcome else []
            row[system] = _rounded(statistics.median(samples)) if samples else None
        if "raw" in systems:
            row["raw"] = raw_figure(work, raws)
    return table


def raw_figure(work: Work, raws: list[raw.RawSample]) -> float | None:
    """The limit that fits the work: commits per second, time or bytes of one commit, or none."""
    match work.unit:
        case "steps/s":
            return _rounded(statistics.median(sample.commits_per_second for sample in raws))
        case "bytes":
            return _rounded(statistics.median(sample.bytes_per_row for sample in raws))
        case "µs":
            return _rounded(statistics.median(sample.commit_ms for sample in raws) * 1e3)
        case _:
            return None


def _rounded(figure: float) -> float:
    return round(figure, 1) if figure >= 100 else round(figure, 3)
