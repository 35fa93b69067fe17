"""The backend of this process: it has the home, and drives the runs itself."""

from __future__ import annotations

import asyncio
import getpass
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.app import Holdfast
from holdfast.cli.backend import Heard, Outcomes, Partner, the_only_agent
from holdfast.cli.home_journal import LOOK_AGAIN
from holdfast.cli.loading import LeftOut, is_plan_file, load_plan_file
from holdfast.cli.required_tools import refuse_without_tools
from holdfast.conversations.runner import ConversationRunner, pursuit_of
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.run.state import RunState
from holdfast.errors import NotFound
from holdfast.journal.codec import decode
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure
from holdfast.model.interaction import InteractionResponse
from holdfast.runtime.about import about_question
from holdfast.runtime.hub import Recorded
from holdfast.runtime.identity import LOCAL, Identity, acting
from holdfast.runtime.machines import blank, definition_of
from holdfast.runtime.tracebacks import Traceback, tracebacks_of

NONE_LEFT_OUT = LeftOut()


@contextmanager
def as_this_user() -> Iterator[None]:
    """What is done within is noted in the audit as done by whoever runs the command."""
    with acting(Identity(who=os_user(), origin="cli")):
        yield


def os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


@dataclass(frozen=True, slots=True)
class HomeBackend:
    """An application; `by` is whom its histories name."""

    app: Holdfast
    by: str = LOCAL
    plans: LeftOut = NONE_LEFT_OUT
    agents: LeftOut = NONE_LEFT_OUT

    look_again = LOOK_AGAIN
    is_elsewhere = False

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        async with self.app:
            with as_this_user():
                yield

    @property
    def keeps_runs(self) -> bool:
        return not isinstance(self.app.journal, MemoryJournal)

    def is_driven(self) -> bool:
        return True

    async def runs(self, query: RunQuery) -> list[RunRow]:
        return await self.app.runs(query)

    async def version(self, run_id: str) -> int:
        return await self.app.journal.version(run_id)

    async def questions(self, query: QuestionQuery) -> list[QuestionRow]:
        return await self.app.inbox(query)

    async def question(self, question_id: str) -> QuestionRow | None:
        return await self.app.journal.question(question_id)

    async def about(self, row: QuestionRow) -> str:
        return await about_question(self.app.journal, row)

    async def beginning(self, run_id: str) -> RunState:
        return blank(run_id, definition_of(await self.state(run_id)))

    async def records(self, run_id: str, after: int = 0) -> list[Recorded]:
        records = await self.app.journal.read(run_id, after)
        return [Recorded(one.seq, one.at, decode(one)) for one in records]

    async def tracebacks(self, run_id: str) -> list[Traceback]:
        return await tracebacks_of(self.app.journal, run_id, time.time())

    async def state(self, run_id: str) -> RunState:
        return await self.app.engine.state(run_id)

    def listen(self, run_id: str, after: int = 0) -> Heard:
        return self.app.engine.hub.listen(run_id, after)

    async def is_newest(self, state: RunState) -> bool:
        newest = await self.app.engine.state_since(state.run_id, state.version)
        return newest.version == state.version

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        await refuse_without_tools(self.app, run_id, anyway=anyway)

    async def plan(self, name: str) -> CompiledPlan:
        """By its id or its file; one in a file is read and checked first."""
        if is_plan_file(name):
            name = load_plan_file(self.app, Path(name)).plan_id
        elif name in self.plans.names:
            raise self.plans.rejected(name)
        return self.app.engine.definitions.current(name)

    async def start(self, plan: CompiledPlan, prompt: str, values: Mapping[str, Any]) -> str:
        plan_id = plan.plan.plan_id
        return (await self.app.plans.start_plan_by_prompt(prompt, plan_id, values=values)).id

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        engine = self.app.engine
        before = await engine.state(run_id)
        handing = asyncio.ensure_future(self.app.plans.continue_instance(run_id, values, self.by))
        taken = engine.wait_for(run_id, lambda state: state.version > before.version)
        moved = asyncio.ensure_future(taken)
        await asyncio.wait({handing, moved}, return_when=asyncio.FIRST_COMPLETED)
        moved.cancel()
        if handing.done():
            handing.result()
        return handing

    async def answer(self, response: InteractionResponse) -> None:
        await self.app.sessions.answer(response, by=self.by)

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse
    ) -> Outcomes:
        return await self.app.sessions.answer_many(question_ids, response, by=self.by)

    async def resume(self, run_id: str, failed: AfterFailure | None = None) -> None:
        if isinstance(await self.state(run_id), ConversationState):
            command = c.Unhold() if failed is None else c.GoOn(failed, self.by)
            await self.app.engine.submit(run_id, command)
        else:
            await self.app.resume(run_id, by=self.by)

    async def cancel(self, run_id: str, reason: str) -> None:
        if isinstance(await self.state(run_id), ConversationState):
            await self.app.engine.abandon(run_id)
        await self.app.cancel(run_id, by=self.by, reason=reason)

    async def runner(self, state: ConversationState) -> ConversationRunner | None:
        return await pursuit_of(self.app, state, self.by)

    async def partner(self, wanted: str | None) -> Partner:
        library = self.app.engine.definitions
        known = sorted(library.agent_ids())
        if self.agents.files and wanted not in known:
            raise self.agents.everything()
        if not known:
            raise NotFound(
                "no agent is declared here: write one into agents.yaml (agent_id, name, "
                "system_context, tools), or name your application with --app"
            )
        agent = library.agent(wanted or the_only_agent(known)).agent
        return Partner(agent.agent_id, agent.name or agent.agent_id)

    async def open_chat(self, agent_id: str) -> str:
        return (await self.app.sessions.open(agent_id, by=self.by)).id

    async def say(self, session_id: str, message: str) -> None:
        await self.app.sessions.say(session_id, message, by=self.by)
