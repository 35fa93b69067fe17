"""Judgements: what a condition says about the arguments of a call, or that it cannot be told.

An argument is written as its bare name, `amount > 1000`, or as `args.amount`; dots lead into it.
The grammar is that of plan conditions, but the answer has three values. A plan's condition asks
about a world that it knows; here a model chose the arguments, and a rule that quietly turned false
because an amount came as text would let the call through. So nothing is concluded from an argument
that is absent or null, nor from values of different kinds: there the answer is None. It travels
as in Kleene's logic: `or` is still true beside a true part, `and` still false beside a false one,
and everything else that depends on it is None too. Only a comparison with the word null asks about
absence itself, and is always answered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Final, TypeAlias, assert_never

from holdfast.i18n.message import msg
from holdfast.language.condition_nodes import (
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
from holdfast.language.conditions import MAX_NESTING
from holdfast.language.facts import Path, step_into
from holdfast.model.values import Json, JsonObject

_PARSED_KEPT: Final = 4_096

Verdict: TypeAlias = bool | None
Value: TypeAlias = Callable[[JsonObject], Json]
Judge: TypeAlias = Callable[[JsonObject], Verdict]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A parsed condition over arguments; `judge` gives True, False, or None for no telling."""

    text: str
    judge: Judge = field(compare=False, repr=False)


@lru_cache(maxsize=_PARSED_KEPT)
def parse(text: str) -> Judgement:
    """The condition, or ConditionError with a caret under the mistake."""
    try:
        return Judgement(text, _question(read_nodes(text, of_arguments=True), MAX_NESTING))
    except Misread as mistake:
        raise mistake.within(text) from None


def _question(node: Node, depth: int) -> Judge:
    """The node where a yes or no is wanted."""
    if not depth:
        raise Misread(
            msg("nested deeper than {n}: split the condition", n=MAX_NESTING), node.column
        )
    match node:
        case Compare():
            return _comparison(node, depth - 1)
        case Not(operand=operand):
            return _negation(_question(operand, depth - 1))
        case Both(operands=operands):
            parts = tuple(_question(operand, depth - 1) for operand in operands)
            return lambda args: _all(part(args) for part in parts)
        case Either(operands=operands):
            parts = tuple(_question(operand, depth - 1) for operand in operands)
            return lambda args: _any(part(args) for part in parts)
        case Literal(value=bool(answer)):
            return lambda args: answer
        case Read(path=path):
            return _truth(_argument(path))
        case Literal() | Items() | Status():
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
            return lambda args: constant
        case Read(path=path):
            return _argument(path)
        case Items(items=items):
            values = tuple(_value(item, depth - 1) for item in items)
            return lambda args: [value(args) for value in values]
        case Compare() | Not() | Both() | Either():
            return _question(node, depth)
        case _:
            assert_never(node)


def _argument(path: Path) -> Value:
    def read(args: JsonObject) -> Json:
        try:
            return reduce(step_into, path[1:], args)
        except LookupError:
            return None

    return read


def _truth(value: Value) -> Judge:
    def judge(args: JsonObject) -> Verdict:
        found = value(args)
        return None if found is None else bool(found)

    return judge


def _negation(part: Judge) -> Judge:
    return lambda args: _opposite(part(args))


def _comparison(node: Compare, depth: int) -> Judge:
    match node:
        case Compare(Read(path=path), "==" | "!=" as sign, Literal(value=None)):
            return _absence(_argument(path), sign == "==")
        case Compare(Literal(value=None), "==" | "!=" as sign, Read(path=path)):
            return _absence(_argument(path), sign == "==")
    left, right = _value(node.left, depth), _value(node.right, depth)
    compare = _OPERATORS[node.operator]
    return lambda args: compare(left(args), right(args))


def _absence(value: Value, wanted: bool) -> Judge:
    return lambda args: (value(args) is None) is wanted


def _opposite(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    return _opposite(_any(_opposite(verdict) for verdict in verdicts))


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    if True in found:
        return True
    return None if None in found else False


def _same(left: Json, right: Json) -> Verdict:
    kind = _kind(left)
    if kind is None or kind is not _kind(right):
        return None
    if kind is list:
        return len(left) == len(right) and _all(map(_same, left, right))
    if kind is dict:
        return left.keys() == right.keys() and _all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _contained(item: Json, container: Json) -> Verdict:
    if isinstance(container, list):
        return _any(_same(item, member) for member in container)
    if isinstance(item, str) and isinstance(container, str | Mapping):
        return item in container
    return None


def _ordering(compare: Callable[[Json, Json], bool]) -> Callable[[Json, Json], Verdict]:
    def ordered(left: Json, right: Json) -> Verdict:
        kind = _kind(left)
        orderable = kind in (float, str) and kind is _kind(right)
        return compare(left, right) if orderable else None

    return ordered


def _kind(value: Json) -> type | None:
    match value:
        case bool():
            return bool
        case int() | float():
            return float
        case str():
            return str
        case list():
            return list
        case Mapping():
            return dict
    return None


_OPERATORS: Final[dict[str, Callable[[Json, Json], Verdict]]] = {
    "==": _same,
    "!=": lambda left, right: _opposite(_same(left, right)),
    "<": _ordering(operator.lt),
    ">": _ordering(operator.gt),
    "<=": _ordering(operator.le),
    ">=": _ordering(operator.ge),
    "in": _contained,
    "not in": lambda left, right: _opposite(_contained(left, right)),
}
