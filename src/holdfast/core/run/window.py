"""What a model is shown of a long conversation.

The rule. A conversation's size is the characters of its texts, of its calls' arguments and of its
tool results (what is no text counts as canonical JSON). The model sees everything, except:

1. A tool result longer than a quarter of the limit (at most 20,000 characters) is always shown
   cut: its first part, how many characters were left out, its last part.
2. When the conversation outgrows the limit, old tool results are replaced by a short note, oldest
   first; never those of the newest message with calls.
3. If that is not enough, whole old exchanges go, oldest first (a user's message and all that
   followed it up to the next); the newest exchange stays, and a note says that something went.
4. If that is not enough, old steps of the newest exchange go, oldest first (what the model said
   with the results of its calls); the user's message and the newest step stay, with a note.
5. If it is still above the limit, whatever is longest in the newest exchange is cut in the middle
   like a result, to half the limit, a quarter, and so on, but never below 160 characters.
   Arguments must stay JSON: they are replaced by a note.

Enough is when a quarter is free of the room beside what must stay (the newest user's message and
the newest step). And the rule is played over the conversation message by message, as it grew, each
time from what was still shown. So what was once left out never comes back, and between two
trimmings the shown conversation only grows at its end, which is what the providers' prompt caches
need; yet nothing has to be remembered between calls.

A result is expected before the next message of user or model, so that no cut parts it from its
call. Only where so many short pieces remain that none may be cut can the size exceed the limit.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.language.strict import canonical_json
from holdfast.model.message import Message, ModelSaid, ToolCall, ToolReturned, UserSaid
from holdfast.model.values import Json

LARGEST_RESULT: Final = 20_000
SHORTEST_CUT: Final = 160
"""Nothing is cut below this, so that a cut text keeps a beginning, its notes and an end."""

EARLIER_LEFT_OUT: Final = "[earlier conversation left out]"
STEPS_LEFT_OUT: Final = "[earlier steps left out]"

_UNCUT: Final = sys.maxsize
_ROOM_FOR_CUT_NOTE: Final = 50
_ROOM_FOR_TRIM_NOTE: Final = 64


def visible(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """What of `messages` the model is shown; messages shown whole are the same objects."""
    window = _Window(messages, limit)
    for index in range(len(messages)):
        window.take(index)
    return tuple(window.shown())


def shorten(content: Json, limit: int) -> Json:
    """`content` itself if it is no longer than `limit`, else a text with its beginning and end."""
    text = _as_text(content)
    limit = max(limit, SHORTEST_CUT)
    return content if len(text) <= limit else _cut(text, limit)


def result_limit(limit: int) -> int:
    """The longest tool result that is shown whole in a window of `limit` characters."""
    return max(SHORTEST_CUT, min(LARGEST_RESULT, limit // 4))


@dataclass(slots=True)
class _Exchange:
    """A user's message and what followed; `head` is its text with notes, None where no user spoke.

    Of the messages after the head, those from `resume` on are shown, pieces no longer than `level`.
    """

    first: int
    resume: int
    head: str | None
    newest_step: int = 0
    level: int = _UNCUT


class _Window:
    """What is shown of the messages taken so far; a message that is gone has size 0."""

    def __init__(self, messages: Sequence[Message], limit: int) -> None:
        self.messages = messages
        self.limit = limit
        self.result_limit = result_limit(limit)
        self.exchanges: deque[_Exchange] = deque()
        self.pieces: list[tuple[int, ...]] = []
        self.sizes: list[int] = []
        self.size = 0
        self.trimmed: set[int] = set()
        self.trimmed_up_to = 0
        self.newest_calls = 0
        self.newest_step_size = 0

    def take(self, index: int) -> None:
        message = self.messages[index]
        self.pieces.append(_pieces(message))
        self.sizes.append(0)
        self._place(index, message)
        self._resize(index, self._natural_size(index, self.exchanges[-1].level))
        self.newest_step_size += 0 if isinstance(message, UserSaid) else self.sizes[index]
        if self.size > self.limit:
            self._make_room()

    def _place(self, index: int, message: Message) -> None:
        if isinstance(message, UserSaid):
            self.exchanges.append(_Exchange(index, index + 1, message.text))
        elif not self.exchanges:
            self.exchanges.append(_Exchange(index, index, None))
        if not isinstance(message, ToolReturned):
            self.newest_step_size = 0
        if isinstance(message, ModelSaid):
            self.exchanges[-1].newest_step = index
            self.newest_calls = index if message.calls else self.newest_calls

    def shown(self) -> Iterator[Message]:
        starts = [exchange.first for exchange in self.exchanges]
        for exchange, end in zip(self.exchanges, [*starts[1:], len(self.messages)], strict=False):
            yield from self._shown_head(exchange)
            for index in range(exchange.resume, end):
                yield self._shown_message(index, exchange.level)

    def _make_room(self) -> None:
        enough = self._enough()
        for step in (self._trim_result, self._drop_exchange, self._drop_step):
            while self.size > enough and step():
                pass
        while self.size > self.limit and self._cut_longest():
            pass

    def _enough(self) -> int:
        """A long question or many results must not make everything else go to free a quarter."""
        newest = self.exchanges[-1]
        question = 0 if newest.head is None else self.sizes[newest.first]
        return self.limit - max(0, self.limit - question - self.newest_step_size) // 4

    def _trim_result(self) -> bool:
        """Results hardly longer than the note stay: a note about them would gain nothing."""
        while self.trimmed_up_to < self.newest_calls:
            index = self.trimmed_up_to
            self.trimmed_up_to += 1
            message = self.messages[index]
            if isinstance(message, ToolReturned) and self._worth_trimming(index, message):
                self.trimmed.add(index)
                self._resize(index, len(self._trim_note(index, message)))
                return True
        return False

    def _worth_trimming(self, index: int, message: ToolReturned) -> bool:
        return self.sizes[index] > _ROOM_FOR_TRIM_NOTE + len(message.tool)

    def _drop_exchange(self) -> bool:
        if len(self.exchanges) == 1:
            return False
        gone = self.exchanges.popleft()
        first = self.exchanges[0]
        for index in range(gone.first, first.first):
            self._resize(index, 0)
        self._set_head(first, f"{EARLIER_LEFT_OUT}\n\n{first.head}")
        return True

    def _drop_step(self) -> bool:
        newest = self.exchanges[-1]
        if newest.resume >= newest.newest_step:
            return False
        untouched = newest.resume == newest.first + (newest.head is not None)
        self._resize(newest.resume, 0)
        newest.resume += 1
        while not isinstance(self.messages[newest.resume], ModelSaid):
            self._resize(newest.resume, 0)
            newest.resume += 1
        if untouched:
            said = "" if newest.head is None else f"{newest.head}\n\n"
            self._set_head(newest, said + STEPS_LEFT_OUT)
        return True

    def _cut_longest(self) -> bool:
        newest = self.exchanges[-1]
        if newest.level == SHORTEST_CUT:
            return False
        newest.level = max(SHORTEST_CUT, min(newest.level, self.limit) // 2)
        for index in range(newest.resume, len(self.sizes)):
            self._resize(index, self._natural_size(index, newest.level))
        if newest.head is not None:
            self._set_head(newest, newest.head)
        return True

    def _set_head(self, exchange: _Exchange, head: str) -> None:
        exchange.head = head
        self._resize(exchange.first, min(len(head), exchange.level))

    def _resize(self, index: int, size: int) -> None:
        self.size += size - self.sizes[index]
        self.sizes[index] = size

    def _natural_size(self, index: int, level: int) -> int:
        if isinstance(self.messages[index], ToolReturned):
            level = min(level, self.result_limit)
        return sum(min(piece, level) for piece in self.pieces[index])

    def _trim_note(self, index: int, message: ToolReturned) -> str:
        return f"[trimmed: the result of {message.tool}, {self.pieces[index][0]} characters]"

    def _shown_head(self, exchange: _Exchange) -> Iterator[Message]:
        if exchange.head is None:
            return
        text = shorten(exchange.head, exchange.level)
        message = self.messages[exchange.first]
        unchanged = isinstance(message, UserSaid) and message.text == text
        yield message if unchanged else UserSaid(text)

    def _shown_message(self, index: int, level: int) -> Message:
        message = self.messages[index]
        if isinstance(message, ToolReturned):
            return self._shown_result(index, message, min(level, self.result_limit))
        if isinstance(message, ModelSaid) and max(self.pieces[index]) > level:
            return _cut_words(message, level)
        return message

    def _shown_result(self, index: int, message: ToolReturned, level: int) -> ToolReturned:
        if index in self.trimmed:
            return replace(message, content=self._trim_note(index, message))
        if self.pieces[index][0] <= level:
            return message
        return replace(message, content=shorten(message.content, level))


def _pieces(message: Message) -> tuple[int, ...]:
    """The lengths of what can be cut on its own."""
    if isinstance(message, ToolReturned):
        return (len(_as_text(message.content)),)
    if isinstance(message, UserSaid):
        return (len(message.text),)
    args = [len(canonical_json(call.args)) for call in message.calls]
    return (len(message.text), *args, *(len(call.malformed or "") for call in message.calls))


def _as_text(content: Json) -> str:
    return content if isinstance(content, str) else canonical_json(content)


def _cut(text: str, limit: int) -> str:
    room = limit - _ROOM_FOR_CUT_NOTE
    last = room // 3
    first = room - last
    return f"{text[:first]}\n[… {len(text) - room} characters left out …]\n{text[-last:]}"


def _cut_words(message: ModelSaid, level: int) -> ModelSaid:
    calls = tuple(_cut_call(call, level) for call in message.calls)
    return ModelSaid(shorten(message.text, level), calls)


def _cut_call(call: ToolCall, level: int) -> ToolCall:
    length = len(canonical_json(call.args))
    args = {"left_out": f"{length} characters"} if length > level else call.args
    malformed = None if call.malformed is None else shorten(call.malformed, level)
    return replace(call, args=args, malformed=malformed)
