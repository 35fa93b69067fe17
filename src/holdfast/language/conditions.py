"""Conditions: small questions about tasks and results, such as `002.status == Done`.

`condition_grammar` reads the text; here its nodes are checked and compiled once to nested closures,
because a condition is asked far more often than it is read.

A condition asks about the world and does not fail: what is missing is null, an ordering of values
that have no common order is false, and true is not 1. A status word such as `Done` is a value
beside an operator; where a yes or no is wanted it asks whether every trigger task has that status.
What could only ever be constant there (a text, a number, a status path that is not compared) is
refused, since its author meant something else.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

from holdfast.i18n.message import joined, msg
from holdfast.language.condition_nodes import (
    STATUSES,
    Both,
    Compare,
    Either,
    Items,
    Literal,
    Misread,
    Node,
    Not,
    Read,
    Status,
    read_nodes,
)
from holdfast.language.facts import ROOTS, Facts, Path, reader
from holdfast.language.spelling import remedy
from holdfast.model.values import Json

MAX_NESTING: Final = 50

_PARSED_KEPT: Final = 16_384
_CHARACTERS_SHOWN: Final = 40
_FACTS_SHOWN: Final = 8
_MISSING: Final = object()

Triggers: TypeAlias = tuple[str, ...]
Test: TypeAlias = Callable[[Triggers, Facts], bool]
Value: TypeAlias = Callable[[Triggers, Facts], Json]


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition; with `asks_triggers`, a status word in it asks every trigger task."""

    text: str
    paths: tuple[Path, ...] = field(compare=False)
    task_ids: frozenset[str] = field(compare=False)
    asks_triggers: bool = field(compare=False)
    test: Test = field(compare=False, repr=False)


@lru_cache(maxsize=_PARSED_KEPT)
def parse(text: str) -> Condition:
    """The condition, or ConditionError with a caret under the mistake."""
    try:
        root = read_nodes(text)
        test = _test(root, MAX_NESTING)
    except Misread as mistake:
        raise mistake.within(text) from None
    nodes = tuple(_walk(root))
    paths = tuple(dict.fromkeys(node.path for node in nodes if isinstance(node, Read)))
    return Condition(
        text=text,
        paths=paths,
        task_ids=frozenset(path[0] for path in paths if path[0] not in ROOTS),
        asks_triggers=any(_asks_triggers(node) for node in (Not(root, 1), *nodes)),
        test=test,
    )


def holds(condition: Condition, triggers: Triggers, facts: Facts) -> bool:
    return condition.test(triggers, facts)


def explain(condition: Condition, triggers: Triggers, facts: Facts) -> str:
    """The condition and what the things it asks about are now, as `Done (002 is Running)`."""
    asked = {(task_id, "status"): None for task_id in triggers if condition.asks_triggers}
    paths = list(asked | dict.fromkeys(condition.paths))
    found = [_describe(path, facts) for path in paths[:_FACTS_SHOWN]]
    if len(paths) > _FACTS_SHOWN:
        found.append(msg("and {n} more", n=len(paths) - _FACTS_SHOWN))
    if not found:
        return condition.text
    return msg("{condition} ({facts})", condition=condition.text, facts=joined(", ", found))


def _describe(path: Path, facts: Facts) -> str:
    is_status = path[1:] == ("status",) and path[0] not in ROOTS
    name = path[0] if is_status else ".".join(path)
    value = reader(path, lambda facts: _MISSING)(facts)
    if value is _MISSING:
        return msg("{name} is missing", name=name)
    shown = value if is_status else json.dumps(value, ensure_ascii=False)
    if len(shown) > _CHARACTERS_SHOWN:
        shown = shown[:_CHARACTERS_SHOWN] + "…"
    return msg("{name} is {value}", name=name, value=shown)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in _children(node):
        yield from _walk(child)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Compare(left=left, right=right):
            return (left, right)
        case Not(operand=operand):
            return (operand,)
        case Both(operands=children) | Either(operands=children) | Items(items=children):
            return children
        case Literal() | Status() | Read():
            return ()
        case _:
            assert_never(node)


def _asks_triggers(node: Node) -> bool:
    wants_yes_or_no = isinstance(node, Not | Both | Either)
    return wants_yes_or_no and any(isinstance(child, Status) for child in _children(node))


def _test(node: Node, depth: int) -> Test:
    """The node where a yes or no is wanted."""
    if not depth:
        raise Misread(
            msg("nested deeper than {n}: split the condition", n=MAX_NESTING), node.column
        )
    match node:
        case Status(name=name):
            return _every_trigger(name)
        case Compare():
            return _comparison(node, depth)
        case Not(operand=operand):
            return _negation(_test(operand, depth - 1))
        case Both(operands=operands):
            return _conjunction(tuple(_test(operand, depth - 1) for operand in operands))
        case Either(operands=operands):
            return _disjunction(tuple(_test(operand, depth - 1) for operand in operands))
        case Literal(value=bool(answer)):
            return lambda triggers, facts: answer
        case Read(path=path) if not _is_status(node):
            read = reader(path, _null)
            return lambda triggers, facts: bool(read(facts))
        case Read() | Literal() | Items():
            raise Misread(msg("not a question: compare it with something"), node.column)
        case _:
            assert_never(node)


def _value(node: Node, depth: int) -> Value:
    """The node beside an operator or in a list."""
    if not depth:
        raise Misread(
            msg("nested deeper than {n}: split the condition", n=MAX_NESTING), node.column
        )
    match node:
        case Literal(value=constant) | Status(name=constant):
            return lambda triggers, facts: constant
        case Read(path=path):
            read = reader(path, _null)
            return lambda triggers, facts: read(facts)
        case Items(items=items):
            return _sequence(tuple(_value(item, depth - 1) for item in items))
        case Compare() | Not() | Both() | Either():
            return _test(node, depth)
        case _:
            assert_never(node)


def _null(facts: Facts) -> None:
    """What is missing, to a condition."""


def _sequence(items: tuple[Value, ...]) -> Value:
    return lambda triggers, facts: [item(triggers, facts) for item in items]


def _every_trigger(name: str) -> Test:
    def test(triggers: Triggers, facts: Facts) -> bool:
        try:
            for task_id in triggers:
                if facts.status_of(task_id) != name:
                    return False
        except LookupError:
            return False
        return bool(triggers)

    return test


def _negation(operand: Test) -> Test:
    return lambda triggers, facts: not operand(triggers, facts)


def _conjunction(operands: tuple[Test, ...]) -> Test:
    def test(triggers: Triggers, facts: Facts) -> bool:
        for operand in operands:  # noqa: SIM110 - a generator would cost twice the time
            if not operand(triggers, facts):
                return False
        return True

    return test


def _disjunction(operands: tuple[Test, ...]) -> Test:
    def test(triggers: Triggers, facts: Facts) -> bool:
        for operand in operands:  # noqa: SIM110 - a generator would cost twice the time
            if operand(triggers, facts):
                return True
        return False

    return test


def _comparison(node: Compare, depth: int) -> Test:
    _check_status_words(node.left, node.right)
    _check_status_words(node.right, node.left)
    match node:
        case Compare(Read(path=path), "==", Status(name=name)) if _is_status(node.left):
            return _task_has_status(path[0], name)
    left, right = _value(node.left, depth - 1), _value(node.right, depth - 1)
    compare = _OPERATORS[node.operator]
    return lambda triggers, facts: compare(left(triggers, facts), right(triggers, facts))


def _task_has_status(task_id: str, name: str) -> Test:
    def test(triggers: Triggers, facts: Facts) -> bool:
        try:
            return facts.status_of(task_id) == name
        except LookupError:
            return False

    return test


def _is_status(node: Node) -> bool:
    return isinstance(node, Read) and node.path[0] not in ROOTS and node.path[1] == "status"


def _check_status_words(asked: Node, other: Node) -> None:
    """A quoted status that no task can have would make the comparison a constant."""
    if not _is_status(asked):
        return
    for node in _children(other) if isinstance(other, Items) else (other,):
        if isinstance(node, Literal) and node.value is not None and node.value not in STATUSES:
            shown = json.dumps(node.value, ensure_ascii=False)
            hint = remedy(
                str(node.value), STATUSES, msg("use {names}", names=", ".join(sorted(STATUSES)))
            )
            raise Misread(
                msg("{word} is no task status: {hint}", word=shown, hint=hint), node.column
            )


def equal(left: Json, right: Json) -> bool:
    """The same JSON: 1 is 1.0, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return bool(left == right)


def _contained(item: Json, container: Json) -> bool:
    if isinstance(container, list):
        return any(equal(item, member) for member in container)
    if isinstance(container, str | dict):
        return isinstance(item, str) and item in container
    return False


def _ordering(compare: Callable[[Json, Json], bool]) -> Callable[[Json, Json], bool]:
    def ordered(left: Json, right: Json) -> bool:
        kind = _orderable(left)
        return kind is not None and kind is _orderable(right) and compare(left, right)

    return ordered


def _orderable(value: Json) -> type | None:
    if isinstance(value, str):
        return str
    return float if isinstance(value, int | float) and not isinstance(value, bool) else None


_OPERATORS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _ordering(operator.lt),
    ">": _ordering(operator.gt),
    "<=": _ordering(operator.le),
    ">=": _ordering(operator.ge),
    "in": _contained,
    "not in": lambda left, right: not _contained(left, right),
}
