"""Soundness: whether people could be asked as an author says.

The rules are those of every question (`core.interactions.requests`): a trial request is made
from the asking, and what is refused about it is placed where the author wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from holdfast.core.interactions.requests import request_from_asking
from holdfast.errors import InvalidAnswer
from holdfast.i18n.message import msg
from holdfast.model.form import Field, Form
from holdfast.model.interaction import Asking, InteractionType
from holdfast.source.locations import Finding, Path

WHAT_IS_MISSING: Final = Form((Field("what is missing"),))
"""Stands for the form that a call's arguments will make: only its being there is known."""

_USUAL: Final = Asking()
_IN_AN_OPTION: Final = re.compile(r"options\[(\d+)\]\.(\w+)")
_ELSEWHERE: Final[dict[str, Path]] = {
    "escalate_after": ("escalate", "after"),
    "escalate_to": ("escalate", "role"),
}


def asking_problems(
    asking: Asking, usual: InteractionType, form: Form, path: Path
) -> Iterator[Finding]:
    """What keeps a question of the `usual` type from being asked like this."""
    if asking == _USUAL:
        return
    about_a_call = {"tool": "check"} if form is WHAT_IS_MISSING else {}
    try:
        request_from_asking(
            asking,
            request_id="check",
            session_id="check",
            type=usual,
            title="check",
            form=form,
            context=about_a_call,
        )
    except InvalidAnswer as refused:
        for name, message in refused.fields.items():
            told = msg("{place}: {problem}", place=name, problem=message)
            yield Finding((*path, *_place(name)), told)


def _place(name: str) -> Path:
    if inside := _IN_AN_OPTION.fullmatch(name):
        return ("options", int(inside[1]), inside[2].removeprefix("is_"))
    return _ELSEWHERE.get(name, (name,))
