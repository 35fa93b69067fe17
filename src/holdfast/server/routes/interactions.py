"""Interactions over HTTP: what people are asked, and their answers.

The first valid answer wins; the same one again is answered the same, another one gets 409 with
who, when and how, a late one 410. An answer may name the digest of what it was shown, and then
counts for that alone.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse

from holdfast.errors import AuthorError, CallerError
from holdfast.model.interaction import InteractionResponse, InteractionStatus
from holdfast.model.rows import QuestionQuery, RunRow
from holdfast.runtime.identity import acting, current
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.problems import in_language, language_of, problem_of
from holdfast.server.questions import Question, Questions, refuse_other_digest, refuse_raw_secrets
from holdfast.server.routing import new_router
from holdfast.server.schemas.interactions import (
    LONGEST_LIST,
    AnswerGiven,
    AnswerOutcome,
    AnswerOutcomes,
    AnswersGiven,
    DraftGiven,
    DraftKept,
    FieldName,
    InteractionShown,
    InteractionsShown,
    QuestionId,
    SecretGiven,
    SecretKept,
)
from holdfast.server.services import Served, Services
from holdfast.views.reader import RunVersion

router = new_router("interactions")

LATEST_MOMENT = 1e11
"""Beyond any deadline, and well within what every database counts to."""

NAME = r"^[A-Za-z0-9][\w.:-]{0,199}$"


@router.get("/interactions", response_model=InteractionsShown, responses=NOT_FOUND)
async def list_interactions(
    served: Served,
    caller: Called,
    status: Annotated[list[InteractionStatus] | None, Query()] = None,
    role: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    run: Annotated[str | None, Query(pattern=NAME, description="And all runs below it.")] = None,
    due_before: Annotated[
        float | None,
        Query(alias="dueBefore", ge=0, le=LATEST_MOMENT, description="Epoch seconds."),
    ] = None,
    after: Annotated[
        str | None, Query(pattern=NAME, description="`next` of the page before.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = 100,
) -> Response:
    """The questions of runs that the caller may read, the oldest first."""
    await caller.require(served, Permission.READ)
    root = None if run is None else await _run(served, caller, run)
    query = QuestionQuery(
        status=None if not status else frozenset(one.value for one in status),
        root_id=None if root is None else root.root_id,
        role=role,
        due_before=due_before,
        after=after,
        limit=limit,
    )
    questions = Questions(served, caller)
    found, following = await questions.listed(query, below=run)
    cards = [await _in_turn(questions, one, caller.language) for one in found]
    rest = json.dumps({"next": following, "serverTime": served.now()})
    body = f'{{"interactions":[{",".join(cards)}],{rest[1:]}'
    return Response(body, media_type="application/json")


async def _in_turn(questions: Questions, question: Question, language: str) -> str:
    """Many cards take long to be put into words and written, and others want a turn. Of each only
    its text stays: all that is read of two hundred would keep the collector busy."""
    await asyncio.sleep(0)
    shown = await questions.shown(replace(question), whole=False, language=language)
    return InteractionShown.model_validate(shown).model_dump_json(by_alias=True)


async def _run(served: Services, caller: Caller, run_id: str) -> RunRow:
    await caller.require(served, Permission.READ, run_id)
    row = await served.reader.row(run_id)
    assert row is not None
    return row


@router.get("/interactions/{request_id}", response_model=InteractionShown)
async def get_interaction(request_id: QuestionId, served: Served, caller: Called) -> dict[str, Any]:
    """One question: how it stands, what the caller has begun to answer, and whether they may."""
    questions = Questions(served, caller)
    return await questions.shown(await questions.find(request_id), language=caller.language)


async def _shown_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The question as it stands now, where an answer took effect and the client did not hear it."""
    caller = await identify(request)
    questions = Questions(served, caller)
    question = await questions.find(request.path_params["request_id"])
    found = await questions.shown(question, language=caller.language)
    return JSONResponse(
        InteractionShown.model_validate(found).model_dump(mode="json", by_alias=True)
    )


@router.post("/interactions/{request_id}/answer", response_model=InteractionShown)
@answered_again(_shown_again)
async def answer_interaction(
    request_id: QuestionId, body: AnswerGiven, served: Served, caller: Called
) -> dict[str, Any]:
    """Answer a question; the run goes on at once."""
    response = InteractionResponse(
        request_id,
        selected_option_id=body.selected_option_id,
        data=body.data or {},
        feedback=body.feedback,
    )
    questions = Questions(served, caller)
    question = await questions.find(request_id)
    run = await answer(served, questions, question, response, digest=body.digest)
    answered = run.question(question.row, request=question.request)
    return await questions.shown_as(question.standing(answered), answered, caller.language)


async def answer(
    served: Services,
    questions: Questions,
    question: Question,
    response: InteractionResponse,
    digest: str | None = None,
) -> RunVersion:
    """What every way to answer has in common: may they, was it shown, does it keep its secrets."""
    await questions.refuse_unauthorised(question)
    refuse_other_digest(question, digest)
    chosen = response.selected_option_id
    refuse_raw_secrets(question.request, response.data, response.feedback, chosen)
    by = questions.caller.principal.id
    answering = served.app.sessions.answer_row(question.row, question.request, response, by=by)
    return served.reader.of_state(await answering)


@router.post("/interactions/answers", response_model=AnswerOutcomes)
async def answer_interactions(
    request: Request, body: AnswersGiven, served: Served, caller: Called
) -> AnswerOutcomes:
    """The same answer to exactly the questions named; what became of each is told.

    Each counts by itself: sent again, those that were answered are answered the same.
    """
    given = InteractionResponse("", "", body.selected_option_id, body.data or {}, body.feedback)
    outcomes = []
    acts = current()
    assert acts is not None
    # Several commands cannot share one claim: the first would speak for the others.
    with acting(replace(acts, claim=None)):
        for request_id in dict.fromkeys(body.request_ids):
            one = replace(given, request_id=request_id)
            digest = _digest(body, request_id)
            outcomes.append(await _outcome(served, caller, one, digest, language_of(request)))
    return AnswerOutcomes(
        success=all(one.success for one in outcomes),
        outcomes=outcomes,
        server_time=served.now(),
    )


def _digest(body: AnswersGiven, request_id: str) -> str | None:
    """With digests every question needs one: what is not named fits nothing."""
    return None if body.digests is None else body.digests.get(request_id, "")


async def _outcome(
    served: Services,
    caller: Caller,
    response: InteractionResponse,
    digest: str | None,
    language: str,
) -> AnswerOutcome:
    try:
        questions = Questions(served, caller)
        question = await questions.find(response.request_id)
        await answer(served, questions, question, response, digest)
    except (CallerError, AuthorError) as error:
        problem = in_language(problem_of(error), language)
        return AnswerOutcome(
            request_id=response.request_id,
            success=False,
            status=problem["status"],
            error=problem["error"],
            problem=problem,
        )
    return AnswerOutcome(request_id=response.request_id, success=True, status=200)


async def _draft_again(claimed: Claimed, request: Request, served: Services) -> Response:
    given = DraftGiven.model_validate(await request.json())
    kept = _draft(request.path_params["request_id"], given, served)
    return JSONResponse(kept.model_dump(by_alias=True))


def _draft(request_id: str, given: DraftGiven, served: Services) -> DraftKept:
    return DraftKept(request_id=request_id, draft=given.data, server_time=served.now())


@router.put("/interactions/{request_id}/draft", response_model=DraftKept)
@answered_again(_draft_again)
async def keep_draft(
    request_id: QuestionId, body: DraftGiven, served: Served, caller: Called
) -> DraftKept:
    """Keep what the caller has filled in so far; it is not binding and is gone with the answer."""
    questions = Questions(served, caller)
    question = await questions.find(request_id)
    await questions.refuse_unauthorised(question)
    refuse_raw_secrets(question.request, body.data)
    await served.app.keep_draft(request_id, body.data, by=caller.principal.id)
    return _draft(request_id, body, served)


@router.post("/interactions/{request_id}/secrets/{field}", response_model=SecretKept)
async def keep_secret(
    request_id: QuestionId, field: FieldName, body: SecretGiven, served: Served, caller: Called
) -> SecretKept:
    """Put a secret field's value under lock; the answer then gives its reference."""
    questions = Questions(served, caller)
    await questions.refuse_unauthorised(await questions.find(request_id))
    reference = await served.app.sessions.keep_secret(
        request_id, field, body.value, by=caller.principal.id
    )
    return SecretKept(reference=reference)
