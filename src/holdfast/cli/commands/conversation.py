"""A goal: begun, shown while it is pursued, left and taken up again.

The conversation is durable and this process is not. In a terminal it is a board with keys,
elsewhere lines, and with --json each event as its consumers see it, one object per line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.app import Holdfast
from holdfast.cli.driver import Driver
from holdfast.cli.home_backend import HomeBackend
from holdfast.cli.required_tools import how_to_go_on, refuse_without_tools
from holdfast.cli.shell import OK, Settings
from holdfast.cli.terminal.plain import note, print_json_line
from holdfast.cli.terminal.progress import Silence, View, view_of
from holdfast.cli.terminal.report import NOT_KEPT, exit_code, say_standing, way_on
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.task_board import Board
from holdfast.conversations.engine import ConversationEngine
from holdfast.conversations.events import asked, narrate
from holdfast.conversations.runner import ConversationRunner, Left, lacks_model, model_of
from holdfast.conversations.workers import coordinator_of
from holdfast.core.conversation import recovery
from holdfast.core.conversation.decide import blank
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.builder import iso
from holdfast.core.run.state import RunState
from holdfast.errors import NotAllowed, NotFound
from holdfast.journal.port import QuestionRow
from holdfast.model.conversation import (
    AfterFailure,
    ConversationSettings,
    EngineEvent,
    EngineEventType,
)
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import Recorded
from holdfast.runtime.machines import as_conversation
from holdfast.views.stories.text import visible
from holdfast.work.knowledge import Knowledge

NO_MODEL = (
    "no model is configured (HOLDFAST_MODEL, --model): "
    "the goal becomes one task, and nobody does it"
)

_AT_REST = frozenset({RunStatus.DONE, RunStatus.ERROR})


@dataclass(frozen=True, slots=True)
class ConverseOptions:
    """What the command gives a conversation; `spelled` says it once more."""

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

    def __init__(self) -> None:
        self._asked: set[str] = set()

    def show(self, state: RunState, recorded: Recorded) -> None:
        assert isinstance(state, ConversationState)
        told = narrate(state, recorded.seq, recorded.at, recorded.event)
        if told is not None:
            self._print(state.run_id, told)

    def show_open(self, run_id: str, questions: Sequence[QuestionRow]) -> None:
        """What is asked by runs below, and what was asked before anybody looked."""
        for row in questions:
            if row.question_id not in self._asked:
                self._print(run_id, asked(row))

    def _print(self, run_id: str, event: EngineEvent) -> None:
        if event.event_type is EngineEventType.INTERACTION:
            self._asked.add(str(event.data["requestId"]))
        print_json_line(
            {
                "event_type": event.event_type.value,
                "data": dict(event.data),
                "seq": event.seq,
                "at": None if event.at is None else iso(event.at),
                "conversation_id": run_id,
            }
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    app: Holdfast
    settings: Settings
    means: ConverseOptions

    async def new(self, text: str) -> int:
        self._mention_model()
        engine = ConversationEngine(app=self.app, **self._given())
        return await self._see(ConversationRunner(self.app, engine), None, text)

    async def go_on(self, run_id: str, text: str | None, *, anyway: bool) -> int:
        if not await self.app.journal.version(run_id):
            return await self._begin_as(run_id, text)
        state = await self._state(run_id)
        self.means.refuse_change(run_id, state.settings)
        refuse_misplaced(state, text, self.means.failed, self.settings.repeated)
        goes_on = state.status not in _AT_REST or self.means.failed is not None
        if goes_on:
            await refuse_without_tools(self.app, run_id, anyway=anyway)
        self._refuse_without_model(state, anyway)
        if state.status is RunStatus.ERROR:
            chosen = self.means.failed or AfterFailure.STOP
            self._mention(f"{run_id} failed ({visible(state.error)}); {_told(state, chosen)}")
            await HomeBackend(self.app).resume(run_id, chosen)
        return await self._see(await self._opened(run_id), state, None if goes_on else text)

    async def _begin_as(self, run_id: str, text: str | None) -> int:
        """A new conversation, under a name of the person's own."""
        if text is None:
            raise NotFound(f"there is no conversation {run_id}: say what is wanted to begin it")
        runner = await self._opened(run_id)
        self._mention_model()
        return await self._see(runner, None, text)

    async def _see(
        self, runner: ConversationRunner, before: ConversationState | None, text: str | None
    ) -> int:
        driver = Driver(HomeBackend(self.app), self.settings)
        try:
            await runner.begin(text)
            run_id = runner.engine.id
            before = before or await self._blank(run_id)
            view = self._view(runner, before)
            await driver.pursue(runner, before, view)
        except Left:
            how = f"to go on: {way_on(await self._state(runner.engine.id), self._repeated)}"
            say(f"left as it is; {how if driver.backend.keeps_runs else NOT_KEPT}")
            return OK
        finally:
            await runner.leave()
        return await self._conclude(driver, run_id, view)

    async def _conclude(self, driver: Driver, run_id: str, view: View) -> int:
        state = await self._state(run_id)
        questions = await driver.questions(run_id)
        if isinstance(view, EventLines):
            view.show_open(run_id, questions)
        else:
            kept = driver.backend.keeps_runs
            say_standing(state, questions, self.settings.repeated, kept=kept)
        return exit_code(state.status)

    def _view(self, runner: ConversationRunner, state: ConversationState) -> View:
        if self.settings.as_json:
            return EventLines()
        if not self.settings.interactive:
            return view_of(self.settings, state)
        engine = runner.engine
        return Board(
            state,
            {"p": partial(engine.pause, when_possible=True), "r": engine.resume, "q": runner.quit},
        )

    async def _opened(self, run_id: str) -> ConversationRunner:
        engine = await ConversationEngine.open(self.app, run_id, **self._given())
        return ConversationRunner(self.app, engine)

    def _given(self) -> dict[str, Any]:
        return {
            "coordinator": coordinator_of(self.app, self.means.rules, self.means.knowledge),
            "llm": model_of(self.app, self.means.model),
            **self.means.settings(),
        }

    async def _state(self, run_id: str) -> ConversationState:
        return as_conversation(await self.app.engine.state(run_id))

    async def _blank(self, run_id: str) -> ConversationState:
        return blank(run_id, (await self._state(run_id)).definition)

    @property
    def _repeated(self) -> str:
        return self.settings.repeated + self.means.spelled

    def _refuse_without_model(self, state: ConversationState, anyway: bool) -> None:
        unfinished = state.status not in _AT_REST
        if unfinished and not anyway and lacks_model(self.app, state, self.means.model):
            raise NotAllowed(
                f"{state.run_id} has tasks for a model, and none is configured here: set "
                "HOLDFAST_MODEL, name one with --model, or say --anyway to leave them empty"
            )
        if not (unfinished and state.tasks):
            self._mention_model()

    def _mention_model(self) -> None:
        if model_of(self.app, self.means.model) is None:
            self._mention(NO_MODEL)

    def _mention(self, words: str) -> None:
        if not self.settings.as_json:
            note(words)


def _told(state: ConversationState, chosen: AfterFailure) -> str:
    match chosen:
        case AfterFailure.RETRY:
            return "what failed is tried again, and what is done stays done"
        case AfterFailure.SKIP:
            skipped = (state.tasks[one].id for one in recovery.to_skip(state))
            return f"it goes on without: {visible(', '.join(skipped))}"
        case AfterFailure.STOP:
            return "the next turn is told what was done"


def refuse_misplaced(
    state: ConversationState, text: str | None, failed: AfterFailure | None, options: str
) -> None:
    """Words where none are awaited, or none where some are."""
    run_id = state.run_id
    if failed is AfterFailure.STOP:
        raise NotAllowed(f"to end the turn that failed: holdfast resume {run_id} --failed stop")
    if failed is not None and text is not None:
        raise NotAllowed(f"--failed {failed} goes on with the goal there is: leave the new one out")
    match state.status:
        case RunStatus.CANCELLING | RunStatus.CANCELLED:
            raise NotAllowed(f"{run_id} is cancelled: leave --id out to begin another one")
        case RunStatus.ERROR if text is None:
            how_to_go_on(state, failed)
            return
        case _ if failed is not None:
            how_to_go_on(state, failed)
        case RunStatus.DONE if text is None:
            raise NotAllowed(f"{run_id} has nothing left to do: say what is wanted next")
        case RunStatus.DONE | RunStatus.ERROR:
            return
    if text not in (None, state.text):
        raise NotAllowed(
            f"{run_id} is still at {visible(state.text)}: "
            f"`holdfast converse --id {run_id}{options}` goes on with that, "
            f"`holdfast cancel {run_id}{options}` ends it"
        )
