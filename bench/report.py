"""The report of a run: report.json for programs, report.md for people."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from typing import Any

from bench.child import Outcome
from bench.raw import RawSample
from bench.works import Work

Figures = dict[str, dict[str, float | None]]

PEERS = ("langgraph", "dbos", "burr", "raw")
NOTES = (
    "Medians. A ratio says how many times better ours is; above 1 ours wins.",
    "A chain has one node per effect in LangGraph and Burr; a loop runs one node again and again.",
    "Growth counts whole pages of the database file, so it says little about short chains.",
    "DBOS recovers in the background after its start-up: the first continue waits for that.",
)


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
    }


def as_json(
    figures: Figures, outcomes: dict[str, Outcome], raws: list[RawSample], budget: dict[str, Any]
) -> str:
    systems = {
        name: {
            "versions": outcome.versions,
            "durability": outcome.durability,
            "samples": outcome.samples,
            "problems": outcome.problems,
        }
        for name, outcome in outcomes.items()
    }
    raw = [sample.commits_per_second for sample in raws]
    content = {"figures": figures, "machine": machine(), "systems": systems, "raw": raw}
    content |= {"budget": budget} if budget else {}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def ratio(work: Work, row: dict[str, float | None], peer: str) -> float | None:
    """How many times better ours is: above 1 ours wins, whichever way the unit counts."""
    ours, theirs = row.get("holdfast"), row.get(peer)
    if not ours or not theirs:
        return None
    return ours / theirs if work.better == "more" else theirs / ours


def markdown(
    works: list[Work],
    systems: list[str],
    figures: Figures,
    outcomes: dict[str, Outcome],
    raws: list[RawSample],
) -> str:
    peers = [peer for peer in PEERS if peer in systems and "holdfast" in systems]
    head = ["work", "unit", *systems, *(f"ours : {peer}" for peer in peers)]
    lines = ["# Holdfast beside its peers", "", _row(head), _row(["---"] * len(head))]
    lines += [_row(_cells(work, systems, peers, figures[work.name])) for work in works]
    lines += ["", *NOTES, ""]
    lines += [f"- {key}: {value}" for key, value in machine().items()]
    lines += [f"- raw commits per second: {_spread(raws)}"]
    for name, outcome in outcomes.items():
        lines += _about(name, outcome)
    return "\n".join(lines) + "\n"


def _cells(
    work: Work, systems: list[str], peers: list[str], row: dict[str, float | None]
) -> list[str]:
    measured = [_number(row.get(system)) for system in systems]
    compared = [_times(ratio(work, row, peer)) for peer in peers]
    return [work.title, work.unit, *measured, *compared]


def _about(name: str, outcome: Outcome) -> list[str]:
    rounds = sorted(map(len, outcome.samples.values()))
    facts = {**outcome.versions, **outcome.durability}
    facts |= {"rounds": f"{rounds[0]} to {rounds[-1]}"} if rounds else {}
    told = ", ".join(f"{key} {value}" for key, value in facts.items())
    return [f"- {name}: {told or 'not measured'}", *(f"  - {it}" for it in outcome.problems)]


def _spread(raws: list[RawSample]) -> str:
    """How steady the disk was: where these differ much, no figure of the run says much."""
    rates = [sample.commits_per_second for sample in raws]
    return f"{min(rates):,.0f} to {max(rates):,.0f} in {len(rates)} samples"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(figure: float | None) -> str:
    if figure is None:
        return "–"
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def _times(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.2g}x" if figure < 10 else f"{figure:.0f}x"
