"""What was learned of failures, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.cli.terminal.screen import print_table, say
from holdfast.i18n.catalogue import worded
from holdfast.language.instants import iso
from holdfast.model.repair import LessonState
from holdfast.views.experience import CurveView, DurationView, ExperienceView, LessonView
from holdfast.views.stories.text import clock, visible
from holdfast.views.wire import to_json

_NAME: Final = 60
_WORDS: Final = 200
_FINGERPRINT: Final = slice(4, 12)
"""Enough to tell the failures of one tool apart, without the version before it."""


def say_experience(found: ExperienceView) -> None:
    if not (found.curves or found.durations):
        say("nothing was learned of failures yet")
    if found.curves:
        edges = [_spelled(one.within) for one in found.curves[0].chances]
        print_table(
            ("tool", "failure", "cases", *edges, "last seen"), [_curve(one) for one in found.curves]
        )
    if found.durations:
        say("", "how long calls take, of runs in which something failed:")
        titles = ("tool", "calls", "nineteen of twenty within", "last seen")
        print_table(titles, [_duration(one) for one in found.durations])


def _curve(one: CurveView) -> tuple[str, ...]:
    chances = (f"{chance.chance:.0%}" for chance in one.chances)
    failure = f"{one.cause} {one.fingerprint[_FINGERPRINT]}"
    seen = clock(one.last_seen, date=True)
    return visible(one.tool, _NAME), failure, str(one.cases), *chances, seen


def _duration(one: DurationView) -> tuple[str, ...]:
    usual = "" if one.usual is None else _spelled(one.usual)
    return visible(one.tool, _NAME), str(one.calls), usual, clock(one.last_seen, date=True)


def _spelled(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:g} min"


def experience_json(found: ExperienceView) -> dict[str, Any]:
    return {name: [_dated(one) for one in rows] for name, rows in to_json(found).items()}


def _dated(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "last_seen": iso(told["last_seen"])}


def say_lessons(found: Sequence[LessonView], language: str) -> None:
    if not found:
        say("no lessons yet: a repair that has helped becomes one")
        return
    titles = ("lesson", "plan", "listener", "tool", "state", "won", "lost", "level", "repair")
    print_table(titles, [_lesson(one, language) for one in found])


def _lesson(one: LessonView, language: str) -> tuple[str, ...]:
    words = (visible(worded(word, language), _WORDS) for word in one.words)
    return (
        one.lesson_id,
        visible(one.plan_id, _NAME),
        visible(", ".join(one.listener_ids), _NAME),
        visible(one.tool, _NAME),
        _state(one),
        str(one.wins),
        str(one.losses),
        one.level.value,
        "; ".join(words),
    )


def _state(one: LessonView) -> str:
    outdated = one.outdated and one.state is LessonState.RETIRED
    return "retired: its tool has changed" if outdated else one.state.value


def lesson_json(one: LessonView) -> dict[str, Any]:
    return to_json(one)
