"""A chat as it is spoken, for a person at a terminal.

A model's words appear as they come; its calls and their results take one quiet line each.
What a model or a tool wrote cannot move the cursor, and never looks like output of ours: each row
of a reply begins with a bar, each of our own with a mark.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.text import Text

from holdfast.cli.terminal.screen import console
from holdfast.cli.terminal.untrusted_text import Speech
from holdfast.runtime.hub import Spoken
from holdfast.views.records import RunView, TimelineEntry

_MARK = "· "


class Transcript:
    """`echo` repeats what people say; at a prompt they have just typed it."""

    wants_views = False

    def __init__(self, *, echo: bool = True) -> None:
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

    def update(self, run: RunView) -> None:
        return

    def show(self, entry: TimelineEntry) -> None:
        line = entry.chat
        if line is None or (line.kind == "said" and not self._echo):
            return
        if line.kind == "reply":
            self._finish(line.text)
        else:
            self._whisper(line.text)

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

    def _whisper(self, line: str) -> None:
        self._end_line()
        quiet = Text(_MARK + line, style="dim")
        console().print(quiet, no_wrap=True, overflow="ellipsis")
