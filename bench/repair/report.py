"""What is told of all trials: for programs as JSON, for people as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from bench.repair.judging import Outcome

_COUNTS: Final = ("calls", "requests", "tokens", "questions", "patches")


def as_json(told: dict[str, Any], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """`told` says which trials these were."""
    return {
        **told,
        "totals": totals(outcomes),
        "groups": {group: totals(_of(outcomes, group)) for group in _groups(outcomes)},
        "trials": [asdict(one) for one in outcomes],
    }


def totals(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counted = {name: sum(getattr(one, name) for one in outcomes) for name in _COUNTS}
    right = sum(one.right for one in outcomes)
    return {
        "trials": len(outcomes),
        "right": right,
        "harm": sum(len(one.harm) for one in outcomes),
        **counted,
    }


def as_text(told: dict[str, Any], outcomes: Sequence[Outcome]) -> str:
    head = ["trial", "end", "right", "harm", *_COUNTS, "seconds"]
    named = ", ".join(f"{name} {value}" for name, value in told.items())
    lines = [f"# Repair bench: {named}", ""]
    for group in _groups(outcomes):
        some = _of(outcomes, group)
        lines += [f"## {group}: {sum(one.right for one in some)} of {len(some)}", ""]
        lines += [_row(head), _row(["---"] * len(head)), *map(_line, some), ""]
    lines += [f"- {one.name}: {why}" for one in outcomes for why in (*one.harm, *one.wrong)]
    total = ", ".join(f"{name} {value}" for name, value in totals(outcomes).items())
    return "\n".join([*lines, "", f"In all: {total}"])


def _line(one: Outcome) -> str:
    right = "yes" if one.right else "no"
    counts = [getattr(one, name) for name in _COUNTS]
    return _row([one.name, one.end, right, len(one.harm), *counts, f"{one.seconds:g}"])


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _groups(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(one.group for one in outcomes))


def _of(outcomes: Sequence[Outcome], group: str) -> list[Outcome]:
    return [one for one in outcomes if one.group == group]
