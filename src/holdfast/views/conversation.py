"""What is particular to conversations: their events as a consumer hears them, and their last word.

What a record means to a consumer depends on the state that it led to, so a narration carries one
along. `said` puts our own words into the reader's language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.conversations.events import narrate
from holdfast.core.conversation import snapshot
from holdfast.core.conversation.briefing import final_answer, summary
from holdfast.core.conversation.state import ConversationState
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model.conversation import EngineEvent
from holdfast.model.conversation_events import AnswerWritten
from holdfast.model.values import Json
from holdfast.runtime.machines import as_conversation, replay
from holdfast.views.reader import RunVersion

Said = Callable[[str], str]


class Narration:
    """Tells records as the engine's consumer hears them, from a version of the run on."""

    def __init__(self, run: RunVersion, said: Said = str) -> None:
        self._state: ConversationState = as_conversation(run.state)
        self._said = said

    def tell(self, record: Record) -> EngineEvent | None:
        event = decode(record)
        self._state = as_conversation(replay(self._state, [(record.at, event)]))
        told = narrate(self._state, record.seq, record.at, event)
        return None if told is None else replace(told, data=self._spoken(event, told.data))

    def _spoken(self, event: Any, data: Mapping[str, Json]) -> Mapping[str, Json]:
        if isinstance(event, AnswerWritten) and not event.text:
            return {"answer": summary(self._state, self._said)}
        ours = [name for name in ("reason", "error") if name in data]
        return {**data, **{name: self._said(data[name]) for name in ours}}


def answer_in(run: RunVersion, said: Said) -> str:
    """The last word of a turn that is completed."""
    return final_answer(as_conversation(run.state), said)


def snapshot_of(run: RunVersion) -> dict[str, Json]:
    """Everything that another engine needs to go on with it."""
    return dict(snapshot.dump(as_conversation(run.state)))
