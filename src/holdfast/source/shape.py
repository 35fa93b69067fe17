"""The shape of a plan file: nodes in, typed values out, every misfit noted with its location.

A mistake here must not hide the mistakes after it, so nothing raises. What cannot be read
is noted, its path is remembered as broken, and a harmless stand-in takes its place: the
checks that follow see a whole plan and stay silent about broken parts. A misspelt key or
word is read as the one that was surely meant, so that one typo is one problem.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Mapping as Lookup
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar, overload

from holdfast.errors import Problem
from holdfast.i18n.message import msg
from holdfast.language.spelling import nearest
from holdfast.model.values import Json
from holdfast.source.locations import Finding, Locations, Path, repeats, to_problem
from holdfast.source.nodes import (
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unreadable,
    scalar_value,
)

Word = TypeVar("Word", bound=StrEnum)
Meaning = TypeVar("Meaning")

_LONGEST_SHOWN: Final = 40
_PATH: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+")


@dataclass(slots=True)
class ShapeReader:
    """Reads values from nodes; `problems` and `broken` gather what did not fit.

    `whole` is how messages call what the file is about.
    """

    file: str
    locations: Locations
    problems: list[Problem] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    whole: str = msg("the plan")

    def wrong(self, node: Node, path: Path, message: str) -> None:
        self.broken.add(path)
        self.note(node, message)

    def note(self, node: Node, message: str) -> None:
        self.problems.append(Problem(message, self.file, node.line, node.column))

    def judged(self, findings: Iterable[Finding]) -> Iterator[Problem]:
        """What is reported of them; not that a broken part is broken."""
        for finding in findings:
            if not repeats(finding, self.broken):
                yield to_problem(finding, self.file, self.locations)

    def entries(
        self,
        node: Node,
        path: Path,
        *,
        known: Collection[str],
        required: Collection[str] = (),
        misplaced: Lookup[str, str] | None = None,
        short: Lookup[str, str] | None = None,
    ) -> dict[str, Node]:
        """The mapping's known entries; `misplaced` explains keys that belong elsewhere.

        `short` has other spellings of known keys; their entries stand under the known key.
        """
        if not isinstance(node, Mapping):
            keys = ", ".join(required or known)
            self.wrong(
                node,
                path,
                msg(
                    "{name} must be a mapping with the keys {keys}",
                    name=self._name(path),
                    keys=keys,
                ),
            )
            return {}
        found = {key.text: value for key, value in node.entries if key.text in known}
        for key, value in node.entries:
            if short and key.text in short:
                self._short_key(key, value, (*path, short[key.text]), found)
            elif key.text not in known:
                self._unknown_key(key, value, path, known, found, misplaced or {})
        for key_name in required:
            if key_name not in found:
                self.wrong(
                    node,
                    (*path, key_name),
                    msg("{name} lacks the key {key}", name=self._name(path), key=key_name),
                )
        return found

    def _short_key(self, key: Scalar, value: Node, path: Path, found: dict[str, Node]) -> None:
        name = str(path[-1])
        if name in found:
            self.note(
                key,
                msg(
                    "{word} is another word for {name}; keep one of them", word=key.text, name=name
                ),
            )
            return
        found[name] = value
        self.locations.record(path, value)

    def _unknown_key(
        self,
        key: Scalar,
        value: Node,
        path: Path,
        known: Collection[str],
        found: dict[str, Node],
        misplaced: Lookup[str, str],
    ) -> None:
        if key.text in misplaced:
            self.note(key, misplaced[key.text])
            return
        meant = nearest(key.text, known)
        remedy = (
            msg("did you mean {meant}?", meant=meant)
            if meant
            else msg("known are {names}", names=", ".join(known))
        )
        self.note(key, msg("unknown key {key}; {hint}", key=_shown(key), hint=remedy))
        if meant is not None and meant not in found:
            found[meant] = value
            self.locations.record((*path, meant), value)

    def items(self, node: Node | None, path: Path) -> tuple[Node, ...]:
        if node is None:
            return ()
        if isinstance(node, Sequence):
            return node.items
        self.wrong(node, path, msg("{name} must be a list", name=self._name(path)))
        return ()

    @overload
    def text(self, node: Node | None, path: Path, default: str = "") -> str: ...
    @overload
    def text(self, node: Node | None, path: Path, default: None) -> str | None: ...
    def text(self, node: Node | None, path: Path, default: str | None = "") -> str | None:
        """The source text of a scalar, so that an unquoted 010 stays 010."""
        if node is None:
            return default
        if isinstance(node, Scalar) and not node.is_null:
            return node.text
        self.wrong(node, path, msg("{name} must be text", name=self._name(path)))
        return default

    def texts(
        self, node: Node | None, path: Path, default: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """A list of texts, or one text with commas."""
        if isinstance(node, Sequence):
            return tuple(self.text(item, (*path, i)) for i, item in enumerate(node.items))
        if node is None:
            return default
        whole = self.text(node, path)
        parts = tuple(part.strip() for part in whole.split(","))
        if path not in self.broken and not all(parts):
            self.wrong(
                node,
                path,
                msg("{name} has an empty name between its commas", name=self._name(path)),
            )
        return tuple(part for part in parts if part)

    def word(self, node: Node | None, path: Path, words: type[Word], default: Word) -> Word:
        """One of a closed set; a word that is nearly one of them is taken for it."""
        meant = self.meaning(node, path, {word.value: word for word in words})
        return default if meant is None else meant

    def meaning(
        self,
        node: Node | None,
        path: Path,
        words: Lookup[str, Meaning],
        *,
        any_case: bool = False,
    ) -> Meaning | None:
        """What a word stands for; None when there is none, or none that is nearly right.

        With `any_case` the `words` are in lower case and the file may spell them as it likes.
        """
        if node is None:
            return None
        text = node.text if isinstance(node, Scalar) else ""
        text = text.lower() if any_case else text
        if text in words:
            return words[text]
        meant = nearest(text, words)
        remedy = (
            msg("did you mean {meant}?", meant=meant)
            if meant
            else msg("write one of {names}", names=", ".join(words))
        )
        self.wrong(
            node,
            path,
            msg(
                "{name} cannot be {value}; {hint}",
                name=self._name(path),
                value=_shown(node),
                hint=remedy,
            ),
        )
        return words[meant] if meant else None

    def flag(self, node: Node | None, path: Path, default: bool = False) -> bool:
        value = self._scalar(node, path, msg("true or false"), bool)
        return default if value is None else bool(value)

    def integer(self, node: Node | None, path: Path, default: int) -> int:
        value = self._scalar(node, path, msg("a whole number"), int)
        return default if value is None else int(value)

    def number(self, node: Node | None, path: Path, default: float | None = None) -> float | None:
        value = self._scalar(node, path, msg("a number"), int, float)
        return default if value is None else float(value)

    def numbers(
        self, node: Node | None, path: Path, default: tuple[float, ...] = ()
    ) -> tuple[float, ...]:
        items = () if node is None else self.items(node, path)
        read = (self.number(item, (*path, index)) for index, item in enumerate(items))
        return tuple(number for number in read if number is not None) if items else default

    def _scalar(self, node: Node | None, path: Path, wanted: str, *kinds: type) -> Json:
        """None when absent, and when a problem has been noted."""
        value = None if node is None else self.json(node, path)
        if node is None or type(value) in kinds:
            return value
        if value is not None:
            self.wrong(
                node,
                path,
                msg(
                    "{name} must be {wanted}, not {value}",
                    name=self._name(path),
                    wanted=wanted,
                    value=_shown(node),
                ),
            )
        elif path not in self.broken:
            self.wrong(
                node,
                path,
                msg("{name} has no value; write one or remove the key", name=self._name(path)),
            )
        return None

    def json_object(
        self, node: Node | None, path: Path, default: Lookup[str, Json] | None = None
    ) -> dict[str, Json]:
        if isinstance(node, Mapping):
            return self._json_entries(node, path)
        if node is not None:
            message = msg("{name} must be a mapping of names to values", name=self._name(path))
            self.wrong(node, path, message)
        return dict(default or {})

    def json(self, node: Node, path: Path) -> Json:
        if isinstance(node, Mapping):
            return self._json_entries(node, path)
        if isinstance(node, Sequence):
            return [self.json(item, (*path, index)) for index, item in enumerate(node.items)]
        try:
            return scalar_value(node)
        except Unreadable as reason:
            self.wrong(node, path, str(reason))
            return None

    def _json_entries(self, node: Mapping, path: Path) -> dict[str, Json]:
        if self._is_bare_template(node):
            self.wrong(
                node,
                path,
                msg('quote the template: "{text}"', text=f"{{{node.entries[0][0].text}}}"),
            )
        return {key.text: self.json(value, (*path, key.text)) for key, value in node.entries}

    def _name(self, path: Path) -> str:
        """How a message calls the part at `path`."""
        match path:
            case ():
                return self.whole
            case (*_, str(owner), int(index)):
                return f"{owner}[{index}]"
            case _:
                return str(path[-1])

    @staticmethod
    def _is_bare_template(node: Mapping) -> bool:
        """`{001.context.name}` without quotes is a mapping for YAML, never for its author."""
        match node.entries:
            case [(Scalar(text=key), Scalar(text="", style=""))]:
                return _PATH.fullmatch(key) is not None
        return False


def _shown(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return repr(
        node.text if len(node.text) <= _LONGEST_SHOWN else node.text[: _LONGEST_SHOWN - 1] + "…"
    )
