"""What was learned of failures as the API shows it, in snake_case."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field

from holdfast.i18n.catalogue import worded
from holdfast.model.repair import LessonState, Level
from holdfast.model.retry import Cause
from holdfast.server.schemas.runs import Shown
from holdfast.views.experience import CurveView, LessonView, Promotion
from holdfast.views.stories.repairs import CAUSES

LESSON: Final = "^[0-9a-f]{16}$"

LessonId = Annotated[
    str, Path(pattern=LESSON, description="A lesson.", examples=["db40ebfee50731a3"])
]


class ChanceShown(Shown):
    within: float = Field(description="Seconds since the first failure.")
    chance: float = Field(description="How likely the call works again by then, from 0 to 1.")


class CurveShown(Shown):
    """How calls of a tool that fail alike recover."""

    tool: str = Field(examples=["grant_access"])
    fingerprint: str = Field(description="Failures with the same are alike.")
    cause: str = Field(description="What is wrong then.", examples=["outage"])
    told: str = Field(description="The cause in words.", examples=["a service is down"])
    cases: int = Field(description="How many such failures were seen; from five on they count.")
    chances: list[ChanceShown]
    last_seen: float

    @classmethod
    def of(cls, one: CurveView, language: str) -> CurveShown:
        return cls(
            tool=one.tool,
            fingerprint=one.fingerprint,
            cause=one.cause,
            told=worded(CAUSES[Cause(one.cause or Cause.UNKNOWN)], language),
            cases=one.cases,
            chances=[ChanceShown.model_validate(chance) for chance in one.chances],
            last_seen=one.last_seen,
        )


class DurationShown(Shown):
    """How long calls of a tool take, of runs in which something has failed."""

    tool: str
    calls: int
    usual: float | None = Field(
        description="Seconds within which nineteen of twenty are over; null below twenty calls."
    )
    last_seen: float


class ExperienceShown(Shown):
    curves: list[CurveShown]
    durations: list[DurationShown]
    server_time: float


class LessonShown(Shown):
    """A repair that has helped, kept for the same failure in other runs of the plan.

    `trial`: fewer than three wins, none lost; `proven`; `retired`: it did not help once, or is for
    another version of the tool; `pinned`: a person keeps it.
    """

    lesson_id: str = Field(examples=["db40ebfee50731a3"])
    plan_id: str
    tool: str = Field(description="What failed; empty where that was no tool.")
    version: str = Field(description="The tool's, for which it helped.")
    fingerprint: str = Field(description="The failure that it is for.")
    state: LessonState
    outdated: bool = Field(description="Whether the tool has another version by now.")
    wins: int
    losses: int
    level: Level = Field(description="Who must consent to it: `act` takes an approver.")
    words: list[str] = Field(description="What it changes.")
    listener_ids: list[str] = Field(description="What it is about in today's plan.")
    runs: list[str] = Field(description="The newest that told of it.")

    @classmethod
    def of(cls, one: LessonView, language: str) -> LessonShown:
        shown = cls.model_validate(one)
        shown.words = [worded(word, language) for word in one.words]
        return shown


class LessonsShown(Shown):
    """By plan; of each the best first."""

    lessons: list[LessonShown]
    server_time: float


class LessonAnswer(Shown):
    lesson: LessonShown


class PromotionShown(Shown):
    """The plan with the lesson's repair in it. Nothing was registered."""

    lesson_id: str
    plan_id: str
    base: str = Field(description="The version that was changed, by its digest.")
    digest: str = Field(description="The version that comes of it.")
    listener_ids: list[str] = Field(description="The listeners that were changed.")
    operations: list[dict[str, Any]]
    words: list[str] = Field(description="What each operation changes.")
    definition: dict[str, Any]
    source: str = Field(description="The plan's text, as `POST /plans` takes it.")

    @classmethod
    def of(cls, one: Promotion, language: str) -> PromotionShown:
        shown = cls.model_validate(one)
        shown.words = [worded(word, language) for word in one.words]
        return shown
