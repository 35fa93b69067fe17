"""Dry run: what a condition can come to, given which statuses each task may have.

The answer is the set of possible verdicts. Only statuses are foreseen; a comparison that
reads a context or a value may come out either way, and parts of one condition are taken as
independent. Both errors are on the safe side: a verdict that is not in the set never
comes, and one that stands alone in it always does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.language.condition_nodes import (
    Both,
    Compare,
    Either,
    Items,
    Literal,
    Node,
    Not,
    Read,
    Status,
    read_nodes,
)
from holdfast.language.conditions import Condition
from holdfast.language.facts import ROOTS
from holdfast.model.values import Json

Verdicts: TypeAlias = frozenset[bool]
Statuses: TypeAlias = frozenset[str]
Outlook: TypeAlias = Callable[[str], Statuses]
"""The statuses that a task may have."""

EITHER_WAY: Final[Verdicts] = frozenset({True, False})


def may_hold(condition: Condition, triggers: tuple[str, ...], outlook: Outlook) -> bool:
    """Whether the condition can ever be true; an example settles most without a second parse."""
    if condition.test(triggers, _Example(outlook)):
        return True
    return True in foresee(read_nodes(condition.text), triggers, outlook)


def must_hold(condition: Condition, triggers: tuple[str, ...], outlook: Outlook) -> bool:
    return foresee(read_nodes(condition.text), triggers, outlook) == {True}


def foresee(node: Node, triggers: tuple[str, ...], outlook: Outlook) -> Verdicts:
    """What the condition may come to."""
    match node:
        case Status(name=name):
            return _all_of([_is_among(outlook(task_id), {name}) for task_id in triggers])
        case Not(operand=operand):
            return _negated(foresee(operand, triggers, outlook))
        case Both(operands=operands):
            return _all_of([foresee(each, triggers, outlook) for each in operands])
        case Either(operands=operands):
            denials = [_negated(foresee(each, triggers, outlook)) for each in operands]
            return _negated(_all_of(denials))
        case Compare():
            return _compared(node, outlook)
        case Literal(value=bool(answer)):
            return frozenset({answer})
        case _:
            return EITHER_WAY


@dataclass(frozen=True, slots=True)
class _Example:
    """Facts in which every task has the status that most conditions ask for."""

    outlook: Outlook
    names: Mapping[str, Json] = field(default_factory=dict)

    def status_of(self, task_id: str) -> str:
        possible = self.outlook(task_id)
        return next((each for each in ("Done", "Running") if each in possible), "NotStarted")

    def context_of(self, task_id: str) -> Mapping[str, Json]:
        return {}


def _compared(node: Compare, outlook: Outlook) -> Verdicts:
    left, right = node.left, node.right
    if _status_task(left) is None and node.operator in ("==", "!="):
        left, right = right, left
    task_id, wanted = _status_task(left), _words(right)
    if task_id is None or wanted is None:
        return EITHER_WAY
    match node.operator, right:
        case ("==", Status() | Literal()) | ("in", Items()):
            return _is_among(outlook(task_id), wanted)
        case ("!=", Status() | Literal()) | ("not in", Items()):
            return _negated(_is_among(outlook(task_id), wanted))
        case _:
            return EITHER_WAY


def _status_task(node: Node) -> str | None:
    match node:
        case Read(path=(task_id, "status")) if task_id not in ROOTS:
            return task_id
    return None


def _words(node: Node) -> set[str] | None:
    """The status words a side consists of, if it consists of nothing else."""
    match node:
        case Status(name=word) | Literal(value=str(word)):
            return {word}
        case Items(items=items):
            words = [_words(item) for item in items]
            return {word for each in words if each for word in each} if all(words) else None
    return None


def _is_among(possible: Statuses, wanted: set[str]) -> Verdicts:
    return frozenset(status in wanted for status in possible)


def _all_of(parts: list[Verdicts]) -> Verdicts:
    may_hold = all(True in part for part in parts)
    may_fail = any(False in part for part in parts)
    return frozenset({True} if may_hold else ()) | frozenset({False} if may_fail else ())


def _negated(verdicts: Verdicts) -> Verdicts:
    return frozenset(not verdict for verdict in verdicts)
