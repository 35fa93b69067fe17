"""YAML text as a tree of nodes that know where they stand; nothing is constructed from tags.

ruamel's pure-Python parser delivers events, and this module composes them. That
leaves two decisions here rather than in a loader's constructor:

- *Bounds come first.* The text, its nodes, the nesting and what aliases add are capped. The
  nesting of brackets is capped in the scanner itself: for every bracket it visits
  all open ones, so 4 kB of them would cost seconds before the first event arrives.
- *Mistakes that leave the tree readable are collected* (a duplicate key, a tag),
  so that one of them does not hide the next. Only broken syntax and exceeded
  bounds end the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from holdfast.errors import Problem
from holdfast.i18n.message import msg
from holdfast.language.strict import NO_NUL, NUL
from holdfast.source.nodes import Mapping, Node, Scalar, Sequence
from holdfast.source.parser_messages import parser_message

MAX_BYTES = 1_000_000
MAX_NODES = 60_000
"""A plan of 2,400 tasks with their listeners has fewer, and takes two seconds to read."""

MAX_DEPTH = 40
MAX_ALIASED_NODES = 10_000

_NO_KEY = msg('a key must be text; if this is a template, quote it: "{{{{result.x}}}}"')


@dataclass(frozen=True, slots=True)
class Document:
    """What could be read: `root` is None when the syntax is broken or a bound exceeded."""

    root: Node | None
    problems: tuple[Problem, ...]


def read_document(text: str, file: str, expected: str = msg("a plan")) -> Document:
    """The one document in `text`; never raises, whatever the text."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        message = msg(
            "the file is larger than {n} bytes; split the plan into sub-plans", n=MAX_BYTES
        )
        return Document(None, (Problem(message, file, 1, 1),))
    composer = _Composer(file, expected)
    try:
        root = composer.document(text)
    except _Fatal as fatal:
        return Document(None, (*composer.problems, fatal.problem))
    return Document(root, tuple(composer.problems))


class _Fatal(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class _TooDeep(Exception):
    """Raised by the scanner; has the mark of the bracket that was one too many."""

    def __init__(self, mark: Any) -> None:
        self.mark = mark


class _BoundedScanner(Scanner):
    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:  # noqa: N803
        if self.flow_level >= MAX_DEPTH:
            raise _TooDeep(self.reader.get_mark())
        super().fetch_flow_collection_start(TokenClass, to_push)


@dataclass(slots=True)
class _Composer:
    file: str
    expected: str
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, Node | None] = field(default_factory=dict)
    nodes: int = 0
    aliased: int = 0
    location: tuple[int, int] = (1, 1)

    def document(self, text: str) -> Node:
        yaml = YAML(typ="safe", pure=True)
        yaml.Scanner = _BoundedScanner
        try:
            return self._only_document(yaml.parse(text))
        except _TooDeep as error:
            raise self._too_deep(error.mark) from None
        except ReaderError as error:
            raise self._unprintable(text, error) from None
        except MarkedYAMLError as error:
            raise self._syntax(error) from None
        except (YAMLError, ValueError, OverflowError):
            # ruamel lets these escape, without a mark, from numbers in escapes and directives.
            message = msg(
                "not valid YAML: an escape or a directive after this place is out of range"
            )
            raise _Fatal(Problem(message, self.file, *self.location)) from None

    def _only_document(self, events: Iterator[Any]) -> Node:
        root: Node | None = None
        for event in events:
            if not isinstance(event, DocumentStartEvent):
                continue
            if root is not None:
                raise self._fatal(event, msg("a second document; write one plan per file"))
            root = self._node(next(events), events, 1)
        if root is None:
            raise _Fatal(
                Problem(
                    msg("the file is empty; {what} was expected", what=self.expected),
                    self.file,
                    1,
                    1,
                )
            )
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            message = msg(
                "there are more than {n:,} values; split the plan into sub-plans", n=MAX_NODES
            )
            raise self._fatal(event, message)
        if isinstance(event, AliasEvent):
            return self._alias(event, depth)
        if depth > MAX_DEPTH:
            raise self._too_deep(event.start_mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if event.tag is not None:
            self._report(event, msg("the tag {tag} is not supported; remove it", tag=event.tag))
        node = self._content(event, events, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _content(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.location = line, column = _location(event.start_mark)
        if isinstance(event, ScalarEvent):
            return Scalar(self._clean(event), event.style or "", line, column)
        if isinstance(event, SequenceStartEvent):
            return Sequence(tuple(self._items(events, depth + 1)), line, column)
        assert isinstance(event, MappingStartEvent)
        return Mapping(tuple(self._entries(events, depth + 1)), line, column)

    def _items(self, events: Iterator[Any], depth: int) -> Iterator[Node]:
        while not isinstance(event := next(events), SequenceEndEvent):
            yield self._node(event, events, depth)

    def _entries(self, events: Iterator[Any], depth: int) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[str, Scalar] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            key = self._node(event, events, depth)
            value = self._node(next(events), events, depth)
            if not isinstance(key, Scalar):
                self._report(event, _NO_KEY)
            elif self._is_usable(key, event, seen):
                seen[key.text] = key
                yield key, _beside(key, value)

    def _is_usable(self, key: Scalar, event: Any, seen: dict[str, Scalar]) -> bool:
        if key.text == "<<" and not key.style:
            self._report(event, msg("merge keys (<<) are not supported; write the entries out"))
            return False
        if key.text in seen:
            first = seen[key.text].line
            self._report(
                event,
                msg(
                    "the key {key!r} appears twice, first on line {line}",
                    key=key.text[:40],
                    line=first,
                ),
            )
            return False
        return True

    def _alias(self, event: Any, depth: int) -> Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            raise self._fatal(event, self._no_anchor(event.anchor))
        weight, height = _measure(node)
        self.aliased += weight
        if self.aliased > MAX_ALIASED_NODES or depth + height - 1 > MAX_DEPTH:
            raise self._fatal(event, msg("the aliases expand to too much; write the values out"))
        return node

    def _no_anchor(self, name: str) -> str:
        if name in self.anchors:
            return msg("the alias *{name} stands inside what it names", name=name)
        return msg("the alias *{name} names no anchor above it", name=name)

    def _clean(self, event: Any) -> str:
        text: str = event.value
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self._report(
                event, msg("half of a surrogate pair is not text; write the whole character")
            )
            return text.encode("utf-8", "replace").decode("utf-8")
        if NUL in text:
            self._report(event, NO_NUL)
            return text.replace(NUL, "")
        return text

    def _report(self, event: Any, message: str) -> None:
        self.problems.append(self._fatal(event, message).problem)

    def _fatal(self, event: Any, message: str) -> _Fatal:
        return _Fatal(Problem(message, self.file, *_location(event.start_mark)))

    def _too_deep(self, mark: Any) -> _Fatal:
        message = msg("nested more than {n} levels deep; flatten it", n=MAX_DEPTH)
        return _Fatal(Problem(message, self.file, *_location(mark)))

    def _syntax(self, error: Any) -> _Fatal:
        mark = error.problem_mark or error.context_mark
        reason = parser_message(error.problem or error.context)
        return _Fatal(
            Problem(msg("not valid YAML: {reason}", reason=reason), self.file, *_location(mark))
        )

    def _unprintable(self, text: str, error: Any) -> _Fatal:
        before = text[: error.position]
        column = error.position - (before.rfind("\n") + 1) + 1
        message = msg(
            "the character U+{code:04X} is not allowed in a plan; remove it", code=error.character
        )
        return _Fatal(Problem(message, self.file, before.count("\n") + 1, column))


def _location(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _beside(key: Scalar, value: Node) -> Node:
    """ruamel locates a missing value at what comes next; the key is its location."""
    absent = isinstance(value, Scalar) and not value.text and not value.style
    return Scalar("", "", key.line, key.column) if absent else value


def _measure(node: Node) -> tuple[int, int]:
    """How many nodes there are in a tree, and how many levels."""
    if isinstance(node, Scalar):
        return 1, 1
    children = node.items if isinstance(node, Sequence) else tuple(v for _, v in node.entries)
    sizes = [_measure(child) for child in children]
    return 1 + sum(w for w, _ in sizes), 1 + max((h for _, h in sizes), default=0)
