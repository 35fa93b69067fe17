"""The console's catalogue: every text in English and Chinese, by key; one module per page.

A text may have `{name}` for a value, and `one|many` where the number `n` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.console.words import chat, inbox, plans, run, runs, shell
from holdfast.i18n.catalogue import LANGUAGES, preferred

_PLACES: Final = {language: place for place, language in enumerate(LANGUAGES)}

CATALOGUE: Final[Mapping[str, tuple[str, str]]] = {
    key: texts
    for module in (shell, runs, run, inbox, chat, plans)
    for key, texts in module.WORDS.items()
}


@dataclass(frozen=True, slots=True)
class Words:
    """The catalogue in one language: `words("runs.title")`."""

    language: str

    def __call__(self, key: str, **values: object) -> str:
        text = CATALOGUE[key][_PLACES[self.language]]
        one, many, rest = text.partition("|")
        if many:
            text = one if values.get("n") == 1 else rest
        return text.format_map(values) if values else text

    def starting(self, *prefixes: str) -> dict[str, str]:
        """The texts that browser code needs, by key, as they stand in the catalogue."""
        place = _PLACES[self.language]
        return {key: texts[place] for key, texts in CATALOGUE.items() if key.startswith(prefixes)}


def language_of(cookie: str | None, accepted: str) -> str:
    """The chosen language; else what the browser prefers; else English."""
    if cookie is not None and cookie in LANGUAGES:
        return cookie
    return preferred(accepted)
