"""The voice in which a story is told: its phrases are English, and may be said otherwise.

A phrase names what varies in braces: `say("{step} started", step="L001")`. Whoever tells in
another language brings a voice that knows the phrases; the phrase itself is the key.
"""

from __future__ import annotations

from holdfast.story.text import clock


class Voice:
    """English, by the clock of this place."""

    def __call__(self, phrase: str, /, **values: object) -> str:
        return phrase.format_map(values)

    def due(self, at: float, now: float) -> str:
        """When something will happen that was announced `now`."""
        return self("at {time}", time=clock(at))


ENGLISH = Voice()
