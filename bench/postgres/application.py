"""The application under measurement, for this process and for `holdfast worker`."""

from __future__ import annotations

import time

from bench import ours
from holdfast import Holdfast

CHAINS = (10, 100, 1000)
MAX_EFFECTS = 2000


async def first(n: int) -> dict[str, float]:
    return {"n": time.monotonic()}


def made(*, drives: bool) -> Holdfast:
    """On the database of HOLDFAST_DATABASE."""
    made = Holdfast(drives=drives, max_effects=MAX_EFFECTS)
    made.tool(ours.effect, idempotent=True)
    made.tool(first, idempotent=True)
    for length in CHAINS:
        made.add_plan(ours.sequence(f"chain_{length}", *["effect"] * length))
    made.add_plan(ours.sequence("first", "first"))
    made.add_plan(ours.sequence("paused", "effect", "ask", "effect"))
    return made


def app() -> Holdfast:
    """For `holdfast worker bench.postgres.application:app`."""
    return made(drives=True)
