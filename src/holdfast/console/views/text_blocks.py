"""A model's text as paragraphs and blocks of code.

Models write Markdown; only its fenced blocks are recognised, because they keep their spaces. All
the rest is shown as it is. `static/speech.js` has the same rule for a reply that is still being
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^[ \t]*```.*$\n?", re.MULTILINE)
_BETWEEN: Final = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str
    code: bool = False


def text_blocks(text: str) -> Iterator[TextBlock]:
    """Code is what stands between an odd fence and the next one, or the end."""
    for place, block in enumerate(_FENCE.split(text)):
        if place % 2:
            yield TextBlock(block.rstrip("\n"), code=True)
            continue
        yield from (TextBlock(one.strip("\n")) for one in _BETWEEN.split(block) if one.strip())
