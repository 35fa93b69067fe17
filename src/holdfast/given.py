"""What callers give a conversation, checked once at the border."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from holdfast.core.language.strict import strict_text
from holdfast.errors import CallerError, InvalidAnswer
from holdfast.model.conversation import OnFailure
from holdfast.work.conversations import Executor

LONGEST_INPUT = 1_000_000

_ID = re.compile(r"[A-Za-z][\w-]{0,63}")
_GIVEN_OUT = re.compile(r"(inst|chat|conv)_\d+")


def count(max_parallel: object) -> int:
    if isinstance(max_parallel, bool) or not isinstance(max_parallel, int) or max_parallel < 1:
        raise CallerError(f"max_parallel must be a whole number, 1 or more, not {max_parallel!r}")
    return max_parallel


def checked_on_failure(given: object) -> OnFailure:
    if given not in tuple(OnFailure):
        raise CallerError(f"on_failure is one of {', '.join(OnFailure)}, not {given!r:.100}")
    return OnFailure(str(given))


def known_types(once: object, executors: Mapping[str, Executor]) -> frozenset[str]:
    if isinstance(once, str) or not isinstance(once, Collection):
        raise CallerError(f"once is a list of task types, not {once!r:.100}")
    unknown = [one for one in once if one not in tuple(executors)]
    if unknown:
        raise CallerError(f"once names {unknown[0]!r:.100}, for which executors has nothing")
    return frozenset(once)


def new_id(conversation_id: str) -> str:
    if not _ID.fullmatch(conversation_id) or _GIVEN_OUT.fullmatch(conversation_id):
        raise InvalidAnswer(
            f"{conversation_id!r} is no id for a new conversation: a letter, then letters, digits, "
            "_ or -, at most 64, and not inst_…, chat_… or conv_…, which are given out",
            {"conversation_id": "not usable"},
        )
    return conversation_id


def goal(user_input: object) -> str:
    if not isinstance(user_input, str):
        said = type(user_input).__name__
        raise InvalidAnswer(f"a goal is text, not {said}", {"user_input": "text is needed"})
    return strict_text(user_input, "user_input", longest=LONGEST_INPUT)
