"""Answers to questions about repairs: consent counts for what was seen.

What a repair was judged by may be different by now: the versions of its tools, which are known
here, and what other runs of the same tree have called. The answer brings both along, and the run
refuses one that is stale; then the proposal is looked at anew.

Two runs of a tree may be repaired at the same moment, neither of which knows of the other's call.
So an answer that lets a repair be made *claims* the tools that nothing in the tree has called: of
two such appends the second fails as a whole, whichever process makes it, and is judged again by
what the first has left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Final

from holdfast.core.plan.cases import APPLY
from holdfast.core.plan.spent import is_alone
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import NameTaken, NotAllowed
from holdfast.journal.port import NOTHING, Attached, ExpiringValue
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionRequest
from holdfast.model.record import replacing
from holdfast.runtime.engine import Engine
from holdfast.runtime.machines import as_plan
from holdfast.runtime.relatives import called_elsewhere

CLAIMED: Final = "repair"
"""The kind under which tools are claimed."""

CLAIM_SECONDS: Final = 3600.0
"""Far longer than it takes until what was claimed can be read in the run that claimed it."""

_with = replacing(c.Answer)


class RepairAnswers:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def answer(self, run_id: str, request: InteractionRequest, command: c.Answer) -> RunState:
        case_id, versions = str(request.context["case_id"]), self._versions(request)
        earlier: set[str] = set()
        while True:
            state = await self._asking(run_id, command.question_id)
            elsewhere = await called_elsewhere(self._engine, state)
            case, claimed = state.repair.cases[case_id], NOTHING
            if command.option_id == APPLY and case.proposal is not None and not is_alone(state):
                claimed = self._claim(state.root_id, case.proposal.verdict.fresh, earlier)
            given = _with(command, versions=versions, elsewhere=elsewhere)
            try:
                return await self._engine.submit(run_id, given, attached=claimed)
            except NameTaken as taken:
                if taken.kind != CLAIMED:
                    raise
                earlier.add(taken.key)
            except NotAllowed:
                review = c.ReviewProposal(case_id, versions, elsewhere)
                await self._engine.submit(run_id, review)
                raise

    async def _asking(self, run_id: str, question_id: str) -> PlanState:
        """The inbox may be ahead of the engine, which learns a moment later what is asked."""
        return as_plan(
            await self._engine.wait_for(run_id, lambda state: question_id in state.questions)
        )

    def _versions(self, request: InteractionRequest) -> Mapping[str, str]:
        """Those of its tools, as they are here and now."""
        names = request.context["repair_tools"]
        assert isinstance(names, list)
        facts = {str(name): self._engine.worker.tool_facts(str(name)) for name in names}
        return {name: "" if one is None else one.version for name, one in facts.items()}

    def _claim(self, root_id: str, tools: Sequence[str], earlier: Collection[str]) -> Attached:
        """Each by its first name that is free, for which all contend who would be the first to call
        it."""
        now = self._engine.clock.now()
        names = [_next_name(f"{root_id}:{tool}", earlier) for tool in tools]
        claimed = [ExpiringValue(CLAIMED, one, "", now + CLAIM_SECONDS) for one in names]
        return Attached(claimed=claimed, at=now)


def _next_name(claimed: str, earlier: Collection[str]) -> str:
    names = (f"{claimed}:{number}" for number in count())
    return next(one for one in names if one not in earlier)
