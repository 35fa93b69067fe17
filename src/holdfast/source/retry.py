"""Retry policies as authors write them: a number of attempts, or the whole policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from holdfast.model.retry import RetryPolicy
from holdfast.source.locations import Finding, Path
from holdfast.source.nodes import Mapping, Node
from holdfast.source.numbers import LONGEST_WAIT, range_problems
from holdfast.source.shape import ShapeReader

MOST_ATTEMPTS: Final = 100

_USUAL: Final = RetryPolicy()
RETRY_KEYS: Final = tuple(each.name for each in fields(RetryPolicy))
_NUMBERS: Final = tuple(name for name in RETRY_KEYS if name != "attempts")


def read_retry(shape: ShapeReader, node: Node | None, path: Path) -> RetryPolicy:
    if node is None:
        return _USUAL
    if not isinstance(node, Mapping):
        return RetryPolicy(attempts=shape.integer(node, path, _USUAL.attempts))
    found = shape.entries(node, path, known=RETRY_KEYS)
    attempts = shape.integer(found.get("attempts"), (*path, "attempts"), _USUAL.attempts)
    numbers = {
        key: shape.number(found.get(key), (*path, key), getattr(_USUAL, key)) for key in _NUMBERS
    }
    return RetryPolicy(attempts, **numbers)


def retry_problems(retry: RetryPolicy, path: Path) -> Iterator[Finding]:
    yield from range_problems(retry.attempts, 1, MOST_ATTEMPTS, (*path, "attempts"))
    yield from range_problems(retry.initial, 0, LONGEST_WAIT, (*path, "initial"))
    yield from range_problems(retry.factor, 1, 100, (*path, "factor"))
    yield from range_problems(retry.maximum, 0, LONGEST_WAIT, (*path, "maximum"))
    yield from range_problems(retry.jitter, 0, 1, (*path, "jitter"))
    yield from range_problems(retry.longest_wait, 0, LONGEST_WAIT, (*path, "longest_wait"))
