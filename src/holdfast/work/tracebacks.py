"""The traceback of what a tool raised, from the tool's own code on.

The standard library tells an error's words line by line, and a service may have sent a million
lines, while the loop waits. So words that are longer than any that are meant to be read are cut
before a traceback is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from traceback import TracebackException, format_tb
from types import TracebackType
from typing import Final

from holdfast.errors import ToolError
from holdfast.work.failures import read

LONGEST_WORDS: Final = 4_000
_MOST_TOLD: Final = 15
"""Errors that led to one another, and members of a group, where words were cut."""
_OURS: Final = ("holdfast", "asyncio", "concurrent")


def traceback_of(error: BaseException, hide: Callable[[str], str] = str) -> str:
    """Empty where only our own code raised it. `hide` takes secrets out of words before they are
    cut, which would leave a part of one."""
    if isinstance(error, ToolError) and error.traceback is not None:
        return error.traceback
    own = _from_the_work_on(error.__traceback__)
    if own is None:
        return ""
    name = type(error).__name__
    return read(lambda: _told(error, own, hide), f"{name}, whose traceback cannot be told")


def chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """The error, and those that led to it, the last first."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _from_the_work_on(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and _is_ours(traceback):
        traceback = traceback.tb_next
    return traceback


def _is_ours(traceback: TracebackType) -> bool:
    module = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OURS


def _told(error: BaseException, own: TracebackType, hide: Callable[[str], str]) -> str:
    if any(len(words) > LONGEST_WORDS for one in _with_members(error) for words in _words(one)):
        return "".join(_briefly(error, own, hide))
    return "".join(TracebackException(type(error), error, own, compact=True).format())


def _with_members(error: BaseException) -> Iterator[BaseException]:
    seen, left = set[int](), [error]
    while left:
        for one in chain(left.pop(), seen):
            yield one
            left += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


def _words(error: BaseException) -> list[str]:
    """Its own and its notes; none where it cannot say them."""
    none: list[str] = []
    notes = read(lambda: [str(one) for one in getattr(error, "__notes__", ())], none)
    return [read(lambda: str(error), ""), *notes]


def _briefly(error: BaseException, own: TracebackType, hide: Callable[[str], str]) -> Iterator[str]:
    for one in reversed([*islice(chain(error, set()), _MOST_TOLD)]):
        yield "Traceback (most recent call last):\n"
        yield from format_tb(own if one is error else one.__traceback__)
        yield from _last_lines(one, hide)
        if one is not error:
            yield "\nIt led to this:\n\n"


def _last_lines(error: BaseException, hide: Callable[[str], str]) -> Iterator[str]:
    words, *notes = (_cut(hide(one)) for one in _words(error))
    yield f"{type(error).__module__}.{type(error).__qualname__}: {words}\n".removeprefix(
        "builtins."
    )
    yield from (f"{one}\n" for one in notes[:_MOST_TOLD])
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions[:_MOST_TOLD]:
            yield f"  {type(one).__qualname__}: {_cut(hide(_words(one)[0]))}\n"


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST_WORDS else f"{words[:LONGEST_WORDS]}…"
