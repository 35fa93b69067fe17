"""Ids of runs say which run works for which."""

from __future__ import annotations

import pytest

from holdfast.model.run import is_below


@pytest.mark.parametrize("run_id", ["inst_000001", "inst_000001.L1.1", "inst_000001.L1.1.c2"])
def test_a_run_and_those_that_work_for_it_are_below_it(run_id: str) -> None:
    assert is_below(run_id, "inst_000001")


@pytest.mark.parametrize(
    "run_id", ["inst_0000010", "inst_00000", "inst_000002.L1.1", "x.inst_000001"]
)
def test_others_are_not(run_id: str) -> None:
    assert not is_below(run_id, "inst_000001")
