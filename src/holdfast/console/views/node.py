"""One box of the graph, with what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.server.services import Services
from holdfast.views.actions import ActionOf, node_actions
from holdfast.views.nodes import NodeDetails, node_details
from holdfast.views.reader import RunVersion


@dataclass(frozen=True, slots=True)
class NodeView:
    """`actions` are names and what each is about; `seq` is the event, if an earlier one."""

    run_id: str
    details: NodeDetails
    actions: tuple[ActionOf, ...]
    seq: int | None


async def node_of(
    served: Services, run: RunVersion, node_id: str, *, operates: bool, past: bool
) -> NodeView:
    """The box as it is in `run`; in the `past` it has no actions."""
    details = await node_details(served.reader, run, node_id)
    offers = operates and not past
    return NodeView(
        run_id=run.run_id,
        details=details,
        actions=await run.beside(node_actions, run, node_id) if offers else (),
        seq=run.version if past else None,
    )
