"""Retry policies as authors write them: a number of attempts, or the whole policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.model.retry import RetryPolicy
from holdfast.source.locations import Finding, Path
from holdfast.source.nodes import Mapping, Node
from holdfast.source.numbers import LONGEST_WAIT, range_problems
from holdfast.source.records import Keys
from holdfast.source.shape import ShapeReader

MOST_ATTEMPTS: Final = 100

_USUAL: Final = RetryPolicy()
RETRY: Final = Keys(RetryPolicy)


def read_retry(shape: ShapeReader, node: Node | None, path: Path, usual: Any) -> Any:
    if node is None or isinstance(node, Mapping):
        return usual if node is None else RETRY.read(shape, node, path)
    return RetryPolicy(attempts=shape.integer(node, path, _USUAL.attempts))


def retry_problems(retry: RetryPolicy, path: Path) -> Iterator[Finding]:
    yield from range_problems(retry.attempts, 1, MOST_ATTEMPTS, (*path, "attempts"))
    yield from range_problems(retry.initial, 0, LONGEST_WAIT, (*path, "initial"))
    yield from range_problems(retry.factor, 1, 100, (*path, "factor"))
    yield from range_problems(retry.maximum, 0, LONGEST_WAIT, (*path, "maximum"))
    yield from range_problems(retry.jitter, 0, 1, (*path, "jitter"))
    yield from range_problems(retry.longest_wait, 0, LONGEST_WAIT, (*path, "longest_wait"))
