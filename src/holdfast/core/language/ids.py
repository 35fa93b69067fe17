"""Ids that a caller chooses for a new run, among those that are given out."""

from __future__ import annotations

import re

from holdfast.core.language.lookalikes import disguised, plain
from holdfast.errors import InvalidAnswer

_CHOSEN = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_GIVEN_OUT = re.compile(r"(inst|chat|conv)_\d+(_.*)?")
"""Runs are numbered so, and a listener of one is `inst_000001_L002`."""


def chosen_id(given: str, noun: str, field: str) -> str:
    """The id, or InvalidAnswer that says what one looks like."""
    if not may_be_chosen(given):
        raise InvalidAnswer(
            f"{given!r} is no id for a new {noun}: a letter or digit, then letters, digits, _ or "
            "-, at most 64, none that look like others, and not inst_…, chat_… or conv_…, which "
            "are given out",
            {field: "not usable"},
        )
    return given


def may_be_chosen(given: str) -> bool:
    """Whether a new run may have the id; clients like to choose UUIDs."""
    well_formed = _CHOSEN.fullmatch(given) is not None and not disguised(given)
    return well_formed and not _GIVEN_OUT.fullmatch(plain(given))
