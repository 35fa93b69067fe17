"""The planners on trial.

today      the planner as it was before repairs: it retries, and then waits for a person
rules      rules and lessons alone; no model is asked
scripted   a good model, scripted
weak       a small model: it garbles, truncates, misspells ids, talks prose and invents tools
hostile    a model that proposes the worst it can
real       the model that HOLDFAST_MODEL names
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.testing.repair_models import diagnosing_model, hostile_model, weak_model
from holdfast.work.models import ModelClient

TODAY: Final = "today"


@dataclass(frozen=True, slots=True)
class Known:
    """What a good model would answer in one trial: the patch that it would write, or the sketch."""

    writes: Sequence[dict[str, Any]] = ()
    sketch: dict[str, Any] | None = None

    @property
    def sketches(self) -> dict[str, dict[str, Any]]:
        """Whatever words stand in the request."""
        return {} if self.sketch is None else {"": self.sketch}


@dataclass(frozen=True, slots=True)
class Planner:
    """`models` makes what is asked in one trial; `repairs` is false of the one that never does."""

    name: str
    models: Callable[[Known, int], ModelClient]
    repairs: bool = True


def _nobody(known: Known, seed: int) -> ModelClient:
    return ModelClient()


def _good(known: Known, seed: int) -> ModelClient:
    patches = {"": known.writes} if known.writes else {}
    return ModelClient(default_model=diagnosing_model(patches=patches, sketches=known.sketches))


def _weak(known: Known, seed: int) -> ModelClient:
    return ModelClient(default_model=weak_model(seed, sketches=known.sketches))


def _hostile(known: Known, seed: int) -> ModelClient:
    return ModelClient(default_model=hostile_model(seed))


def _real(known: Known, seed: int) -> ModelClient:
    return ModelClient.from_environment()


PLANNERS: Final[Mapping[str, Planner]] = {
    one.name: one
    for one in (
        Planner(TODAY, _nobody, repairs=False),
        Planner("rules", _nobody),
        Planner("scripted", _good),
        Planner("weak", _weak),
        Planner("hostile", _hostile),
        Planner("real", _real),
    )
}
