"""Records: cheap to make, compared by value, and frozen at run time on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from holdfast.core.run.state import StepState
from holdfast.model import record as module
from holdfast.model.record import adapter
from holdfast.model.run import Parent


def started_now() -> Any:
    """The module as a process that starts now would have it."""
    spec = spec_from_file_location(module.__name__, str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    return fresh


def recorder() -> Callable[[type], type]:
    found: Callable[[type], type] = started_now().record
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


@pytest.mark.parametrize("frozen", ["0", "1"])
def test_a_constructor_makes_what_calling_the_class_makes(
    monkeypatch: pytest.MonkeyPatch, frozen: str
) -> None:
    monkeypatch.setenv("HOLDFAST_FROZEN", frozen)

    class Move:
        task: str
        context: dict[str, int] = field(default_factory=dict)
        drop: tuple[str, ...] = ()

    fresh = started_now()
    cls = fresh.record(Move)
    make = fresh.constructor(cls)
    assert make("001") == cls("001")
    assert make("001").context is not make("001").context
    assert make("001", {"a": 1}, ("b",)) == cls("001", {"a": 1}, ("b",))
    assert make("001", drop=("b",)) == cls("001", {}, ("b",))
    with pytest.raises(TypeError):
        make()


def test_the_classes_of_states_keep_no_defaults_although_pydantic_gives_them_some() -> None:
    assert adapter(StepState).validate_python({"firing": 2}).firing == 2
    assert not {one.name for one in fields(StepState)} & vars(StepState).keys()
