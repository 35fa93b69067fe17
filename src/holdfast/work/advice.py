"""Asking an author's hook for advice, which may be slow, broken, or not what was asked for.

Whatever the hook does, the run that waits for it gets an answer: a hook that takes too long, or
returns what is no advice, leaves the decision to the usual policy; one that raises leaves it to
a person. `why` says so to people, the log to the author.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from holdfast.errors import AuthorError
from holdfast.i18n.message import msg
from holdfast.model.retry import Advice, GiveUp, Retry
from holdfast.source.numbers import LONGEST_WAIT
from holdfast.work.failed_attempts import sound
from holdfast.work.hooks import over, raised

log = logging.getLogger("holdfast")

MOST_RETRIES: Final = 1_000_000
LONGEST_REASON: Final = 500

S = TypeVar("S")


async def hook_advice(
    hook: Callable[[S], Any],
    usual: Callable[[S], Awaitable[object]],
    situation: S,
    limit: float,
) -> Advice:
    """What the hook advises within so many seconds, or what stands for it."""
    asking = await over(hook, situation, limit=limit)
    if asking is None:
        told = msg(
            "decide_retry_strategy took longer than {n:g} s: the usual policy decided", n=limit
        )
        return await _instead(told, usual, situation)
    if (error := raised(asking)) is not None:
        log.error("decide_retry_strategy failed; no further retry", exc_info=error)
        return GiveUp(msg("decide_retry_strategy raised {error}", error=type(error).__name__))
    try:
        return read_advice(asking.result())
    except AuthorError as wrong:
        told = msg("decide_retry_strategy {problem}: the usual policy decided", problem=str(wrong))
        return await _instead(told, usual, situation)


async def _instead(told: str, usual: Callable[[S], Awaitable[object]], situation: S) -> Advice:
    log.error("%s", told)
    advice = read_advice(await usual(situation))
    return Retry(advice.most, why=told) if isinstance(advice, Retry) else GiveUp(told)


def read_advice(returned: object) -> Advice:
    """What a hook returned, as advice; an AuthorError says what is wrong with it."""
    match returned:
        case GiveUp(why=why):
            return GiveUp(_words(why))
        case Retry(most=most, delay=delay, why=why):
            return Retry(_count(most), _seconds(delay), _words(why))
        case _:
            return Retry(_count(returned))


def _count(most: object) -> int:
    try:
        if isinstance(most, bool):
            raise TypeError
        return min(max(operator.index(most), 0), MOST_RETRIES)  # type: ignore[arg-type]
    except TypeError:
        told = msg(
            "must return a number of retries, Retry(…) or GiveUp(…), not {kind}",
            kind=type(most).__name__,
        )
        raise AuthorError(told) from None


def _seconds(delay: object) -> float | None:
    if delay is None:
        return None
    number = isinstance(delay, int | float) and not isinstance(delay, bool)
    if not number or not 0 <= delay <= LONGEST_WAIT:  # type: ignore[operator]
        raise AuthorError(msg("must return a delay in seconds, from 0 to a year"))
    return float(delay)  # type: ignore[arg-type]


def _words(why: object) -> str:
    return sound(str(why))[:LONGEST_REASON]
