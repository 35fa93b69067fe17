"""The backend of a server: its runs are driven there, read and commanded from here.

What is shown is what the server tells: views of runs, timelines and questions, as JSON. The
journal itself stays with the server, so client and server may be of different versions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from holdfast.cli.backend import Outcomes, OwnPatch, Partner, Updates, the_only_agent
from holdfast.cli.loading import is_plan_file
from holdfast.cli.shell import Address
from holdfast.client import Client
from holdfast.client.problems import refusal_in
from holdfast.core.storing import record_from_json
from holdfast.errors import (
    HoldfastError,
    InternalError,
    NotAllowed,
    NotFound,
    NotPermitted,
    OperatorError,
    ServerTooOld,
    Unauthenticated,
)
from holdfast.forms.secrets import is_reference
from holdfast.interactions.cards import camel, request_from_wire
from holdfast.model.conversation import AfterFailure
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest, InteractionResponse, InteractionStatus
from holdfast.model.plan import Plan
from holdfast.model.repair import Proposal
from holdfast.model.rows import QuestionQuery, RunQuery, RunRow
from holdfast.model.run import JOURNAL_KINDS, KINDS, RunKind
from holdfast.runtime.hub import AskedBelow, Spoken
from holdfast.views.records import (
    CaseView,
    InteractionView,
    Raised,
    RunLine,
    RunView,
    TimelineEntry,
    run_line,
)
from holdfast.views.wire import from_json

if TYPE_CHECKING:
    from holdfast.conversations.runner import ConversationRunner

PATIENCE = 5.0
"""Seconds that a command tries to reach a server which does not answer."""

CATCH_UP = 0.05
PAGE = 200
TIMELINE_PAGE = 500

_UPGRADE = (
    f"upgrade the server to Holdfast {version('holdfast')}, or use the holdfast command of the "
    "server's own release (`holdfast --version` there)"
)

Told = Mapping[str, Any]
V = TypeVar("V")

_REQUEST = (
    "request_id",
    "session_id",
    "type",
    "title",
    "message",
    "details",
    "context",
    "options",
    "required",
    "timeout_seconds",
    "default_option_id",
    "role",
    "reminders",
    "escalate_after",
    "escalate_to",
    "custom_type",
    "form",
)


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Client]:
    """A client; where it is not let in, the error says where the token is taken from."""
    try:
        async with Client(address.url, address.token(), patience=PATIENCE) as client:
            yield client
    except Unauthenticated as error:
        raise Unauthenticated(
            f"{address.url}: {error}; the token is taken from $HOLDFAST_TOKEN or --token-file"
        ) from None
    except ServerTooOld as error:
        raise ServerTooOld(f"{address.url}: {error}; {_UPGRADE}") from None
    except InternalError as error:
        raise OperatorError(f"{address.url}: {error}") from None


class ServerBackend:
    look_again = 1.0
    is_elsewhere = True
    is_shared = True
    keeps_runs = True

    def __init__(self, address: Address, language: str = "en") -> None:
        self._address = address
        self._language = language
        self._client: Client | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with connected(self._address) as self._client:
            yield

    @property
    def client(self) -> Client:
        assert self._client is not None, "the backend is opened first"
        return self._client

    def is_driven(self) -> bool:
        return True

    async def runs(self, query: RunQuery) -> list[RunLine]:
        def page(before: str | None, limit: int) -> Awaitable[Told]:
            return self.client.runs.list(
                kind=None if query.kind is None else KINDS[query.kind],
                status=None if query.status is None else sorted(query.status),
                name=query.name,
                parent=query.parent_id,
                roots=query.roots_only,
                before=before,
                limit=limit,
            )

        return [_line(one) for one in await _listed("runs", page, query.before, query.limit)]

    async def _require_views(self) -> None:
        """Before something is begun that could not be shown."""
        with suppress(NotFound, NotPermitted):
            try:
                await self.client.runs.view("none")
            except ServerTooOld as error:
                raise ServerTooOld(f"nothing was begun; {error}") from None

    async def run(self, run_id: str) -> RunView:
        return _read(RunView, await self.client.runs.view(run_id, language=self._language))

    async def is_newest(self, run_id: str, version: int) -> bool:
        """The server may have told an event a moment before its engine knows of it."""
        newest = int((await self.client.runs.get(run_id))["version"])
        if newest < version:
            await asyncio.sleep(CATCH_UP)
            return await self.is_newest(run_id, version)
        return newest == version

    async def questions(self, query: QuestionQuery) -> list[InteractionView]:
        def page(after: str | None, limit: int) -> Awaitable[Told]:
            return self.client.interactions.list(
                status=None if query.status is None else sorted(query.status),
                role=query.role,
                run=query.run_id or query.root_id,
                due_before=query.due_before,
                after=after,
                limit=limit,
            )

        found = await _listed("interactions", page, query.after, query.limit)
        return [_question(one) for one in found]

    async def inbox(self, query: QuestionQuery) -> list[InteractionView]:
        return await self.questions(query)

    async def question(self, question_id: str) -> InteractionView | None:
        try:
            told = await self.client.interactions.get(question_id)
        except NotFound:
            return None
        draft = told.get("draft")
        drafts = {} if draft is None else {str((await self.client.me())["id"]): draft}
        return replace(_question(told), drafts=drafts, reminded=told.get("reminded", 0))

    async def open_questions(self, run_id: str) -> list[InteractionView]:
        query = QuestionQuery(status=frozenset({"open"}), root_id=run_id, limit=100_000)
        return await self.questions(query)

    async def cases(self, run_id: str) -> list[CaseView]:
        told = await self.client.instances.cases(run_id, language=self._language)
        return [_read(CaseView, _case(one)) for one in told["cases"]]

    async def timeline(self, run_id: str) -> list[TimelineEntry]:
        found: list[TimelineEntry] = []
        after: int | None = 0
        while after is not None:
            page = await self.client.runs.timeline(
                run_id, after=after, limit=TIMELINE_PAGE, language=self._language
            )
            found += [_read(TimelineEntry, one) for one in page["entries"]]
            after = page["next"]
        return found

    async def tracebacks(self, run_id: str) -> list[Raised]:
        try:
            told = await self.client.runs.tracebacks(run_id)
        except NotPermitted:
            return []
        names = told.get("names", {})
        return [
            _read(Raised, {"name": names.get(one["step_id"], one["step_id"]), **one})
            for one in told["tracebacks"]
        ]

    async def graph(self, run_id: str, *, svg: bool) -> tuple[str, str]:
        run = await self.run(run_id)
        if run.plan is None:
            raise NotAllowed(f"{run_id} is no run of a plan")
        instances = self.client.instances
        drawn = await (instances.graph if svg else instances.graph_text)(run_id)
        return run.plan.plan_id, drawn

    async def follow(self, run_id: str, after: int = 0, *, views: bool = False) -> Updates:
        following = self.client.timeline(
            run_id, after or None, views=views, language=self._language
        )
        async with aclosing(following) as told:
            async for event in told:
                match event.type:
                    case "entry":
                        yield _read(TimelineEntry, event.data)
                    case "view":
                        yield _read(RunView, event.data)
                    case "Spoken":
                        yield Spoken(event.data["began"], event.data["text"])
                    case "INTERACTION":
                        yield AskedBelow()

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        """The server has its own."""

    async def plan(self, name: str) -> Plan:
        if is_plan_file(name):
            raise NotAllowed(f"{name} is a file here: a server runs the plans that it has, by id")
        async with connected(self._address) as client:
            told = await client.plans.get(name)
        return record_from_json(Plan, told["definition"])

    async def start(self, plan_id: str, prompt: str, values: Mapping[str, Any]) -> str:
        await self._require_views()
        started = await self.client.instances.start(prompt, plan_id=plan_id, values=values)
        return str(started["id"])

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        sealed = dict(values)
        for one in await self.open_questions(run_id):
            sealed = await self._sealed(one.request, sealed)
        await self.client.instances.continue_with(run_id, sealed)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def answer(self, response: InteractionResponse) -> None:
        asked = await self.question(response.request_id)
        if asked is not None and asked.is_open:
            response = replace(response, data=await self._sealed(asked.request, response.data))
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
        await self.client.runs.resume(run_id, failed=failed)

    async def cancel(self, run_id: str, reason: str) -> None:
        await self.client.runs.cancel(run_id, reason=reason)

    async def rehearsed(self, run_id: str, patch: OwnPatch) -> Proposal:
        rehearse, language = self.client.instances.rehearse, self._language
        told = await rehearse(run_id, patch.operations, **_more(patch), language=language)
        return _read(Proposal, _proposal(told["proposal"]))

    async def propose(self, run_id: str, patch: OwnPatch) -> str | None:
        propose = self.client.instances.propose
        told = await propose(run_id, patch.operations, **_more(patch))
        return _read(CaseView, _case(told["case"])).question_id

    async def fork(self, run_id: str, seq: int) -> str:
        return str((await self.client.instances.fork(run_id, seq))["id"])

    async def runner(self, run_id: str) -> ConversationRunner | None:
        """The server carries its conversations on itself."""
        return None

    async def partner(self, wanted: str | None) -> Partner:
        known = {one["agent_id"]: one for one in (await self.client.agents.list())["agents"]}
        if not known:
            raise NotFound(f"{self._address.url} has no agent that you may talk to")
        agent_id = wanted or the_only_agent(sorted(known))
        agent = known.get(agent_id) or await self.client.agents.get(agent_id)
        return Partner(agent_id, agent["name"] or agent_id)

    async def open_chat(self, agent_id: str) -> str:
        await self._require_views()
        return str((await self.client.chats.open(agent_id))["sessionId"])

    async def say(self, session_id: str, message: str) -> None:
        await self.client.chats.say(session_id, message)


async def _listed(
    name: str, page: Callable[[str | None, int], Awaitable[Told]], place: str | None, limit: int
) -> list[Told]:
    """Pages of a list from a place on, until there is no more or `limit` were told."""
    found: list[Told] = []
    while len(found) < limit:
        told = await page(place, min(limit - len(found), PAGE))
        found += told[name]
        place = told["next"]
        if place is None:
            break
    return found


def _read(kind: type[V], told: Told) -> V:
    try:
        return from_json(kind, told)
    except ValidationError as error:
        raise ServerTooOld(
            f"the server's answer is not of a form that this client reads ({error.errors()[0]})"
        ) from None


def _line(told: Told) -> RunLine:
    """As a home's own row: what the server leaves empty is left out."""
    summary = {name: value for name, value in told["summary"].items() if value is not None}
    return run_line(
        RunRow(
            run_id=told["id"],
            kind=JOURNAL_KINDS[RunKind(told["kind"])],
            name=told["name"],
            definition="",
            status=told["status"],
            active=False,
            wake_at=None,
            root_id=told["root_id"],
            parent_id=told["parent_id"],
            created_at=told["created_at"],
            updated_at=told["updated_at"],
            title=told["title"],
            summary=json.dumps(summary),
        )
    )


def _question(told: Told) -> InteractionView:
    request = _request(told)
    return InteractionView(
        question_id=request.request_id,
        run_id=told["runId"],
        root_id=told["rootId"],
        status=InteractionStatus(told["status"]),
        type=request.type,
        title=request.title,
        role=told["role"],
        opened_at=told["openedAt"],
        deadline=told["deadline"],
        closed_at=told["closedAt"],
        request=request,
        about=told.get("about", ""),
        why_not=told.get("mayNotBecause") or "",
        why_not_approve=told.get("mayNotApproveBecause") or "",
    )


def _request(told: Told) -> InteractionRequest:
    named = {camel(name): told.get(camel(name)) for name in _REQUEST}
    return request_from_wire({name: value for name, value in named.items() if value is not None})


def _more(patch: OwnPatch) -> dict[str, Any]:
    return {
        "reason": patch.reason,
        "listener_id": patch.listener_id or None,
        "to_current": patch.operations is None,
    }


def _case(told: Told) -> Told:
    proposal = told["proposal"]
    shaped = None if proposal is None else _proposal(proposal)
    return {**told, "question_id": told["interaction_id"], "proposal": shaped}


def _proposal(told: Told) -> Told:
    """The API has the patch, its verdict and its words in one object."""
    shown = {**told["shown"], "words": told["words"]}
    return {"patch": told, "verdict": told, "shown": shown}


def _refusal(told: Told) -> HoldfastError | None:
    return None if told["problem"] is None else refusal_in(told["problem"])
