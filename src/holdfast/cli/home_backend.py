"""The backend of this process: it holds the home, and drives the runs itself."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.app import Holdfast
from holdfast.cli.backend import (
    Outcomes,
    OwnPatch,
    Partner,
    Updates,
    question_about,
    the_only_agent,
)
from holdfast.cli.home_reader import ViewReader
from holdfast.cli.loading import LeftOut, is_plan_file, load_plan_file
from holdfast.errors import NotAllowed, NotFound
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure
from holdfast.model.interaction import InteractionResponse
from holdfast.model.plan import Plan
from holdfast.model.repair import Proposal
from holdfast.model.run import RunKind
from holdfast.model.values import JsonObject
from holdfast.plans.repairs import Repairer
from holdfast.runs.required_tools import missing_tools
from holdfast.runtime.identity import LOCAL, Identity, acting
from holdfast.runtime.machines import as_conversation
from holdfast.views import homes, repairs
from holdfast.views.reader import RunReader

if TYPE_CHECKING:
    from holdfast.conversations.runner import ConversationRunner

NONE_LEFT_OUT = LeftOut()


@contextmanager
def as_this_user() -> Iterator[None]:
    """What is done within is noted in the audit as done by the machine's user."""
    with acting(Identity(who=os_user(), origin="cli")):
        yield


def os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


async def refuse_without_tools(app: Holdfast, run_id: str, *, anyway: bool) -> None:
    """NotAllowed, with all their names, when the run needs tools that are not known here."""
    missing = [] if anyway else await missing_tools(app.engine, app.tools, run_id)
    if missing:
        some = f"tool{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise NotAllowed(
            f"{run_id} needs the {some}, not known here: go on from where they are declared "
            "(tools.yaml, --tools, --app), or say --anyway"
        )


class HomeBackend(ViewReader):
    """An application; `by` is the name that its histories have, `language` the reader's."""

    is_elsewhere = False

    def __init__(
        self,
        app: Holdfast,
        by: str = LOCAL,
        plans: LeftOut = NONE_LEFT_OUT,
        agents: LeftOut = NONE_LEFT_OUT,
        language: str = "en",
    ) -> None:
        super().__init__(RunReader.of(app), language, by)
        self.app = app
        self._plans = plans
        self._agents = agents

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with self.app:
            with as_this_user():
                yield

    @property
    def keeps_runs(self) -> bool:
        return homes.keeps_runs(self.app)

    @property
    def is_shared(self) -> bool:
        return self.app.journal.shared

    def is_driven(self) -> bool:
        return True

    async def is_newest(self, run_id: str, version: int) -> bool:
        newest = await self.app.engine.state_since(run_id, version)
        return newest.version == version

    async def follow(self, run_id: str, after: int = 0, *, views: bool = False) -> Updates:
        async with aclosing(self.views.follow(run_id, after, views=views)) as coming:
            async for one in coming:
                yield self._told(one)

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        await refuse_without_tools(self.app, run_id, anyway=anyway)

    async def plan(self, name: str) -> Plan:
        """By its id or its file; one in a file is read and checked first."""
        if is_plan_file(name):
            name = load_plan_file(self.app, Path(name)).plan_id
        elif name in self._plans.names:
            raise self._plans.rejected(name)
        return self.app.engine.definitions.current(name).plan

    async def start(self, plan_id: str, prompt: str, values: Mapping[str, Any]) -> str:
        return (await self.app.plans.start_plan_by_prompt(prompt, plan_id, values=values)).id

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        engine = self.app.engine
        before = await engine.state(run_id)
        handing = asyncio.ensure_future(self.app.plans.continue_instance(run_id, values, self._by))
        taken = engine.wait_for(run_id, lambda state: state.version > before.version)
        moved = asyncio.ensure_future(taken)
        await asyncio.wait({handing, moved}, return_when=asyncio.FIRST_COMPLETED)
        moved.cancel()
        if handing.done():
            handing.result()
        return handing

    async def answer(self, response: InteractionResponse) -> None:
        await self.app.sessions.answer(response, by=self._by)

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse
    ) -> Outcomes:
        return await self.app.sessions.answer_many(question_ids, response, by=self._by)

    async def resume(self, run_id: str, failed: AfterFailure | None = None) -> None:
        if await self._is_conversation(run_id):
            command = c.Unhold() if failed is None else c.GoOn(failed, self._by)
            await self.app.engine.submit(run_id, command)
        else:
            await self.app.resume(run_id, by=self._by)

    async def cancel(self, run_id: str, reason: str) -> None:
        if await self._is_conversation(run_id):
            await self.app.engine.abandon(run_id)
        await self.app.cancel(run_id, by=self._by, reason=reason)

    async def fork(self, run_id: str, seq: int) -> str:
        return (await self.app.plans.fork(run_id, seq, by=self._by)).id

    async def rehearsed(self, run_id: str, patch: OwnPatch) -> Proposal:
        operations = await self._operations(run_id, patch)
        of = {"reason": patch.reason, "by": self._by}
        return self._told(await self._repairer.proposal(run_id, operations, **of))

    async def propose(self, run_id: str, patch: OwnPatch) -> str | None:
        operations = await self._operations(run_id, patch)
        of = {"reason": patch.reason, "by": self._by, "listener_id": patch.listener_id}
        made = await self._repairer.propose(run_id, operations, **of)
        known = repairs.cases(await self.views.at(run_id))
        return question_about(known, made.patch.patch_id)

    async def _operations(self, run_id: str, patch: OwnPatch) -> Sequence[JsonObject]:
        if patch.listener_id:
            repairs.refuse_unknown(await self.views.at(run_id), patch.listener_id)
        if patch.operations is not None:
            return patch.operations
        found = await self._repairer.to_current(run_id)
        if not found:
            raise NotAllowed(f"{run_id} has today's version of its plan")
        return found

    @property
    def _repairer(self) -> Repairer:
        found = self.app.planner_agent.repairer
        assert found is not None, "an application has one"
        return found

    async def _is_conversation(self, run_id: str) -> bool:
        return (await self.views.run(run_id, parts=False)).kind is RunKind.CONVERSATION

    async def runner(self, run_id: str) -> ConversationRunner | None:
        from holdfast.conversations.runner import runner_of

        state = as_conversation(await self.app.engine.state(run_id))
        return await runner_of(self.app, state, self._by)

    async def partner(self, wanted: str | None) -> Partner:
        definitions = self.app.engine.definitions
        known = sorted(definitions.agent_ids())
        if self._agents.files and wanted not in known:
            raise self._agents.everything()
        if not known:
            raise NotFound(
                "no agent is declared here: write one into agents.yaml (agent_id, name, "
                "system_context, tools), or name your application with --app"
            )
        agent = definitions.agent(wanted or the_only_agent(known)).agent
        return Partner(agent.agent_id, agent.name or agent.agent_id)

    async def open_chat(self, agent_id: str) -> str:
        return (await self.app.sessions.open(agent_id, by=self._by)).id

    async def say(self, session_id: str, message: str) -> None:
        await self.app.sessions.say(session_id, message, by=self._by)
