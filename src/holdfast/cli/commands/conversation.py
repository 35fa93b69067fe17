"""A conversation: begun, shown while it is carried on, left and taken up again.

It is durable and this process is not. In a terminal it is a board of tasks with keys, without one
lines, and with --json each event as its consumers see it, one object per line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.app import Holdfast
from holdfast.cli.commands.failure_choice import checked_choice
from holdfast.cli.driver import Driver
from holdfast.cli.home_backend import HomeBackend
from holdfast.cli.shell import OK, Settings
from holdfast.cli.terminal.plain import note, print_json_line
from holdfast.cli.terminal.progress import Display, Point, Silence, display_of
from holdfast.cli.terminal.report import NOT_KEPT, exit_code, say_report, way_on
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.task_board import TaskBoard
from holdfast.conversations.engine import ConversationEngine
from holdfast.conversations.runner import ConversationRunner, Left, lacks_model, model_of
from holdfast.conversations.workers import coordinator_of
from holdfast.errors import NotAllowed, NotFound
from holdfast.interactions.cards import request_to_wire
from holdfast.language.instants import iso
from holdfast.model.conversation import AfterFailure, ConversationSettings, EngineEventType
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_conversation
from holdfast.views.records import ConversationView, InteractionView, RunView, TimelineEntry
from holdfast.views.stories.text import visible
from holdfast.work.knowledge import Knowledge

NO_MODEL = (
    "no model is configured (HOLDFAST_MODEL, --model): the goal becomes one task, and is not done"
)

_AT_REST = frozenset({RunStatus.DONE, RunStatus.ERROR})


@dataclass(frozen=True, slots=True)
class ConverseOptions:
    """What the command line gives a conversation; `spelled` has the same as options."""

    rules: tuple[str, ...] = ()
    knowledge: Knowledge | None = None
    model: str | None = None
    max_parallel: int | None = None
    on_failure: str | None = None
    confirm_tasks: bool | None = None
    failed: AfterFailure | None = None
    spelled: str = ""

    def settings(self) -> dict[str, Any]:
        given = {
            "max_parallel": self.max_parallel,
            "on_failure": self.on_failure,
            "confirm_tasks": self.confirm_tasks,
        }
        return {name: value for name, value in given.items() if value is not None}

    def refuse_change(self, run_id: str, pinned: ConversationSettings) -> None:
        """A conversation keeps the settings that it was begun with."""
        for name, value in self.settings().items():
            if getattr(pinned, name) != value:
                option = f"--{name.replace('_', '-')}"
                kept = getattr(pinned, name)
                raise NotAllowed(f"{run_id} was begun with {option} {kept}: leave {option} out")


class EventLines(Silence):
    """Every event of a conversation as its consumer sees it, one JSON object per line."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._asked: set[str] = set()

    def show(self, entry: TimelineEntry) -> None:
        if entry.narrated is not None:
            told = entry.narrated
            self._print(str(told["type"]), told["data"], entry.seq, entry.at)

    def show_open(self, questions: Sequence[InteractionView]) -> None:
        """What sub-runs ask, and what was asked before the command began."""
        for one in questions:
            if one.question_id not in self._asked:
                data = request_to_wire(one.request)
                self._print(EngineEventType.INTERACTION.value, data, None, one.opened_at)

    def _print(self, kind: str, data: Mapping[str, Any], seq: int | None, at: float | None) -> None:
        if kind == EngineEventType.INTERACTION.value:
            self._asked.add(str(data["requestId"]))
        print_json_line(
            {
                "event_type": kind,
                "data": dict(data),
                "seq": seq,
                "at": None if at is None else iso(at),
                "conversation_id": self._run_id,
            }
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    app: Holdfast
    settings: Settings
    options: ConverseOptions

    @property
    def _backend(self) -> HomeBackend:
        return HomeBackend(self.app, language=self.settings.language)

    async def new(self, text: str) -> int:
        self._mention_model()
        engine = ConversationEngine(app=self.app, **self._given())
        return await self._see(ConversationRunner(self.app, engine), None, text)

    async def go_on(self, run_id: str, text: str | None, *, anyway: bool) -> int:
        if not await self._backend.views.version(run_id):
            return await self._begin_as(run_id, text)
        run, view = await self._read(run_id)
        pinned = as_conversation(await self.app.engine.state(run_id)).settings
        self.options.refuse_change(run_id, pinned)
        refuse_misplaced(run, view, text, self.options.failed, self.settings.repeated)
        goes_on = run.status not in _AT_REST or self.options.failed is not None
        if goes_on:
            await self._backend.refuse_without_tools(run_id, anyway=anyway)
        await self._refuse_without_model(run, view, anyway)
        if run.status is RunStatus.ERROR:
            chosen = self.options.failed or AfterFailure.STOP
            self._mention(f"{run_id} failed ({visible(run.error)}); {_told(view, chosen)}")
            await self._backend.resume(run_id, chosen)
        return await self._see(await self._opened(run_id), run, None if goes_on else text)

    async def _begin_as(self, run_id: str, text: str | None) -> int:
        """A new conversation, under a name of the person's own."""
        if text is None:
            raise NotFound(f"there is no conversation {run_id}: say what is wanted to begin it")
        runner = await self._opened(run_id)
        self._mention_model()
        return await self._see(runner, None, text)

    async def _see(
        self, runner: ConversationRunner, before: RunView | None, text: str | None
    ) -> int:
        driver = Driver(self._backend, self.settings)
        try:
            await runner.begin(text)
            run = before or await driver.backend.run(runner.engine.id)
            display = self._display(runner, run)
            start = Point(run.run_id, 0) if before is None else Point.of(before)
            await driver.carry_on(runner, run, display, start)
        except Left:
            run = await driver.backend.run(runner.engine.id)
            how = f"to go on: {way_on(run, self._repeated)}"
            say(f"left as it is; {how if driver.backend.keeps_runs else NOT_KEPT}")
            return OK
        finally:
            await runner.leave()
        return await self._conclude(driver, run.run_id, display)

    async def _conclude(self, driver: Driver, run_id: str, display: Display) -> int:
        run = await driver.backend.run(run_id)
        questions = await driver.backend.open_questions(run_id)
        if isinstance(display, EventLines):
            display.show_open(questions)
        else:
            kept = driver.backend.keeps_runs
            say_report(run, questions, self.settings.repeated, kept=kept)
        return exit_code(run.status)

    def _display(self, runner: ConversationRunner, run: RunView) -> Display:
        if self.settings.as_json:
            return EventLines(run.run_id)
        if not self.settings.interactive:
            return display_of(self.settings, run)
        engine = runner.engine
        return TaskBoard(
            run,
            {"p": partial(engine.pause, when_possible=True), "r": engine.resume, "q": runner.quit},
        )

    async def _opened(self, run_id: str) -> ConversationRunner:
        engine = await ConversationEngine.open(self.app, run_id, **self._given())
        return ConversationRunner(self.app, engine)

    def _given(self) -> dict[str, Any]:
        return {
            "coordinator": coordinator_of(self.app, self.options.rules, self.options.knowledge),
            "llm": model_of(self.app, self.options.model),
            **self.options.settings(),
        }

    async def _read(self, run_id: str) -> tuple[RunView, ConversationView]:
        run = await self._backend.run(run_id)
        if run.conversation is None:
            raise NotFound(f"{run_id} is not a conversation")
        return run, run.conversation

    @property
    def _repeated(self) -> str:
        return self.settings.repeated + self.options.spelled

    async def _refuse_without_model(
        self, run: RunView, view: ConversationView, anyway: bool
    ) -> None:
        unfinished = run.status not in _AT_REST
        state = as_conversation(await self.app.engine.state(run.run_id))
        if unfinished and not anyway and lacks_model(self.app, state, self.options.model):
            raise NotAllowed(
                f"{run.run_id} has tasks for a model, and none is configured here: set "
                "HOLDFAST_MODEL, name one with --model, or say --anyway to leave them empty"
            )
        if not (unfinished and view.tasks):
            self._mention_model()

    def _mention_model(self) -> None:
        if model_of(self.app, self.options.model) is None:
            self._mention(NO_MODEL)

    def _mention(self, words: str) -> None:
        if not self.settings.as_json:
            note(words)


def _told(view: ConversationView, chosen: AfterFailure) -> str:
    match chosen:
        case AfterFailure.RETRY:
            return "what failed is tried again, and what is done stays done"
        case AfterFailure.SKIP:
            return f"it goes on without: {visible(', '.join(view.left_out))}"
        case AfterFailure.STOP:
            return "the next turn is told what was done"


def refuse_misplaced(
    run: RunView,
    view: ConversationView,
    text: str | None,
    failed: AfterFailure | None,
    options: str,
) -> None:
    """Words where none are awaited, or none where some are."""
    run_id = run.run_id
    if failed is AfterFailure.STOP:
        raise NotAllowed(f"to end the turn that failed: holdfast resume {run_id} --failed stop")
    if failed is not None and text is not None:
        raise NotAllowed(f"--failed {failed} goes on with the goal there is: leave the new one out")
    match run.status:
        case RunStatus.CANCELLING | RunStatus.CANCELLED:
            raise NotAllowed(f"{run_id} is cancelled: leave --id out to begin another one")
        case RunStatus.ERROR if text is None:
            checked_choice(run, failed)
            return
        case _ if failed is not None:
            checked_choice(run, failed)
        case RunStatus.DONE if text is None:
            raise NotAllowed(f"{run_id} has nothing left to do: say what is wanted next")
        case RunStatus.DONE | RunStatus.ERROR:
            return
    if text not in (None, view.text):
        raise NotAllowed(
            f"{run_id} is still at {visible(view.text)}: "
            f"`holdfast converse --id {run_id}{options}` goes on with that, "
            f"`holdfast cancel {run_id}{options}` ends it"
        )
