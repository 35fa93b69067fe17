"""Diagnosing: one request to a model about a case, and what comes of it.

A request never fails the run that waits for it. Whatever the model or its provider does, there is a
`Thought`: a diagnosis and perhaps a proposal, or why there is none, and what it cost as far as that
is known. Only a reply that could not be used is worth another request, whose complaint says what
was wrong; a model that cannot be reached has been tried often enough by its client.

Whether there is another request is for the run to decide, which knows its budget.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, assert_never

from holdfast.errors import ToolError
from holdfast.i18n.message import joined, msg
from holdfast.model.message import ModelReply, Usage, UserSaid
from holdfast.model.record import record
from holdfast.model.repair import LONGEST_REQUEST as LONGEST_REQUEST
from holdfast.model.repair import Diagnosis, Proposal, Thought
from holdfast.repair.contract import (
    NONE_FITS,
    PERSON,
    WAIT,
    WRITES,
    Asked,
    Chosen,
    Written,
    read_reply,
    writes,
)
from holdfast.repair.prompt import Prompt, prompt_of
from holdfast.repair.replies import Unusable, complaint_of
from holdfast.work.thinker import Thinker
from holdfast.work.threads import in_own_thread

log = logging.getLogger("holdfast")

_NO_MODEL: Final = msg("no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o)")
_WITHOUT_PROPOSAL: Final = {
    WAIT: msg("the model would wait and change nothing"),
    PERSON: msg("the model leaves it to a person"),
    NONE_FITS: msg("the model finds that none of the candidates fits"),
}


@record
class Answer:
    """A model's reply, or the `reason` why there is none."""

    reply: ModelReply | None = None
    usage: Usage = Usage()
    reason: str = ""


async def think(
    models: Thinker, question: Asked, complaint: str, *, limit: float = LONGEST_REQUEST
) -> Thought:
    """What one request of at most `limit` seconds comes to; `complaint` is the last Thought's."""
    usage = Usage()
    try:
        answer = await answered(models, prompt_of(question, complaint), limit)
        usage = answer.usage
        if answer.reply is None:
            return Thought(reason=answer.reason, usage=usage)
        return replace(await _thought(answer.reply, question, complaint), usage=usage)
    except Exception as error:
        log.exception("case %s of run %s: diagnosing failed", question.case_id, question.run_id)
        told = msg("diagnosing failed: {error}; the log says where", error=type(error).__name__)
        return Thought(reason=told, usage=usage)


async def answered(models: Thinker, prompt: Prompt, limit: float = LONGEST_REQUEST) -> Answer:
    """The reply to one request of at most `limit` seconds, whatever becomes of it."""
    if models.default_model is None:
        return Answer(reason=_NO_MODEL)
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit) as waiting:
            reply = await models.request(
                models.default_model,
                system=prompt.system,
                messages=[UserSaid(prompt.message)],
                tools=prompt.tools,
            )
    except Exception as error:
        late = waiting.expired()
        reason = msg("the model took longer than {n:g} s", n=limit) if late else _reason(error)
        return Answer(usage=Usage(seconds=time.monotonic() - began), reason=reason)
    return Answer(reply, reply.usage)


def _reason(error: Exception) -> str:
    """A failure of the model's in its own words; any other is a mistake, and in the log."""
    if isinstance(error, ToolError):
        return str(error)
    log.error("asking a model failed", exc_info=error)
    return msg("the request failed: {error}; the log says where", error=type(error).__name__)


async def _thought(reply: ModelReply, question: Asked, complaint: str) -> Thought:
    writing = writes(question, complaint)
    read = read_reply(reply, question, complaint)
    match read:
        case Unusable(findings=findings):
            return _again(findings, writing)
        case Chosen(diagnosis=diagnosis, choice=choice):
            return _chosen(diagnosis, choice, question, writing)
        case Written(diagnosis=diagnosis, operations=operations):
            judged = await in_own_thread(question.judge, operations, diagnosis.summary)
            return _written(diagnosis, judged)
        case _:
            assert_never(read)


def _chosen(diagnosis: Diagnosis, choice: str, question: Asked, writing: bool) -> Thought:
    if (proposal := question.offered.get(choice)) is not None:
        return Thought(diagnosis, proposal)
    goes_on = choice == NONE_FITS and question.write and not writing
    return Thought(
        diagnosis,
        reason=_WITHOUT_PROPOSAL[choice],
        again=goes_on,
        complaint=WRITES if goes_on else "",
    )


def _written(diagnosis: Diagnosis, judged: Proposal | tuple[str, ...]) -> Thought:
    if isinstance(judged, Proposal):
        return Thought(diagnosis, judged)
    return replace(_again(judged, writing=True), diagnosis=diagnosis)


def _again(findings: Iterable[str], writing: bool) -> Thought:
    told = complaint_of(findings)
    return Thought(
        reason=msg("the model's reply cannot be used: {problem}", problem=told),
        again=True,
        complaint=joined("; ", (WRITES, told)) if writing else told,
    )
