"""What a further step costs, compared with the figures kept here.

A change that makes a step dearer fails here and says where; one that is meant, or makes it cheaper,
brings its new line along. `python -m bench.budget` has the whole table.
"""

from __future__ import annotations

import sys

import pytest
from bench.budget import MEASURES, STAGED, STAGES, Counts, counted

pytestmark = pytest.mark.own_store  # it opens none

STEPS = {
    "chain": {"statements": 1.133, "commits": 1, "events": 2, "bytes": 293, "tasks": 0},
    "load": {"statements": 0.188, "commits": 0.025, "events": 2, "bytes": 293, "tasks": 0},
    "pause": {"statements": 13.333, "commits": 2, "events": 6, "bytes": 1215, "tasks": 2},
    "conversation": {"statements": 26, "commits": 5, "reads": 2, "events": 18, "tasks": 7},
    "task": {"statements": 10.2, "commits": 2, "reads": 0, "events": 5, "tasks": 2},
}
"""A further step of a chain, one of 40 runs at once, a pause with its answer and a step, a
conversation of one task from its opening to its end, and a further task of a conversation. Where
there is no whole number of statements, the places of 256 records were written down once."""

CALLS = {
    (3, 11): (36, 12, 18, 1, 5.233, 5, 2, 0),
}
"""Python calls by the minor version of Python, one for each of `STAGES`, in their order."""


@pytest.mark.parametrize("work", STEPS)
def test_a_step_costs_the_statements_commits_reads_events_bytes_and_tasks_that_are_kept(
    work: str,
) -> None:
    found = counted(MEASURES[work])
    assert {kind: found[kind].total() for kind in STEPS[work]} == STEPS[work]


@pytest.fixture(scope="module")
def step() -> Counts:
    return counted(MEASURES["chain"])


def test_a_step_makes_the_python_calls_that_are_kept(step: Counts) -> None:
    python, found = sys.version_info[:2], tuple(step["calls"][stage] for stage in STAGES)
    line = f"keep `{python}: {found},` in CALLS"
    if python in CALLS:
        assert found == CALLS[python], f"{_grown(found, CALLS[python])}; if it is meant, {line}"
    else:
        most = max(map(sum, CALLS.values()))
        assert sum(found) <= most, f"{sum(found)} calls, {most} in known versions; {line}"


def _grown(found: tuple[float, ...], kept: tuple[float, ...]) -> str:
    changes = zip(STAGES, found, kept, strict=True)
    named = ", ".join(f"{stage} {new - old:+}" for stage, new, old in changes if new != old)
    return f"{sum(found)} calls instead of {sum(kept)} ({named})"


def test_counting_again_gives_the_same(step: Counts) -> None:
    again = counted(MEASURES["chain"])
    assert [again[kind] for kind in STAGED] == [step[kind] for kind in STAGED]
