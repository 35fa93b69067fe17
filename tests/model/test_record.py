"""Records: cheap to make, compared by value, and frozen at run time on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from holdfast.model import record as module
from holdfast.model.run import Parent


def recorder() -> Callable[[type], type]:
    """The decorator as a process that starts now would have it."""
    spec = spec_from_file_location(module.__name__, str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    found: Callable[[type], type] = fresh.record
    return found


def point() -> Any:
    class Point:
        x: int
        y: int = 0

    return recorder()(Point)


@pytest.mark.parametrize("frozen", ["0", "1"])
def test_records_are_values(monkeypatch: pytest.MonkeyPatch, frozen: str) -> None:
    monkeypatch.setenv("HOLDFAST_FROZEN", frozen)
    made = point()
    assert made(1) == made(1, 0)
    assert len({made(1), made(1)}) == 1
    assert not hasattr(made(1), "__dict__")


def test_on_request_they_are_frozen_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_FROZEN", "1")
    with pytest.raises(FrozenInstanceError):
        point()(1).x = 2


def test_a_record_shows_its_fields() -> None:
    assert repr(Parent("inst_000001", "L001", 2)) == (
        "Parent(run_id='inst_000001', step_id='L001', firing=2)"
    )
