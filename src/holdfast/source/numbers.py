"""Numbers in sources: the ranges that they must keep, and what is said when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.i18n.message import msg
from holdfast.source.locations import Finding, Path

LONGEST_WAIT: Final = 366 * 86_400.0


def wait_problems(seconds: float | None, path: Path) -> Iterator[Finding]:
    if seconds is not None and not 0 < seconds <= LONGEST_WAIT:
        yield Finding(
            path, msg("{key} must be above 0 and at most a year, in seconds", key=path[-1])
        )


def range_problems(number: float, least: float, most: float, path: Path) -> Iterator[Finding]:
    if not least <= number <= most:
        message = msg(
            "{key} must be between {least:g} and {most:g}, not {n:g}",
            key=path[-1],
            least=least,
            most=most,
            n=number,
        )
        yield Finding(path, message)
