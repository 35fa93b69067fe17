"""A plan may lower what its repairs may spend, and never raise it."""

from __future__ import annotations

from dataclasses import fields

import pytest
from test_repairs import PLAN, read

from holdfast.errors import PlanRejected
from holdfast.model.repair import RepairLimits

MOST = RepairLimits()


def told(line: str) -> list[str]:
    with pytest.raises(PlanRejected) as rejected:
        read(f"repair:\n  most: {line}")
    return str(rejected.value).splitlines()


@pytest.mark.parametrize("key", [one.name for one in fields(RepairLimits)])
class TestEachLimit:
    def test_may_be_lowered_to_nothing(self, key: str) -> None:
        lowered = read(f"repair: {{most: {{{key}: 0}}}}").repair.most
        assert getattr(lowered, key) == 0
        assert read(f"repair: {{most: {{{key}: {getattr(MOST, key):g}}}}}").repair.most == MOST

    def test_is_not_raised_and_the_place_is_told(self, key: str) -> None:
        most = f"{getattr(MOST, key):g}"
        more = f"{getattr(MOST, key) + 1:g}"
        line = PLAN.count("\n") + 3
        column = len("  most: {") + len(key) + len(": ") + 1
        assert told(f"{{{key}: {more}}}") == [
            f"plan.yaml:{line}:{column}: {key} must be between 0 and {most}, not {more}"
        ]


def test_all_that_are_raised_are_told_at_once_each_with_its_place() -> None:
    found = told("{patches: 9, requests: 7, tokens: 40001, wait: 3601, cases: 17}")
    line = PLAN.count("\n") + 3
    columns = sorted(int(one.split(":")[2]) for one in found)
    assert {one.split(":")[1] for one in found} == {str(line)}
    assert len(set(columns)) == 5
    assert any("unknown key 'cases'" in one for one in found)
