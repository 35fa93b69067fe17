"""The voice in which a story is told: its phrases are English, and may be said otherwise.

A phrase names what varies in braces: `say("{step} started", step="L001")`. Whoever tells in
another language brings a voice that knows the phrases; the phrase itself is the key.
"""

from __future__ import annotations

from typing import Final

from holdfast.views.stories.text import clock

SOON: Final = 0.5
"""Seconds that nobody notices."""


class Voice:
    """English, by the clock of this place."""

    def __call__(self, phrase: str, /, **values: object) -> str:
        return phrase.format_map(values)

    def why(self, reason: str) -> str:
        """A reason that was recorded in English, or in somebody's own words."""
        return reason

    def asked(self, title: str) -> str:
        """What a question is called, in our English or in its author's words."""
        return title

    def due(self, at: float, now: float) -> str:
        """When something will happen that was announced `now`."""
        if at - now < SOON:
            return self("in a moment" if at > now else "at once")
        return self("at {time}", time=clock(at))


ENGLISH = Voice()
