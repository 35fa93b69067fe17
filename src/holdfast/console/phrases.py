"""Stories and graphs in the reader's language.

The server does not know the reader's time zone, so a time to come is given as a duration.
"""

from __future__ import annotations

from functools import cache

from holdfast.console.formatting import span
from holdfast.console.words import Words
from holdfast.console.words.story import CHINESE
from holdfast.i18n.catalogue import said
from holdfast.views.stories.phrases import SOON, Voice


class TranslatedPhrases(Voice):
    def __init__(self, language: str) -> None:
        self._language = language
        self._units = Words(language)("js.units").split()

    def __call__(self, phrase: str, /, **values: object) -> str:
        text = CHINESE.get(phrase, phrase) if self._language == "zh" else phrase
        return text.format_map(values)

    def why(self, reason: str) -> str:
        return said(reason, self._language)

    def asked(self, title: str) -> str:
        return said(title, self._language)

    def due(self, at: float, now: float) -> str:
        if at - now < SOON:
            return self("in a moment" if at > now else "at once")
        away = span(at - now, self._units)
        return f"{away}后" if self._language == "zh" else f"in {away}"


@cache
def phrases_in(language: str) -> Voice:
    return TranslatedPhrases(language)
