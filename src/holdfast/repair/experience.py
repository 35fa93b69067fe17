"""Experience: what an installation has learned of failures, a value that is rebuilt at will.

Everything in it is a sum, or the newest of something. So it does not matter in which order facts
were learned, nor by which process: `merged` of two parts is what learning all of it would have
come to. Only what is dropped beyond the bounds depends on when it was dropped.

What people said of lessons is not in the journals of runs, and is carried over when the rest is
rebuilt (`said_of`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from typing import Any, Final, TypeVar, assert_never

from immutables import Map

from holdfast.model.record import record, replacing
from holdfast.model.recovery import Moments
from holdfast.model.repair import Lesson, LessonState, Level
from holdfast.repair import alerts, curves, durations, lessons
from holdfast.repair.alerts import Alert
from holdfast.repair.curves import NO_CURVE, Curve
from holdfast.repair.durations import NO_DURATIONS, Durations
from holdfast.repair.facts import Fact, Left, Mended, ThoughtFailed, Took, Tried
from holdfast.repair.lessons import Learned

VERSION: Final = 1

MOST_CURVES: Final = 2_000
MOST_TOOLS: Final = 500
MOST_LESSONS: Final = 1_000

T = TypeVar("T")


@record
class Experience:
    """Curves by tool and fingerprint, those of all failures of a cause together, how long a tool's
    calls take, and lessons by their ids."""

    curves: Map[tuple[str, str], Curve] = Map()
    pooled: Map[str, Curve] = Map()
    durations: Map[str, Durations] = Map()
    lessons: Map[str, Learned] = Map()


NOTHING_LEARNED: Final = Experience()

_with = replacing(Experience)


def learn(experience: Experience, facts: Iterable[Fact]) -> tuple[Experience, tuple[Alert, ...]]:
    """With these facts, and what an operator is to be told of them."""
    raised: list[Alert] = []
    for fact in facts:
        match fact:
            case Tried():
                experience = _with_try(experience, fact)
            case Took():
                raised += _slowness(experience, fact)
                experience = _with_duration(experience, fact)
            case Mended():
                before, experience = experience, _with_repair(experience, fact)
                raised += _retirement(before, fact)
            case ThoughtFailed():
                of = (fact.case_id, fact.reason, fact.run_id, fact.at)
                raised.append(alerts.thinking_failed(*of))
            case Left():
                pass
            case _:
                assert_never(fact)
    return experience, tuple(raised)


def _with_try(experience: Experience, fact: Tried) -> Experience:
    key, of = (fact.tool, fact.fingerprint), (fact.passed, fact.since, fact.at)
    known = experience.curves.get(key) or Curve(cause=fact.cause)
    pooled = experience.pooled.get(fact.cause) or Curve(cause=fact.cause)
    known = curves.tried(known, *of, won=fact.won)
    return _with(
        experience,
        curves=_newest(experience.curves.set(key, known), MOST_CURVES),
        pooled=experience.pooled.set(fact.cause, curves.tried(pooled, *of, won=fact.won)),
    )


def _slowness(experience: Experience, fact: Took) -> list[Alert]:
    known = experience.durations.get(fact.tool, NO_DURATIONS)
    usual = durations.usual(known, fact.at)
    if usual is None or not durations.far_beyond(known, fact.seconds, fact.at):
        return []
    return [alerts.slow_call(fact.tool, fact.seconds, usual, fact.run_id, fact.at)]


def _with_duration(experience: Experience, fact: Took) -> Experience:
    known = experience.durations.get(fact.tool, NO_DURATIONS)
    known = durations.took(known, fact.seconds, fact.at)
    return _with(
        experience, durations=_newest(experience.durations.set(fact.tool, known), MOST_TOOLS)
    )


def _with_repair(experience: Experience, fact: Mended) -> Experience:
    name, new = _learned_of(fact)
    known = experience.lessons.get(name)
    new = new if known is None else lessons.together(known, new)
    return _with(experience, lessons=_lasting(experience.lessons.set(name, new)))


def _learned_of(fact: Mended) -> tuple[str, Learned]:
    name = lessons.id_of(fact.key, fact.operations)
    blank = Learned(fact.key, fact.operations, fact.level)
    return name, lessons.told(blank, fact.run_id, fact.at, won=fact.won)


def _retirement(before: Experience, fact: Mended) -> list[Alert]:
    """Of a lesson that was good until now."""
    name, _ = _learned_of(fact)
    known = before.lessons.get(name)
    if fact.won or known is None:
        return []
    if known.state not in (LessonState.TRIAL, LessonState.PROVEN):
        return []
    plan_id = lessons.place_of(fact.key).plan_id
    return [alerts.lesson_retired(name, plan_id, fact.run_id, fact.at)]


def moments(
    experience: Experience, tool: str, fingerprint: str, now: float, run_id: str = ""
) -> Moments:
    """When calls that fail so are worth another attempt."""
    known = experience.curves.get((tool, fingerprint), NO_CURVE)
    pooled = experience.pooled.get(known.cause, NO_CURVE)
    return curves.moments_of(known, pooled, now, run_id)


def lessons_for(experience: Experience, key: str) -> tuple[Lesson, ...]:
    """Those that fit and are not retired, the best first."""
    return lessons.offered([one for one in experience.lessons.values() if one.key == key])


def say(experience: Experience, lesson_id: str, state: LessonState, at: float) -> Experience:
    """With what a person makes of a lesson that there is."""
    said = lessons.said(experience.lessons[lesson_id], state, at)
    return _with(experience, lessons=experience.lessons.set(lesson_id, said))


def said_of(experience: Experience) -> Experience:
    """Only what people said of lessons, as a part to be merged with others."""
    kept = {
        name: Learned(one.key, one.operations, one.level, said=one.said)
        for name, one in experience.lessons.items()
        if one.said[0]
    }
    return Experience(lessons=Map(kept))


def merged(one: Experience, other: Experience) -> Experience:
    """What both have learned, each something else."""
    joined = _joined(one.curves, other.curves, curves.together)
    timed = _joined(one.durations, other.durations, durations.together)
    told = _joined(one.lessons, other.lessons, lessons.together)
    return Experience(
        _newest(joined, MOST_CURVES),
        _joined(one.pooled, other.pooled, curves.together),
        _newest(timed, MOST_TOOLS),
        _lasting(told),
    )


def _joined(one: Map[Any, T], other: Map[Any, T], together: Callable[[T, T], T]) -> Map[Any, T]:
    changes = one.mutate()
    for key, value in other.items():
        changes[key] = together(one[key], value) if key in one else value
    return changes.finish()


def _newest(known: Map[Any, Any], most: int) -> Map[Any, Any]:
    """Without those that were added to longest ago, beyond the bound."""
    return _bounded(known, most, lambda one: (one[1].last, one[0]))


def _lasting(known: Map[str, Learned]) -> Map[str, Learned]:
    """A person's word outlasts what was only learned."""
    return _bounded(known, MOST_LESSONS, _lasts)


def _bounded(known: Map[Any, Any], most: int, rank: Callable[[Any], Any]) -> Map[Any, Any]:
    if len(known) <= most:
        return known
    left = known.mutate()
    for key, _ in nsmallest(len(known) - most, known.items(), rank):
        del left[key]
    return left.finish()


def _lasts(named: tuple[str, Learned]) -> tuple[bool, float, str]:
    name, learned = named
    return learned.state is LessonState.PINNED, learned.last, name


def dump(experience: Experience) -> str:
    """As JSON that `load` reads."""
    body = {
        "version": VERSION,
        "curves": [
            [*key, one.cause, one.last, _spans(one.counts)]
            for key, one in sorted(experience.curves.items())
        ],
        "pooled": [
            [key, one.last, _spans(one.counts)] for key, one in sorted(experience.pooled.items())
        ],
        "durations": [
            [key, one.last, _spans(one.counts)] for key, one in sorted(experience.durations.items())
        ],
        "lessons": [_dumped(one) for _, one in sorted(experience.lessons.items())],
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def load(text: str) -> Experience:
    """ValueError for what this version cannot read: it is rebuilt then."""
    try:
        body = json.loads(text)
        if body["version"] != VERSION:
            raise ValueError(f"version {body['version']}")
        return Experience(
            Map(
                {
                    (tool, name): Curve(_counts(n), at, cause)
                    for tool, name, cause, at, n in body["curves"]
                }
            ),
            Map({cause: Curve(_counts(n), at, cause) for cause, at, n in body["pooled"]}),
            Map({tool: Durations(_counts(n), at) for tool, at, n in body["durations"]}),
            Map(map(_loaded, body["lessons"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this is no experience of version {VERSION}: {error!r}") from error


def _spans(counts: Mapping[int, tuple[int, ...]]) -> list[list[int]]:
    return [[span, *row] for span, row in counts.items()]


def _counts(spans: Iterable[list[int]]) -> Mapping[int, tuple[int, ...]]:
    return {span: tuple(row) for span, *row in spans}


def _dumped(one: Learned) -> dict[str, Any]:
    return {
        "key": one.key,
        "operations": list(one.operations),
        "level": one.level.value,
        "told": [one.wins, one.losses],
        "runs": one.runs,
        "said": one.said,
    }


def _loaded(raw: Mapping[str, Any]) -> tuple[str, Learned]:
    key, operations = raw["key"], tuple(raw["operations"])
    wins, losses = raw["told"]
    at, word = raw["said"]
    runs = tuple((moment, run_id) for moment, run_id in raw["runs"])
    learned = Learned(key, operations, Level(raw["level"]), wins, losses, runs, (at, word))
    return lessons.id_of(key, operations), learned
