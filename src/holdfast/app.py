"""`Holdfast`: one application — its tools, its plans, its journal and its engine.

    app = Holdfast()

    @app.tool(idempotent=True)
    async def grant_access(employee_id: str) -> dict: ...

    app.load_plans("plans/")

    async with app:
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await instance.wait_for_completion()

Nothing is opened before `async with`; a home directory belongs to one process. What only some
programs need (YAML, HTTP tools, the server) is imported by the methods that need it, so that
`import` is quick.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from holdfast.agents.declarations import Declarations
from holdfast.agents.sessions import AgentSessionHub
from holdfast.core.run.state import RunState
from holdfast.errors import AuthorError, NotFound, PlanRejected, Problem
from holdfast.i18n.message import msg, term
from holdfast.interactions.handlers import Handlers
from holdfast.journal.home import DATABASE, database_url, default_home
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal, QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.journal.shared import SharedJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.journal.vault import Vault, key_source
from holdfast.language.strict import strict_json, strict_text
from holdfast.model import commands as c
from holdfast.model.agent import Agent
from holdfast.model.interaction import InteractionResponse
from holdfast.model.plan import Plan
from holdfast.model.values import JsonObject
from holdfast.plans.drafts import Drafts
from holdfast.plans.module import PlanModule, PlannerAgent
from holdfast.plans.repairs import Repairer
from holdfast.runs.handles import AgentSession, ConversationRun, PlanInstance, opened
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.collector import COLLECTOR
from holdfast.runtime.engine import CONCURRENCY, Engine
from holdfast.runtime.executor import FaultPoints, Worker
from holdfast.runtime.identity import LOCAL
from holdfast.settings.sources import in_effect
from holdfast.source.check import Catalog
from holdfast.work.agents import AgentWorker
from holdfast.work.driver import TaskDriver
from holdfast.work.models import ModelClient
from holdfast.work.sandbox import Sandbox, check_snippet
from holdfast.work.tools import PythonTool, Tool, ToolRegistry

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic_ai.models import Model

    from holdfast.runs.driving import Pursue, RunDriver
    from holdfast.runtime.dispatch import Dispatcher
    from holdfast.server.settings import ServerSettings
    from holdfast.work.http_tools import HttpClients
    from holdfast.work.knowledge import Knowledge

Function = TypeVar("Function", bound=Callable[..., Any])

ALL_RUNS = RunQuery()
OPEN_QUESTIONS = QuestionQuery(status=frozenset({"open"}))


GRACE = 10.0
"""How many seconds what is in flight may take to end when the application closes."""


class Holdfast:
    def __init__(
        self,
        home: str | Path | None = None,
        *,
        journal: Journal | None = None,
        database: str | None = None,
        drives: bool = True,
        concurrency: int = CONCURRENCY,
        clock: Clock | None = None,
        max_retry_count: int = 3,
        max_effects: int = 64,
        model: str | Model | ModelClient | None = None,
        rules: Sequence[str] = (),
        knowledge: Knowledge | None = None,
        planner_agent: PlannerAgent | None = None,
        driver: Callable[[ToolRegistry, Sandbox], TaskDriver] = TaskDriver,
        faults: FaultPoints | None = None,
        four_eyes: bool | None = None,
        tune_collector: bool = True,
    ) -> None:
        """`database` names a PostgreSQL that many processes may share; without it, and without
        HOLDFAST_DATABASE, there is a SQLite file in `home`. `drives` says whether this process
        drives runs of a shared database, at most `concurrency` at a time, or only decides."""
        self.home = Path(home) if home is not None else default_home()
        self.journal = journal or _journal(self.home, database)
        self.drives, self.concurrency, self.grace = drives, concurrency, GRACE
        clock = clock or SystemClock()
        self.vault = Vault(self.journal, key_source(self.journal), clock)
        self.tools = ToolRegistry(secrets=self.vault)
        self.sandbox = Sandbox()
        self.task_driver = driver(self.tools, self.sandbox)
        planner = planner_agent or PlannerAgent(max_retry_count=max_retry_count)
        self.models = _models(model)
        self.rules = (rules,) if isinstance(rules, str) else tuple(rules)
        self.knowledge = knowledge
        agents = AgentWorker(self.tools, self.models, self._agent)
        self.engine = Engine(
            self.journal,
            Worker(self.task_driver, agents),
            planner,
            clock=clock,
            max_effects=max_effects,
            faults=faults,
            four_eyes=in_effect().value("four_eyes") if four_eyes is None else four_eyes,
            concurrency=concurrency,
        )
        self.dispatcher: Dispatcher | None = None
        self._driver: RunDriver | None = None
        self.pursue: Pursue | None = None
        """What moves conversations that workers drive; the server has one."""
        if planner.llm_client is None:
            planner.llm_client = self.models
        self.task_driver.states = self.engine.state
        self.plans = PlanModule(self.engine, planner, self.vault, self.task_driver)
        planner.repairer = repairer = Repairer(self.engine, self.tools, self.catalog)
        self.plans.drafts = drafts = Drafts(
            self.engine, self.tools, repairer.surroundings, self.catalog, planner.thinker
        )
        self.tools.add_ours(*drafts.tools())
        self.interactions = Handlers()
        self.sessions = AgentSessionHub(self.engine, self.interactions, self.vault)
        self.is_open = False
        self.tunes_collector = tune_collector
        self._served: list[FastAPI] = []
        self._clients: HttpClients | None = None
        self._declarations = Declarations(self.engine.definitions, self.tools)

    @classmethod
    def in_memory(cls, **options: Any) -> Self:
        """An application whose journal ends with it: for tests and first steps."""
        return cls(journal=MemoryJournal(), **options)

    @property
    def place(self) -> str:
        """Where its runs are kept, for people to read."""
        return getattr(self.journal, "place", None) or str(self.home)

    @property
    def planner_agent(self) -> PlannerAgent:
        return self.plans.planner_agent

    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        idempotent: bool | None = None,
        approval: object = "auto",
        timeout: float | None = None,
        read_only: bool | None = None,
        version: str = "",
        replace: bool = False,
        fields: object = None,
        returns: JsonObject | None = None,
    ) -> Any:
        """Register a function as a tool; its signature is its schema.

        The same again (a notebook's cell) is welcome; `replace` takes another one of its name.
        `fields` says how a person is asked for arguments, as a plan's `fields` does, `returns` is a
        schema of the results, for rehearsals.
        """

        def register(function: Function) -> Function:
            tool = PythonTool.from_function(
                function,
                name=name,
                idempotent=idempotent,
                approval=approval,
                timeout=timeout,
                read_only=read_only,
                version=version,
                fields=fields,
                returns=returns,
            )
            self._add_tools(tool, replace=replace)
            return function

        return register if function is None else register(function)

    def on_alert(self, function: Function) -> Function:
        """Have a function, async or not, told of each `Alert`; no run waits for it."""
        self.engine.learning.on_alert(function)
        return function

    def load_tools(
        self, path: str | Path, env: Mapping[str, str] | None = None, *, replace: bool = False
    ) -> None:
        """HTTP tools declared in a YAML file under `tools:`; `replace` as for `tool`."""
        from holdfast.work.http_tools import HttpClients, load_http_tools

        declared = _declared_tools(Path(path))
        environment = os.environ if env is None else env
        self._clients = self._clients or HttpClients()
        self._add_tools(*load_http_tools(declared, environment, self._clients), replace=replace)

    def _add_tools(self, *tools: Tool, replace: bool) -> None:
        for tool in tools:
            self._declarations.check_tool(tool.spec)
        self.tools.add(*tools, replace=replace)

    def agent(
        self,
        agent_id: str,
        *,
        approval: Mapping[str, object] | object = None,
        **declared: Any,
    ) -> Agent:
        """Declare an agent; `approval` is a rule for all its tools, or rules by tool.

        AuthorError has all that is wrong. Tools and agents that it names may follow later;
        a session is opened when all are there.
        """
        return self._declarations.declare(agent_id, approval, declared)

    def load_agents(self, path: str | Path) -> list[Agent]:
        """Agents declared in a YAML file, or in all of a directory's, which may name each other."""
        return self._declarations.load(Path(path))

    def _agent(self, agent_id: str) -> Agent:
        return self.engine.definitions.agent(agent_id).agent

    def add_plan(self, plan: Plan) -> None:
        """A plan built in Python; `check` it first if it is not yours."""
        self.engine.definitions.add(plan)

    def load_plan_text(self, text: str, file: str = "<plan>") -> Plan:
        """Read and check a plan; PlanRejected has every mistake with its place."""
        from holdfast.source.planfile import load_plan

        plan = load_plan(text, file, self.catalog())
        self.engine.definitions.add(plan)
        return plan

    def load_plans(self, directory: str | Path) -> list[Plan]:
        """All plans of a directory, or one file; nothing is loaded if any is wrong."""
        from holdfast.source.planfile import load_plan

        root = Path(directory)
        files = sorted([*root.glob("*.yaml"), *root.glob("*.yml")]) if root.is_dir() else [root]
        names = [_plan_id(file) for file in files]
        catalog = self.catalog(also=[name for name in names if name])
        plans: list[Plan] = []
        problems: list[Problem] = []
        for file in files:
            try:
                plans.append(load_plan(file.read_text(encoding="utf-8"), str(file), catalog))
            except PlanRejected as rejected:
                problems += rejected.problems
        if problems:
            raise PlanRejected(problems)
        for plan in plans:
            self.engine.definitions.add(plan)
        return plans

    def catalog(self, also: Sequence[str] = ()) -> Catalog:
        """What plans may refer to here."""
        specs = self.tools.specs()
        return Catalog(
            tools={spec.name: spec.parameters for spec in specs},
            read_only=frozenset(spec.name for spec in specs if spec.read_only),
            agents=frozenset(self.engine.definitions.agent_ids()),
            plans=frozenset([*self.engine.definitions.plan_ids(), *also]),
            snippet_checker=check_snippet,
        )

    async def __aenter__(self) -> Self:
        if self.journal.shared:
            cast(SharedJournal, self.journal).role = "worker" if self.drives else "server"
        await self.journal.open()
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.journal.close)
            await self.vault.confirm()
            undo.push_async_callback(self.engine.stop_looking)
            await self.engine.open()
            self.dispatcher = await self._dispatching()
            undo.pop_all()
        if self.tunes_collector:
            COLLECTOR.opened()
        self.is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.is_open = False
        if self.tunes_collector:
            COLLECTOR.closed()
        async with AsyncExitStack() as stops:  # all of them, though one be broken off
            stops.push_async_callback(self.journal.close)
            stops.callback(self.sandbox.close)
            stops.push_async_callback(self.models.aclose)
            if self._clients is not None:
                stops.push_async_callback(self._clients.aclose)
            stops.push_async_callback(self.planner_agent.close)
            stops.push_async_callback(self._stop_dispatching)
            if self.dispatcher is not None:
                self.dispatcher.drain()
            stops.push_async_callback(self.engine.close, self.grace)
            if self._driver is not None:
                await self._driver.drain()

    async def _stop_dispatching(self) -> None:
        if self.dispatcher is not None:
            await self.dispatcher.close()
            self.dispatcher = None

    async def _dispatching(self) -> Dispatcher | None:
        """What gives this process runs to drive, where others may have them."""
        if not (self.drives and self.journal.shared):
            return None
        from holdfast.journal.postgres import PostgresJournal
        from holdfast.runs.driving import RunDriver
        from holdfast.runtime.dispatch import Dispatcher

        assert isinstance(self.journal, PostgresJournal)
        assert self.engine.drives is not None
        self.engine.drives.most = self.concurrency
        self._driver = driver = RunDriver(self.engine, self.tools, lambda: self.pursue)
        clock = self.engine.clock.now
        dispatcher = Dispatcher(self.journal, self.journal.direct, driver, clock, self.concurrency)
        await dispatcher.open()
        return dispatcher

    def asgi(self, settings: ServerSettings | None = None) -> FastAPI:
        """This application over HTTP, to be served, or mounted into another application.

        Served by itself it opens with the server. Mounted it hears nothing of the other
        application's start: that one is made with `FastAPI(lifespan=app.lifespan)`.
        """
        # Imported when it is wanted: most of what is done here needs no server.
        from holdfast.server import create

        served = create(self, settings)
        self._served.append(served)
        return served

    @asynccontextmanager
    async def lifespan(self, host: object = None) -> AsyncIterator[None]:
        """The lifespan of an application that has this one mounted, or a part of it.

        Opens this application, unless it is open, and all that `asgi` has made: whatever a
        process that fell left behind goes on, before any request.
        """
        async with AsyncExitStack() as stack:
            if not self.is_open:
                await stack.enter_async_context(self)
            for one in self._served:
                await stack.enter_async_context(one.router.lifespan_context(one))
            yield

    async def instance(self, instance_id: str) -> PlanInstance:
        found = await self.plans.get_plan_instance(instance_id)
        if found is None:
            raise NotFound(msg("there is no {kind} {name}", kind=term("run"), name=instance_id))
        return found

    async def runs(self, query: RunQuery = ALL_RUNS) -> list[RunRow]:
        """A page of runs, the newest first."""
        return await self.journal.runs(query)

    async def inbox(self, query: QuestionQuery = OPEN_QUESTIONS) -> list[QuestionRow]:
        """Questions that wait for a person, the oldest first."""
        return await self.journal.questions(query)

    async def answer(
        self,
        question_id: str,
        *,
        option_id: str | None = None,
        data: Mapping[str, Any] | None = None,
        feedback: str | None = None,
        by: str = LOCAL,
    ) -> PlanInstance | AgentSession | ConversationRun:
        """The first valid answer wins; the same one again changes nothing."""
        response = InteractionResponse(
            question_id, selected_option_id=option_id, data=data or {}, feedback=feedback
        )
        return self._opened(await self.sessions.answer(response, by=by))

    async def keep_draft(
        self, question_id: str, data: Mapping[str, Any], *, by: str = LOCAL
    ) -> None:
        """What a person has filled in so far; it is no answer, and is gone with the answer."""
        await self.sessions.keep_draft(question_id, data, by=by)

    async def cancel(
        self, instance_id: str, *, by: str = LOCAL, reason: str = ""
    ) -> PlanInstance | AgentSession | ConversationRun:
        command = c.Cancel(strict_text(by, "by"), strict_text(reason, "reason"))
        return self._opened(await self.engine.submit(instance_id, command))

    async def resume(
        self, instance_id: str, *, by: str = LOCAL
    ) -> PlanInstance | AgentSession | ConversationRun:
        return self._opened(await self.engine.submit(instance_id, c.Resume(strict_text(by, "by"))))

    async def skip(
        self, instance_id: str, listener_id: str, *, by: str = LOCAL, reason: str = ""
    ) -> PlanInstance:
        command = c.Skip(listener_id, strict_text(by, "by"), strict_text(reason, "reason"))
        return await self._command(instance_id, command)

    async def mark_done(
        self,
        instance_id: str,
        task_id: str,
        *,
        context: Mapping[str, Any] | None = None,
        by: str = LOCAL,
    ) -> PlanInstance:
        values = strict_json(dict(context or {}))
        return await self._command(instance_id, c.MarkDone(task_id, strict_text(by, "by"), values))

    async def edit_context(
        self, instance_id: str, task_id: str, context: Mapping[str, Any], *, by: str = LOCAL
    ) -> PlanInstance:
        values = strict_json(dict(context))
        return await self._command(
            instance_id, c.EditContext(task_id, values, strict_text(by, "by"))
        )

    async def rerun_from(
        self, instance_id: str, listener_id: str, *, by: str = LOCAL
    ) -> PlanInstance:
        return await self._command(instance_id, c.RerunFrom(listener_id, strict_text(by, "by")))

    async def _command(self, instance_id: str, command: c.Command) -> PlanInstance:
        return PlanInstance(self.engine, await self.engine.submit(instance_id, command))

    def _opened(self, state: RunState) -> PlanInstance | AgentSession | ConversationRun:
        return opened(self.engine, state)


def _journal(home: Path, database: str | None) -> Journal:
    url = database_url() if database is None else database
    if not url:
        return SqliteJournal(home / DATABASE)
    from holdfast.journal.postgres import PostgresJournal

    return PostgresJournal(url)


def _models(model: str | Model | ModelClient | None) -> ModelClient:
    if isinstance(model, ModelClient):
        return model
    client = ModelClient.from_environment()
    if model is not None:
        client.default_model = model
    return client


def _declared_tools(file: Path) -> list[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise AuthorError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    declared = document.get("tools") if isinstance(document, dict) else document
    if not isinstance(declared, list):
        raise AuthorError(f"{file} declares no tools: write them as a list under `tools:`")
    return declared


def _plan_id(file: Path) -> str | None:
    """The id a file will have, so that plans of one directory may name each other."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("plan_id:"):
            return line.partition(":")[2].strip().strip("'\"")
    return None
