"""Conversing: the turns of one chat, at a prompt or one by one.

The session is durable and this process is not: leaving at any moment, by Ctrl-C too,
loses nothing, and the last word is always how to go on.
"""

from __future__ import annotations

import sys
from typing import cast

import questionary
from rich.text import Text

from holdfast.agents.events import AgentEventType, AgentExecutionEvent, Narrator
from holdfast.cli.backend import Backend, Partner
from holdfast.cli.driver import Driver
from holdfast.cli.shell import OK, Settings
from holdfast.cli.terminal.plain import print_json_line
from holdfast.cli.terminal.progress import Silence, View, rests
from holdfast.cli.terminal.report import NOT_KEPT, exit_code, say_standing, usage_words, way_on
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.transcript import Transcript
from holdfast.cli.terminal.untrusted_text import BAR, rows
from holdfast.core.agent.state import ReactState
from holdfast.core.interactions.wire import request_to_wire
from holdfast.core.run.state import RunState
from holdfast.errors import CallerError
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import Recorded, Spoken
from holdfast.runtime.machines import as_session
from holdfast.runtime.projections import request_of
from holdfast.views.stories.text import visible, visible_lines

HELP = (
    "/answer  show what is asked (an empty line does the same)",
    "/retry   try the turn again that failed",
    "/cancel  cancel this chat: nothing more runs in it",
    "/usage   tokens, cost and time so far",
    "/quit    leave; the chat stays as it is",
)


class EventLines(Silence):
    """Every event of a session as its followers see it, one JSON object per line."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator

    def show(self, state: RunState, recorded: Recorded) -> None:
        told = self._narrator.tell(recorded)
        if told is not None:
            print_json_line(told.to_wire())

    def speak(self, spoken: Spoken) -> None:
        print_json_line(self._narrator.speak(spoken).to_wire())


class ChatSession:
    """A chat of one person; it is opened with its first message."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        agent: Partner,
        session_id: str | None = None,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._agent = agent
        self._session_id = session_id
        self._driver = Driver(backend, settings)

    async def one_turn(self, message: str | None) -> int:
        """Say it, or only go on with what is under way; then report and leave."""
        state = await (self._say(message) if message is not None else self._catch_up())
        if self._settings.as_json:
            await self._print_ending(state)
        elif self._settings.interactive and state.status is not RunStatus.ERROR:
            await self._say_ending(state)
        else:
            await self._report(state)
        return exit_code(state.status)

    async def go_on(self) -> int:
        """The prompt, until the person leaves."""
        say(f"chat with {visible(self._agent.name)}; /help lists the commands, /quit leaves")
        if self._session_id is not None:
            await self._say_ending(await self._catch_up())
        while (line := await self._prompt()) is not None:
            try:
                if not await self._obey(line.strip()):
                    break
            except CallerError as error:
                say(*rows(str(error), ""))
        return await self._leave()

    async def _prompt(self) -> str | None:
        """What the person types; None when there will be no more."""
        try:
            line = await questionary.text("", qmark="you>").unsafe_ask_async()
        except (KeyboardInterrupt, EOFError):
            return None
        return cast(str, line)

    async def _obey(self, line: str) -> bool:
        """Do what a line says; False to leave."""
        match line:
            case "/quit" | "/exit":
                return False
            case "/help":
                say(*HELP)
            case "/usage":
                await self._say_usage()
            case "/cancel":
                return not await self._cancelled()
            case "/retry":
                await self._retry()
            case "" | "/answer":
                await self._answer()
            case _ if line.startswith("/"):
                say(f"there is no command {visible(line)}; /help lists them")
            case _:
                await self._say_ending(await self._say(line))
        return True

    async def _say(self, message: str) -> ReactState:
        before = await self._session()
        await self._backend.say(before.run_id, message)
        return await self._see_through(before)

    async def _catch_up(self) -> ReactState:
        state = await self._session()
        if rests(state) and state.status is not RunStatus.PAUSE:
            return state
        return await self._see_through(state)

    async def _see_through(self, before: ReactState) -> ReactState:
        view = await self._view(before)
        return as_session(await self._driver.see_through(before, view))

    async def _view(self, state: ReactState) -> View:
        if self._settings.as_json:
            return EventLines(await self._narrator(state))
        return Transcript(state, echo=False) if self._settings.interactive else Silence()

    async def _narrator(self, state: ReactState) -> Narrator:
        """One that knows what was told before: later events name calls by number only."""
        narrator = Narrator(state.run_id)
        for recorded in await self._backend.records(state.run_id):
            if recorded.seq <= state.version:
                narrator.tell(recorded)
        return narrator

    async def _session(self) -> ReactState:
        if self._session_id is None:
            self._session_id = await self._backend.open_chat(self._agent.agent_id)
        return as_session(await self._backend.state(self._session_id))

    async def _retry(self) -> None:
        before = await self._session()
        await self._backend.resume(before.run_id)
        await self._say_ending(await self._see_through(before))

    async def _cancelled(self) -> bool:
        if self._session_id is None:
            say("nothing has been said yet")
            return False
        before = await self._session()
        await self._backend.cancel(before.run_id, "")
        await self._say_ending(await self._see_through(before))
        return True

    async def _answer(self) -> None:
        if self._session_id is None or not await self._driver.questions(self._session_id):
            return
        before = await self._session()
        if before.status is not RunStatus.ERROR:
            await self._say_ending(await self._catch_up())
            return
        answered = await self._driver.asked(before.run_id)
        await self._say_ending(await self._see_through(before) if answered else before)

    async def _say_usage(self) -> None:
        if self._session_id is None:
            say("nothing has been said yet")
            return
        state = await self._session()
        say(usage_words(state.usage, state.requests))

    async def _say_ending(self, state: ReactState) -> None:
        """What the transcript has not shown: why it stands still."""
        match state.status:
            case RunStatus.ERROR:
                error = rows(visible(state.error, 2000), "error: ", BAR)
                say(*(Text(row, style="red") for row in error))
                say(await self._ways_out(state))
            case RunStatus.PAUSE:
                questions = await self._driver.questions(state.run_id)
                titles = ", ".join(visible(row.title) for row in questions)
                say(*rows(f"{titles} (/answer shows it again)", "left open: "))
            case RunStatus.CANCELLED:
                say(f"{state.run_id} is cancelled")
            case _:
                return

    async def _ways_out(self, state: ReactState) -> str:
        """Of a turn that failed; while calls of it wait, a message would be refused."""
        if not state.active:
            return "/retry tries again; a further message begins the next turn"
        asked = await self._driver.questions(state.run_id)
        answer = "/answer shows what is asked; " if asked else ""
        return f"/retry tries again; {answer}/cancel cancels the chat"

    async def _leave(self) -> int:
        if self._session_id is None:
            return OK
        state = await self._session()
        if state.status is not RunStatus.CANCELLED:
            kept = self._driver.backend.keeps_runs
            say(f"to go on: {way_on(state, self._settings.repeated)}" if kept else NOT_KEPT)
        return exit_code(state.status)

    async def _report(self, state: ReactState) -> None:
        """For scripts: the answer and nothing else, or where it stands."""
        if state.status is RunStatus.DONE:
            answer = visible_lines(state.answer).rstrip("\n")
            seen = "\n".join(rows(answer)) if sys.stdout.isatty() else answer
            sys.stdout.write(f"{seen}\n")
            return
        questions = await self._driver.questions(state.run_id)
        kept = self._driver.backend.keeps_runs
        say_standing(state, questions, self._settings.repeated, kept=kept)

    async def _print_ending(self, state: ReactState) -> None:
        """The questions of runs below, which its own events do not tell; then DONE."""
        for row in await self._driver.questions(state.run_id):
            if row.run_id != state.run_id:
                asked = request_to_wire(request_of(row))
                kind = AgentEventType.INTERACTION
                event = AgentExecutionEvent(kind, state.run_id, asked, at=row.opened_at)
                print_json_line(event.to_wire())
        ending = {"status": state.status.value, "turn": state.turn}
        last = AgentExecutionEvent(AgentEventType.DONE, state.run_id, ending)
        print_json_line(last.to_wire())
