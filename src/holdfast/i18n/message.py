"""`Message`: an id with parameters, beside the English text that they make.

The id is the English format string, as in gettext; `msg` is what extraction looks for. A message
is a `str`: errors, records, JSON and logs take it as its English text, and `catalogue.said` puts
it into another language when it is read. Any other text made of it (by `+`, `join`, an f-string)
is a plain `str` again, so a message that has another one in it takes it as a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

Param: TypeAlias = str | int | float | None
Params: TypeAlias = Mapping[str, Param] | tuple[str, ...]

CONTEXT: Final = "\x04"
"""What gettext puts between the context of a message and its text."""


class Message(str):
    """`params` are those of the id by name, or the parts that the id, a separator, joins."""

    __slots__ = ("id", "params")

    id: str
    params: Params

    def __str__(self) -> str:
        """The message itself, so that `str(error)` is still one."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return remade, (str.__str__(self), self.id, self.params)

    def __deepcopy__(self, _: object) -> Message:
        return self

    def worded(self, translated: Callable[[str], str]) -> str:
        """The text that translated ids make; other texts among the parameters stay."""
        own = translated(self.id).rpartition(CONTEXT)[2]
        if isinstance(self.params, tuple):
            return own.join(_worded(one, translated) for one in self.params)
        return own.format_map({k: _worded(v, translated) for k, v in self.params.items()})


def msgid(text: str) -> str:
    """Marks the id of a message that is made elsewhere."""
    return text


def msg(form: str, /, **params: Param) -> str:
    """A message; `form` has each parameter in braces, and braces of its own doubled."""
    return remade(form.format_map(params), form, params)


SEPARATORS = (msgid("; "), msgid(", "))
"""Those that other languages write otherwise."""


def pmsg(context: str, form: str, /, **params: Param) -> str:
    """As `msg`, for a text that other languages say otherwise elsewhere (gettext's `msgctxt`)."""
    return remade(form.format_map(params), f"{context}{CONTEXT}{form}", params)


def nmsg(one: str, many: str, /, n: int, **params: Param) -> str:
    """As `msg`, in the form for the number `n` (gettext's `ngettext`)."""
    return remade((one if n == 1 else many).format_map({"n": n, **params}), one, {"n": n, **params})


def recalled(text: str) -> Message:
    """A text of a record, which reads as a message of ours where it has lost its id. A few words
    in lower case are a part of a message: alone they are another author's."""
    if isinstance(text, Message):
        return text
    lines = (remade(one, one, {}) if _ours(one) else one for one in text.split("\n"))
    return remade(text, "\n", tuple(lines))


def _ours(line: str) -> bool:
    return not {"{", "}"} & {*line} and (line[:1].isupper() or line.count(" ") > 2)


def span(seconds: float) -> str:
    """A duration in its two largest units, by the same rule as the console's `clock.js`."""
    n = max(0, round(seconds))
    if n < 60:
        return msg("{n} s", n=n)
    if n < 3600:
        return msg("{n} min {s} s", n=n // 60, s=n % 60)
    if n < 86400:
        return msg("{n} h {min} min", n=n // 3600, min=n // 60 % 60)
    return msg("{n} d {h} h", n=n // 86400, h=n // 3600 % 24)


def joined(separator: str, parts: Iterable[str]) -> str:
    """Several texts as one message; each that is a message stays one."""
    held = tuple(parts)
    return remade(separator.join(held), separator, held)


def term(word: str) -> str:
    """One of the words that `terms` lists, found by its value."""
    text = str(word)
    return remade(text, text, {})


def moment(iso: str) -> str:
    """A time in UTC, given as ISO 8601 has it."""
    day, _, time = iso.partition("T")
    return msg("{day}T{time}", day=day, time=time)


def remade(text: str, msgid: str, params: Params) -> Message:
    made = Message(text)
    made.id, made.params = msgid, params
    return made


def _worded(value: Any, translated: Callable[[str], str]) -> Any:
    return value.worded(translated) if isinstance(value, Message) else value
