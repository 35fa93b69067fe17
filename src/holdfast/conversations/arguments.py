"""What callers give a conversation, checked once at the border."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from holdfast.errors import CallerError, InvalidAnswer
from holdfast.i18n.message import msg
from holdfast.language.ids import chosen_id
from holdfast.language.strict import strict_text
from holdfast.model.conversation import AfterFailure, OnFailure
from holdfast.work.conversations import TaskExecutor

LONGEST_INPUT = 200_000


def count(max_parallel: object) -> int:
    if isinstance(max_parallel, bool) or not isinstance(max_parallel, int) or max_parallel < 1:
        raise CallerError(f"max_parallel must be a whole number, 1 or more, not {max_parallel!r}")
    return max_parallel


def checked_on_failure(given: object) -> OnFailure:
    if given not in tuple(OnFailure):
        raise CallerError(f"on_failure is one of {', '.join(OnFailure)}, not {given!r:.100}")
    return OnFailure(str(given))


def after_failure(given: object) -> AfterFailure:
    if given not in tuple(AfterFailure):
        raise CallerError(f"failed is one of {', '.join(AfterFailure)}, not {given!r:.100}")
    return AfterFailure(str(given))


def known_types(once: object, executors: Mapping[str, TaskExecutor]) -> frozenset[str]:
    if isinstance(once, str) or not isinstance(once, Collection):
        raise CallerError(f"once is a list of task types, not {once!r:.100}")
    unknown = [one for one in once if one not in tuple(executors)]
    if unknown:
        raise CallerError(f"once names {unknown[0]!r:.100}, for which executors has nothing")
    return frozenset(once)


def new_id(conversation_id: str) -> str:
    return chosen_id(conversation_id, "conversation", "conversation_id")


def goal(user_input: object) -> str:
    if not isinstance(user_input, str):
        said = type(user_input).__name__
        raise InvalidAnswer(
            msg("a goal is text, not {value}", value=said), {"user_input": msg("text is needed")}
        )
    return strict_text(user_input, "user_input", longest=LONGEST_INPUT)
