"""Tracebacks of what tools raised: in the log, and kept beside the run for those who operate it.

A traceback is no event: viewers of a run see all its events, and a traceback tells of files and
code. So it is kept by name, the last one of each step, in the transaction of the outcome that it
belongs to. Secrets of the call are taken out before it gets here.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from typing import Final

from holdfast.journal.port import NOTHING, Attached, ExpiringValue, Journal
from holdfast.model import commands as c
from holdfast.model.effects import Work

LONGEST: Final = 8_000
DAYS_KEPT: Final = 30
_OBEYED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Traceback:
    """Of the step's last attempt that raised something; `at` is when."""

    step_id: str
    attempt: int
    at: float
    text: str


def noted(work: Work, outcome: c.Outcome, now: float) -> Attached:
    """Write the outcome's traceback to the log; what is to be kept of it."""
    if not isinstance(outcome, c.Failed | c.Lost) or not outcome.traceback:
        return NOTHING
    text, place = outcome.traceback, (work.run_id, work.step_id, work.attempt)
    named = {"run": work.run_id, "step": work.step_id, "attempt": work.attempt, "claim": work.claim}
    # The end says what was raised, and where.
    last = text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"
    # Without what a terminal would obey: a log is often read in one.
    plain = _OBEYED.sub(lambda one: ascii(one[0])[1:-1], last)
    log.warning("run %s: step %s raised at attempt %d\n%s", *place, plain, extra=named)
    body = {"attempt": work.attempt, "at": now, "text": last}
    until = now + DAYS_KEPT * 86_400
    return Attached(kept=[ExpiringValue(_kind(work.run_id), work.step_id, json.dumps(body), until)])


async def tracebacks_of(journal: Journal, run_id: str, now: float) -> list[Traceback]:
    """The last one of each step, the newest first."""
    found = [
        Traceback(one.key, **json.loads(one.body))
        for one in await journal.all_kept(_kind(run_id), now)
    ]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _kind(run_id: str) -> str:
    return f"traceback:{run_id}"
