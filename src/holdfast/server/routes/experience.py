"""What was learned of failures over HTTP, and what people make of lessons.

A lesson belongs to its plan: who may not read the plan does not see it, and the plan's authors
judge it.
"""

from __future__ import annotations

from fastapi import Request, Response

from holdfast.errors import NotFound, NotPermitted
from holdfast.i18n.message import msg
from holdfast.model.repair import LessonState
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, plan, sees_all
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.problems import JSON
from holdfast.server.routing import new_router
from holdfast.server.schemas.experience import (
    CurveShown,
    DurationShown,
    ExperienceShown,
    LessonAnswer,
    LessonId,
    LessonShown,
    LessonsShown,
    PromotionShown,
)
from holdfast.server.services import Served, Services
from holdfast.views.experience import LessonView, experience_view
from holdfast.views.lessons import Lessons

router = new_router("experience")


@router.get("/experience")
async def get_experience(served: Served, caller: Called) -> ExperienceShown:
    """How calls that fail recover, by tool and failure, and how long calls take."""
    if not sees_all(caller.principal):
        raise NotPermitted(msg("this was learned of all runs: only who may read all may see it"))
    keeper = await served.app.engine.learning.newest()
    found = experience_view(keeper.experience, served.now())
    return ExperienceShown(
        curves=[CurveShown.of(one, caller.language) for one in found.curves],
        durations=[DurationShown.model_validate(one) for one in found.durations],
        server_time=served.now(),
    )


@router.get("/lessons")
async def list_lessons(served: Served, caller: Called) -> LessonsShown:
    """The lessons of plans that the caller may read."""
    await caller.require(served, Permission.READ)
    found = await (await _lessons(served)).all()
    seen = [one for one in found if caller.sees(plan(one.plan_id))]
    shown = [LessonShown.of(one, caller.language) for one in seen]
    return LessonsShown(lessons=shown, server_time=served.now())


async def _said_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The lesson as it is now."""
    caller = await identify(request)
    found = await _readable(served, caller, request.path_params["lesson_id"])
    shown = LessonAnswer(lesson=LessonShown.of(found, caller.language))
    return Response(shown.model_dump_json(), media_type=JSON)


@router.post("/lessons/{lesson_id}/pin")
@answered_again(_said_again)
async def pin_lesson(lesson_id: LessonId, served: Served, caller: Called) -> LessonAnswer:
    """Keep a lesson: it is offered first, and outlives its losses."""
    return await _say(served, caller, lesson_id, LessonState.PINNED)


@router.post("/lessons/{lesson_id}/retire")
@answered_again(_said_again)
async def retire_lesson(lesson_id: LessonId, served: Served, caller: Called) -> LessonAnswer:
    """Offer a lesson no more."""
    return await _say(served, caller, lesson_id, LessonState.RETIRED)


@router.post("/lessons/{lesson_id}/promote")
async def promote_lesson(lesson_id: LessonId, served: Served, caller: Called) -> PromotionShown:
    """Today's plan with the lesson's repair in it, for its author to register; nothing is changed.

    409 where the plan has changed so that the lesson fits nowhere.
    """
    await _writable(served, caller, lesson_id)
    promoted = await (await _lessons(served)).promoted(lesson_id)
    return PromotionShown.of(promoted, caller.language)


async def _say(
    served: Services, caller: Caller, lesson_id: str, state: LessonState
) -> LessonAnswer:
    await _writable(served, caller, lesson_id)
    said = await (await _lessons(served)).say(lesson_id, state)
    return LessonAnswer(lesson=LessonShown.of(said, caller.language))


async def _lessons(served: Services) -> Lessons:
    return Lessons.of(served.app, await served.app.engine.learning.newest())


async def _readable(served: Services, caller: Caller, lesson_id: str) -> LessonView:
    found = await (await _lessons(served)).one(lesson_id)
    if not caller.sees(plan(found.plan_id)):
        raise NotFound(msg("there is no lesson {id}", id=lesson_id))
    return found


async def _writable(served: Services, caller: Caller, lesson_id: str) -> None:
    found = await _readable(served, caller, lesson_id)
    await caller.require(served, Permission.AUTHOR, subject=plan(found.plan_id))
