"""The transcript: a session as it is spoken, for a person at a terminal.

A model's words appear as they come; its calls and their results take one quiet line each.
What a model or a tool wrote is text and nothing more: it cannot move the cursor, and it
never looks like something of ours: each row of a reply begins with a bar, each of our own
with a mark.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.text import Text

from holdfast.cli.terminal.screen import console
from holdfast.cli.terminal.untrusted_text import Speech
from holdfast.core.agent.state import THINK, ReactState
from holdfast.core.run.state import RunState
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.runtime.hub import Recorded, Spoken
from holdfast.views.stories.sessions import ended, spelled
from holdfast.views.stories.storyteller import storyteller
from holdfast.views.stories.text import named, visible

_MARK = "· "
_LONGEST = 2000


class Transcript:
    """`echo` repeats what people say; whoever has just typed it need not read it again."""

    def __init__(self, state: RunState, *, echo: bool = True) -> None:
        self._teller = storyteller(state)
        self._echo = echo
        self._said = ""
        self._speech = Speech()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_line()

    def speak(self, spoken: Spoken) -> None:
        """Words of a reply that is not finished; the person sees when they are taken back."""
        if spoken.text is None:
            self._end_line()
            self._whisper("the model begins again; what stands above does not count")
            return
        self._speech.write(spoken.text)
        self._said += spoken.text

    def show(self, state: RunState, recorded: Recorded) -> None:
        told = self._teller.tell(recorded)
        match recorded.event:
            case r.ModelReplied(text=text):
                self._finish(text)
            case r.CallStarted(step_id=step_id, args=args):
                self._whisper(f"{_tool(state, step_id)} {visible(spelled(args), _LONGEST)}")
            case r.StepEnded(step_id=step_id) as event if step_id != THINK:
                self._whisper(ended(event, _tool(state, step_id)))
            case r.TurnStarted() if not self._echo:
                return
            case (
                r.TurnStarted()
                | e.AttemptFailed()
                | e.OutcomeLost()
                | e.QuestionAnswered()
                | e.QuestionExpired()
                | e.QuestionWithdrawn()
                | e.QuestionReminded()
                | e.QuestionEscalated()
                | e.CancelRequested()
                | r.StepAbandoned()
                | r.TurnResumed()
            ):
                self._whisper(*(f"{line.who} {line.what}" for line in told))
            case _:
                return

    def _finish(self, text: str) -> None:
        """The reply as it is recorded: what was not heard of it follows."""
        if text.startswith(self._said):
            self._speech.write(text[len(self._said) :])
        else:
            self._end_line()
            self._speech.write(text)
        self._end_line()

    def _end_line(self) -> None:
        self._speech.end()
        self._said = ""

    def _whisper(self, *lines: str) -> None:
        self._end_line()
        for line in lines:
            quiet = Text(_MARK + line, style="dim")
            console().print(quiet, no_wrap=True, overflow="ellipsis")


def _tool(state: RunState, step_id: str) -> str:
    call = state.calls.get(step_id) if isinstance(state, ReactState) else None
    return named(call.tool if call is not None and call.tool else step_id)
