"""Twelve mistakes in one `repair` block: each is told, at its own line and column."""

from __future__ import annotations

import pytest
from test_repairs import PLAN

from holdfast.errors import PlanRejected
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan

BLOCK = """\
repair:
  mode: auto
  auto: [rename, everything]
  write: perhaps
  tools: [query_profil, [query_profile]]
  role: [hr, lead]
  colour: red
  most:
    patches: 99
    requests: -1
    tokens: many
    wait: 1000000
    cases: 3
    patches: 2
"""

TOLD = [
    (3, 18, "auto may name rename, look, lesson"),
    (4, 10, "write must be true or false"),
    (5, 11, "did you mean 'query_profile'?"),
    (5, 25, "tools[1] must be text"),
    (6, 9, "role must be text"),
    (7, 3, "unknown key 'colour'"),
    (9, 14, "patches must be between 0 and 8"),
    (10, 15, "requests must be between 0 and 6"),
    (11, 13, "tokens must be a whole number"),
    (12, 11, "wait must be between 0 and 3600"),
    (13, 5, "unknown key 'cases'"),
    (14, 5, "'patches'"),
]


def test_twelve_mistakes_are_told_at_once_each_at_its_place() -> None:
    with pytest.raises(PlanRejected) as rejected:
        load_plan(f"{BLOCK}{PLAN}", "plan.yaml", Catalog(tools={"query_profile": {}}))
    found = rejected.value.problems
    assert [(one.line, one.column) for one in found] == [(line, at) for line, at, _ in TOLD]
    for one, (*_, told) in zip(found, TOLD, strict=True):
        assert told in one.message
