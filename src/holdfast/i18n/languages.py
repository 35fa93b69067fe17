"""The languages that Holdfast speaks, and which of them somebody prefers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "中文"}
"""The languages, each as its speakers call it."""

LONGEST_USUAL: Final = 100
"""What is longer is not worth remembering."""


def preferred(accepted: str) -> str:
    """What an Accept-Language header wants most of what there is; else English."""
    return _usual(accepted) if len(accepted) <= LONGEST_USUAL else _wanted(accepted)


@lru_cache
def _usual(accepted: str) -> str:
    """Browsers and programs send the same few headers again and again."""
    return _wanted(accepted)


def _wanted(accepted: str) -> str:
    return next(filter(None, map(_offered, _by_preference(accepted))), "en")


def _offered(tag: str) -> str:
    primary = tag.partition("-")[0].lower()
    return primary if primary in LANGUAGES else ""


def _by_preference(accepted: str) -> list[str]:
    weighed = [(part.partition(";"), place) for place, part in enumerate(accepted.split(","))]
    order = sorted(weighed, key=lambda one: (-_weight(one[0][2]), one[1]))
    return [tag.strip() for (tag, _, _), _ in order]


def _weight(parameter: str) -> float:
    try:
        return float(parameter.strip().removeprefix("q="))
    except ValueError:
        return 1.0
