"""A run of a home that this process does not drive: its state, folded from what is committed."""

from __future__ import annotations

from holdfast.core.run.state import RunState
from holdfast.errors import NotFound
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal
from holdfast.runtime.machines import blank, replay
from holdfast.runtime.registry import DefinitionRegistry


async def committed_state(journal: Journal, run_id: str) -> RunState:
    row = await journal.run(run_id)
    if row is None:
        raise NotFound(f"there is no run {run_id}: `holdfast runs` lists them")
    state = blank(run_id, await DefinitionRegistry(journal).by_digest(row.definition))
    records = await journal.read(run_id)
    return replay(state, ((one.at, decode(one)) for one in records))
