"""Who runs when, and for how long: one system after another, raw commits in between.

One deadline is shared among the systems still to come, and the fast ones come first, so they leave
their time to the repeats of the slow ones; the first round of every system is always done.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import raw
from bench.child import Outcome, run_stage, run_until_stalled
from bench.works import Work, probes

QUICK_SECONDS = 42.0
QUICK_LIMIT = 48.0
START_SECONDS = 2.0
FAST_FIRST = ("holdfast", "burr", "langgraph", "dbos")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to repeat, and how many seconds the whole and each part may take."""

    repeats: int
    total: float
    limit: float
    stage_limit: float
    raw_seconds: float


QUICK = Pace(3, QUICK_SECONDS, QUICK_LIMIT, QUICK_LIMIT, raw_seconds=0.3)
FULL = Pace(5, total=330.0, limit=1200.0, stage_limit=150.0, raw_seconds=1.0)


def measure(
    works: list[Work], systems: list[str], pace: Pace, scratch: Path
) -> tuple[dict[str, Outcome], list[raw.RawSample]]:
    """Every system's outcome, and the raw samples taken before, between and after them."""
    began, outcomes, samples = time.perf_counter(), {}, []
    contenders = [name for name in FAST_FIRST if name in systems]
    with tempfile.TemporaryDirectory(prefix=".work-", dir=scratch) as folder:
        home = Path(folder)
        for number, name in enumerate(contenders):
            samples.append(raw.measure(home, pace.raw_seconds))
            elapsed = time.perf_counter() - began
            share = (pace.total - elapsed) / (len(contenders) - number)
            limit = min(pace.limit - elapsed, pace.stage_limit + share)
            outcomes[name] = _measure_system(name, works, pace, share, limit, home)
        samples.append(raw.measure(home, pace.raw_seconds))
        if not contenders:
            samples += [raw.measure(home, pace.raw_seconds) for _ in range(4)]
    return outcomes, samples


def _measure_system(
    name: str, works: list[Work], pace: Pace, share: float, limit: float, home: Path
) -> Outcome:
    outcome, wanted = Outcome(), probes(works, name)
    speed = [probe for probe in wanted if not probe.startswith(("waiting", "recovery"))]
    place = _fresh(home / name)
    request = {
        "stage": "measure",
        "home": str(place),
        "probes": speed,
        "repeats": pace.repeats,
        "budget": share - START_SECONDS,
    }
    run_stage(name, request, max(limit, 1.0), outcome)
    for probe in wanted:
        kind, _, count = probe.partition(":")
        if kind == "waiting":
            _waiting(name, int(count), pace.stage_limit, _fresh(place), outcome)
        elif kind == "recovery":
            _recovery(name, int(count), pace.stage_limit, _fresh(place), outcome)
    shutil.rmtree(place)
    return outcome


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
