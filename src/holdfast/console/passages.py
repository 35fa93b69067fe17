"""A model's text for the eye: paragraphs and blocks of code, and nothing else.

Models write Markdown; of that only fenced blocks are followed, because they keep their blanks.
All the rest is text as it stands. `static/speech.js` reads a reply that is still being spoken by
the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^[ \t]*```.*$\n?", re.MULTILINE)
_BETWEEN: Final = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Passage:
    text: str
    code: bool = False


def passages(text: str) -> tuple[Passage, ...]:
    """Between an odd fence and the next one, or the end, stands code."""
    return tuple(_passages(text))


def _passages(text: str) -> Iterator[Passage]:
    for place, block in enumerate(_FENCE.split(text)):
        if place % 2:
            yield Passage(block.rstrip("\n"), code=True)
            continue
        yield from (Passage(one.strip("\n")) for one in _BETWEEN.split(block) if one.strip())
