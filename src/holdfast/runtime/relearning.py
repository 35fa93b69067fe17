"""Reads from the journals what runs have taught: of one run, or of all that were ever in trouble.

The row of a run says whether anything was tried again in it, or whether it had a case. Others have
nothing to teach, and their records are not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from holdfast.core.plan.state import PlanState
from holdfast.errors import HoldfastError, NotFound
from holdfast.journal.codec import decode
from holdfast.journal.port import DAMAGED_RUN, Journal, RunQuery, RunRow
from holdfast.repair.experience import NOTHING_LEARNED, Experience, learn
from holdfast.repair.facts import NO_PAST, Fact, Past, facts_of
from holdfast.runtime.machines import PLAN, blank, replay
from holdfast.runtime.registry import DefinitionRegistry

log = logging.getLogger("holdfast")

ROWS: Final = 100
RECORDS: Final = 200
"""Tuning: how many are read before others have a turn."""


@dataclass(frozen=True, slots=True)
class Relearned:
    """`versions` are those up to which runs were read."""

    experience: Experience
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lived:
    """What a run has taught up to a version."""

    past: Past
    facts: tuple[Fact, ...]
    version: int


async def relearned(journal: Journal, also: Collection[str] = ()) -> Relearned:
    """What all runs have taught; `also` names some that are in trouble, whatever their rows say.

    A run that cannot be read teaches nothing.
    """
    definitions = DefinitionRegistry(journal)
    experience, versions = NOTHING_LEARNED, {}
    async for run_id in _in_trouble(journal, also):
        try:
            lived = await lived_until(journal, definitions, run_id)
        except HoldfastError as error:
            log.warning("nothing is learned from %s: %s", run_id, error, extra={"run": run_id})
            continue
        experience, _ = learn(experience, lived.facts)
        versions[run_id] = lived.version
    return Relearned(experience, versions)


async def lived_until(
    journal: Journal, definitions: DefinitionRegistry, run_id: str, version: int | None = None
) -> Lived:
    """What a plan's run has taught up to a version, or until now."""
    if version is None:
        version = await journal.version(run_id)
    row = await journal.run(run_id) if version else None
    if row is None or row.kind != PLAN.kind:
        return Lived(NO_PAST, (), 0)
    state = cast(PlanState, blank(run_id, await definitions.by_digest(row.definition)))
    past = NO_PAST
    found: list[Fact] = []
    while state.version < version:
        records = await journal.read(run_id, state.version, min(RECORDS, version - state.version))
        if not records:
            raise NotFound(f"run {run_id} was removed while it was read")
        for one in records:
            event = decode(one)
            past, facts = facts_of(past, state, one.at, event)
            found += facts
            state = cast(PlanState, replay(state, [(one.at, event)]))
        await asyncio.sleep(0)
    return Lived(past, tuple(found), version)


async def _in_trouble(journal: Journal, also: Collection[str]) -> AsyncIterator[str]:
    query = RunQuery(kind=PLAN.kind, limit=ROWS)
    while rows := await journal.runs(query):
        for row in rows:
            if row.run_id in also or _teaches(row):
                yield row.run_id
        query = replace(query, before=rows[-1].run_id)
        await asyncio.sleep(0)


def _teaches(row: RunRow) -> bool:
    if row.title == DAMAGED_RUN:
        return True
    summary = json.loads(row.summary)
    return bool(summary.get("retries") or summary.get("cases"))
