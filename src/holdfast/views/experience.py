"""What an installation has learned of failures, as it is shown: how calls recover, how long they
take, and what has repaired them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.record import record
from holdfast.model.recovery import EDGES
from holdfast.model.repair import LessonState, Level
from holdfast.model.values import JsonObject
from holdfast.repair.counts import total
from holdfast.repair.curves import NO_CURVE, Curve, hazards
from holdfast.repair.durations import OCTAVES, Durations, usual
from holdfast.repair.experience import Experience


@record
class Chance:
    """How likely a call that has failed has recovered `within` so many seconds."""

    within: float
    chance: float


@record
class CurveView:
    """How calls of a tool that fail alike recover. `cause` is what is wrong then, `cases` how many
    failures are known."""

    tool: str
    fingerprint: str
    cause: str
    cases: int
    chances: tuple[Chance, ...]
    last_seen: float


@record
class DurationView:
    """`usual` is within how many seconds nineteen of twenty calls are over, None while too few are
    known. Only runs in trouble are counted."""

    tool: str
    calls: int
    usual: float | None
    last_seen: float


@record
class ExperienceView:
    curves: tuple[CurveView, ...] = ()
    durations: tuple[DurationView, ...] = ()


@record
class LessonView:
    """A repair that has helped. `listener_ids` are what it is about in the plan as it is today;
    `outdated`: the tool has another version by now."""

    lesson_id: str
    plan_id: str
    tool: str
    version: str
    fingerprint: str
    state: LessonState
    wins: int
    losses: int
    level: Level
    words: tuple[str, ...] = ()
    listener_ids: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    outdated: bool = False


@record
class Promotion:
    """A plan with a lesson's repair in it, for its author. Nothing is registered: `source` is the
    text of the plan that could be, `base` names the version that was changed and `digest` the one
    that comes of it."""

    lesson_id: str
    plan_id: str
    base: str
    digest: str
    listener_ids: tuple[str, ...]
    operations: tuple[JsonObject, ...]
    words: tuple[str, ...]
    definition: Mapping[str, Any]
    source: str


def experience_view(known: Experience, now: float) -> ExperienceView:
    curves = (_curve(known, *key, one, now) for key, one in sorted(known.curves.items()))
    durations = (_duration(tool, one, now) for tool, one in sorted(known.durations.items()))
    return ExperienceView(tuple(curves), tuple(durations))


def _curve(known: Experience, tool: str, fingerprint: str, curve: Curve, now: float) -> CurveView:
    pooled = known.pooled.get(curve.cause, NO_CURVE)
    chances, failing = [], 1.0
    for edge, hazard in zip(EDGES, hazards(curve, pooled, now), strict=True):
        failing *= 1 - hazard
        chances.append(Chance(edge, 1 - failing))
    return CurveView(tool, fingerprint, curve.cause, curve.cases, tuple(chances), curve.last)


def _duration(tool: str, one: Durations, now: float) -> DurationView:
    return DurationView(tool, sum(total(one.counts, OCTAVES)), usual(one, now), one.last)
