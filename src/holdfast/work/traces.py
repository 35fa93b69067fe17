"""The traceback of what work raised, from its own code on."""

from __future__ import annotations

from functools import partial
from traceback import TracebackException
from types import TracebackType
from typing import Final

from holdfast.errors import ToolError
from holdfast.work.failures import read

_OURS: Final = ("holdfast", "asyncio", "concurrent")


def traceback_of(error: BaseException) -> str:
    """Empty where only our own code raised it: that tells nobody anything."""
    if isinstance(error, ToolError) and error.traceback is not None:
        return error.traceback
    own = _from_the_work_on(error.__traceback__)
    if own is None:
        return ""
    told = partial(TracebackException, type(error), error, own, compact=True)
    name = type(error).__name__
    return read(lambda: "".join(told().format()), f"{name}, whose traceback cannot be told")


def _from_the_work_on(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and _is_ours(traceback):
        traceback = traceback.tb_next
    return traceback


def _is_ours(traceback: TracebackType) -> bool:
    module = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OURS
