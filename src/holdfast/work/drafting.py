"""Drafting: one request to a model for a plan, and what comes of it.

As for a case (`diagnosing`), whatever the model or its provider does there is an answer, and what
it cost as far as that is known. Only a reply that could not be used is worth another request.
Whether there is one is for those to decide who keep the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.i18n.message import msg
from holdfast.language.display import clip
from holdfast.model.message import ModelReply, ToolOffer, Usage
from holdfast.model.record import record
from holdfast.repair.drafting import Draft, drafted
from holdfast.repair.replies import Unusable, complaint_of
from holdfast.repair.sketch_prompt import sketch_prompt
from holdfast.repair.surroundings import Surroundings
from holdfast.work.diagnosing import LONGEST_REQUEST, answered
from holdfast.work.thinker import Thinker
from holdfast.work.threads import in_own_thread

MOST_REQUESTS: Final = 3
"""How often a model is asked for one plan."""

_LONGEST_WORDS: Final = 300
_LONGEST_READ: Final = 2_000


@record
class Drafting:
    """A draft, or the `reason` why there is none; `again` says that another request may do better,
    with `complaint`."""

    draft: Draft | None = None
    reason: str = ""
    usage: Usage = Usage()
    again: bool = False
    complaint: str = ""


async def draft(
    models: Thinker,
    request: str,
    offers: Sequence[ToolOffer],
    surroundings: Surroundings,
    complaint: str = "",
    *,
    plan_id: str,
    now: float,
    limit: float = LONGEST_REQUEST,
) -> Drafting:
    """What one request of at most `limit` seconds comes to; `complaint` is the last one's."""
    prompt = sketch_prompt(request, offers, surroundings.tools, complaint)
    answer = await answered(models, prompt, limit)
    reply, usage = answer.reply, answer.usage
    if reply is None:
        return Drafting(reason=answer.reason, usage=usage)
    found = await in_own_thread(drafted, reply, surroundings, plan_id, now=now)
    if isinstance(found, Unusable):
        told = complaint_of(found.findings)
        return Drafting(reason=_why_not(reply, told), usage=usage, again=True, complaint=told)
    return Drafting(found, usage=usage)


def _why_not(reply: ModelReply, problem: str) -> str:
    """A model that calls nothing may have said why no plan leads to the goal."""
    words = " ".join(reply.text[:_LONGEST_READ].split())
    if reply.calls or not words or "{" in words:
        return msg("the model's reply cannot be used: {problem}", problem=problem)
    words = clip(words, _LONGEST_WORDS)
    return msg("The model says: “{words}”", words=words)
