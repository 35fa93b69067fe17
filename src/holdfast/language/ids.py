"""Names that people choose: ids of new runs, among those that are given out, and tools."""

from __future__ import annotations

import re

from holdfast.errors import AuthorError, InvalidAnswer
from holdfast.i18n.message import msg, term
from holdfast.language.lookalikes import disguised, plain

_CHOSEN = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_TOOL = re.compile(r"\w[\w./:-]{0,127}")
_GIVEN_OUT = re.compile(r"(inst|chat|conv)_\d+(_.*)?")
"""Runs are numbered so, and a listener of one is `inst_000001_L002`."""


def chosen_id(given: str, noun: str, field: str) -> str:
    """The id, or InvalidAnswer that says what one looks like."""
    if not may_be_chosen(given):
        raise InvalidAnswer(
            msg(
                "{id!r} is no id for a new {noun}: a letter or digit, then letters, digits, _ or "
                "-, at most 64, none that look like others, and not inst_…, chat_… or conv_…, "
                "which are given out",
                id=given,
                noun=term(noun),
            ),
            {field: msg("not usable")},
        )
    return given


def may_be_chosen(given: str) -> bool:
    """Whether a new run may have the id; clients like to choose UUIDs."""
    well_formed = _CHOSEN.fullmatch(given) is not None and not disguised(given)
    return well_formed and not _GIVEN_OUT.fullmatch(plain(given))


def tool_name(given: str) -> str:
    """The name, or AuthorError: our own sentences say it, so that it must not read as one."""
    if _TOOL.fullmatch(given) is None or disguised(given):
        raise AuthorError(
            msg(
                "{name!r} is no name for a tool: a letter, digit or _, then letters, digits or _ - "
                ". / :, at most 128, of one alphabet (Chinese beside Latin is fine) and none that "
                "look like others; give it one with name=, or in its declaration",
                name=given[:128],
            )
        )
    return given
