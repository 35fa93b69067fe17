"""The backend of a server: its runs are driven there, looked at and commanded from here.

A run is folded from the events that the server tells, with the definition that it is pinned
to, so that everything shown of it is made as for a run of this process. What is known of a
run is kept, and only what is new is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

from holdfast.cli import server_records
from holdfast.cli.backend import Heard, Outcomes, Partner, the_only_agent
from holdfast.cli.loading import is_plan_file
from holdfast.cli.shell import Address
from holdfast.client import Client
from holdfast.client.problems import refusal_in
from holdfast.conversations.runner import ConversationRunner
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import (
    HoldfastError,
    InternalError,
    NotAllowed,
    NotFound,
    NotPermitted,
    OperatorError,
    Unauthenticated,
)
from holdfast.forms.secrets import is_reference
from holdfast.journal.port import QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.model.conversation import AfterFailure
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.model.run import KINDS
from holdfast.runtime.hub import AskedBelow, Recorded, Spoken
from holdfast.runtime.machines import blank, replay
from holdfast.runtime.projections import request_of
from holdfast.runtime.tracebacks import Traceback

PATIENCE = 5.0
"""Seconds that a command tries to reach a server which does not answer."""

CATCH_UP = 0.05
PAGE = 200
HISTORY_PAGE = 1000


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Client]:
    """A client; who it is not let in is told where the command line takes its token from."""
    try:
        async with Client(address.url, address.token(), patience=PATIENCE) as client:
            yield client
    except Unauthenticated as error:
        raise Unauthenticated(
            f"{address.url}: {error}; the token is taken from $HOLDFAST_TOKEN or --token-file"
        ) from None
    except InternalError as error:
        raise OperatorError(f"{address.url}: {error}") from None


class ServerBackend:
    look_again = 1.0
    is_elsewhere = True
    keeps_runs = True

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: Client | None = None
        self._states: dict[str, RunState] = {}
        self._about: dict[str, str] = {}

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        async with connected(self._address) as self._client:
            yield

    @property
    def client(self) -> Client:
        assert self._client is not None, "the backend is entered first"
        return self._client

    def is_driven(self) -> bool:
        return True

    async def runs(self, query: RunQuery) -> list[RunRow]:
        rows: list[RunRow] = []
        before = query.before
        while len(rows) < query.limit:
            page = await self.client.runs.list(
                kind=None if query.kind is None else KINDS[query.kind],
                status=None if query.status is None else sorted(query.status),
                name=query.name,
                parent=query.parent_id,
                roots=query.roots_only,
                before=before,
                limit=min(query.limit - len(rows), PAGE),
            )
            rows += [server_records.run_row(one) for one in page["runs"]]
            before = page["next"]
            if before is None:
                break
        return rows

    async def version(self, run_id: str) -> int:
        return int((await self.client.runs.get(run_id))["version"])

    async def questions(self, query: QuestionQuery) -> list[QuestionRow]:
        rows: list[QuestionRow] = []
        after = query.after
        while len(rows) < query.limit:
            page = await self.client.interactions.list(
                status=None if query.status is None else sorted(query.status),
                role=query.role,
                run=query.run_id or query.root_id,
                due_before=query.due_before,
                after=after,
                limit=min(query.limit - len(rows), PAGE),
            )
            rows += [server_records.question_row(one) for one in page["interactions"]]
            self._about |= {one["rootId"]: one.get("about", "") for one in page["interactions"]}
            after = page["next"]
            if after is None:
                break
        return rows

    async def question(self, question_id: str) -> QuestionRow | None:
        try:
            return server_records.question_row(await self.client.interactions.get(question_id))
        except NotFound:
            return None

    async def about(self, row: QuestionRow) -> str:
        """The server has told it with the question."""
        return self._about.get(row.root_id, "")

    async def beginning(self, run_id: str) -> RunState:
        told = await self.client.runs.definition(run_id)
        return blank(run_id, server_records.definition(told))

    async def records(self, run_id: str, after: int = 0) -> list[Recorded]:
        found: list[Recorded] = []
        following: int | None = after
        while following is not None:
            page = await self.client.runs.history(run_id, after=following, limit=HISTORY_PAGE)
            found += [server_records.recorded(one) for one in page["events"]]
            following = page["next"]
        return found

    async def tracebacks(self, run_id: str) -> list[Traceback]:
        try:
            told = await self.client.runs.tracebacks(run_id)
        except NotPermitted:
            return []
        return [Traceback(**one) for one in told["tracebacks"]]

    async def state(self, run_id: str) -> RunState:
        known = self._states.get(run_id) or await self.beginning(run_id)
        more = await self.records(run_id, known.version)
        self._states[run_id] = state = replay(known, ((one.at, one.event) for one in more))
        return state

    async def listen(self, run_id: str, after: int = 0) -> Heard:
        async with aclosing(self.client.events(run_id, after or None)) as told:
            async for event in told:
                match event.type:
                    case "Spoken":
                        yield Spoken(event.data["began"], event.data["text"])
                    case "INTERACTION":
                        yield AskedBelow()
                    case _ if event.id is not None:
                        yield server_records.recorded(event.data)

    async def is_newest(self, state: RunState) -> bool:
        """The server may have told an event a moment before its engine knows of it."""
        version = await self.version(state.run_id)
        if version < state.version:
            await asyncio.sleep(CATCH_UP)
            return await self.is_newest(state)
        return version == state.version

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        """The server has its own."""

    async def plan(self, name: str) -> CompiledPlan:
        if is_plan_file(name):
            raise NotAllowed(f"{name} is a file here: a server runs the plans that it has, by id")
        async with connected(self._address) as client:
            return server_records.plan(await client.plans.get(name))

    async def start(self, plan: CompiledPlan, prompt: str, values: Mapping[str, Any]) -> str:
        plan_id = plan.plan.plan_id
        started = await self.client.instances.start(prompt, plan_id=plan_id, values=values)
        return str(started["id"])

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        query = QuestionQuery(status=frozenset({"open"}), root_id=run_id, limit=1000)
        sealed = dict(values)
        for row in await self.questions(query):
            sealed = await self._sealed(request_of(row), sealed)
        await self.client.instances.continue_with(run_id, sealed)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def answer(self, response: InteractionResponse) -> None:
        row = await self.question(response.request_id)
        if row is not None and row.status == "open":
            sealed = await self._sealed(request_of(row), response.data)
            response = replace(response, data=sealed)
        await self.client.interactions.answer(
            response.request_id,
            response.selected_option_id,
            data=response.data,
            feedback=response.feedback,
        )

    async def _sealed(
        self, request: InteractionRequest, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The same with references for what is secret: that goes to an endpoint of its own."""
        sealed = dict(values)
        for field in request.form.fields:
            raw = sealed.get(field.name)
            if field.type is FieldType.SECRET and isinstance(raw, str) and not is_reference(raw):
                keep = self.client.interactions.keep_secret
                sealed[field.name] = await keep(request.request_id, field.name, raw)
        return sealed

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse
    ) -> Outcomes:
        told = await self.client.interactions.answer_all(
            question_ids,
            response.selected_option_id,
            data=response.data,
            feedback=response.feedback,
        )
        return {one["requestId"]: _refusal(one) for one in told["outcomes"]}

    async def resume(self, run_id: str, failed: AfterFailure | None = None) -> None:
        match await self.state(run_id):
            case PlanState():
                await self.client.instances.resume(run_id)
            case ConversationState():
                await self.client.conversations.resume(run_id, failed=failed)
            case _:
                await self.client.chats.resume(run_id)

    async def cancel(self, run_id: str, reason: str) -> None:
        match await self.state(run_id):
            case PlanState():
                await self.client.instances.cancel(run_id, reason=reason)
            case ConversationState():
                await self.client.conversations.cancel(run_id, reason=reason)
            case _:
                await self.client.chats.cancel(run_id, reason=reason)

    async def runner(self, state: ConversationState) -> ConversationRunner | None:
        """The server pursues its conversations itself."""
        return None

    async def partner(self, wanted: str | None) -> Partner:
        known = {one["agent_id"]: one for one in (await self.client.agents.list())["agents"]}
        if not known:
            raise NotFound(f"{self._address.url} has no agent that you may talk to")
        agent_id = wanted or the_only_agent(sorted(known))
        agent = known.get(agent_id) or await self.client.agents.get(agent_id)
        return Partner(agent_id, agent["name"] or agent_id)

    async def open_chat(self, agent_id: str) -> str:
        return str((await self.client.chats.open(agent_id))["sessionId"])

    async def say(self, session_id: str, message: str) -> None:
        await self.client.chats.say(session_id, message)


def _refusal(told: Mapping[str, Any]) -> HoldfastError | None:
    return None if told["problem"] is None else refusal_in(told["problem"])
