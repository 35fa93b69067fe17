"""Snippets as text: what shows in a piece of plan code without running it.

Only Python's own grammar is asked here; what the sandbox leaves out of the language is known
to the sandbox.
"""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from typing import Final, TypeAlias

SnippetProblem: TypeAlias = tuple[str, int, int]
"""Message, line and column; both count from 1 within the snippet."""

_WORDS_OF_CHOICE: Final = ("target_task", "target_status", "task_updates")


@lru_cache(maxsize=1024)
def syntax_problems(snippet: str) -> tuple[SnippetProblem, ...]:
    """What Python itself refuses."""
    try:
        _parse(snippet)
    except SyntaxError as error:
        return ((error.msg, error.lineno or 1, error.offset or 1),)
    except ValueError as error:
        return ((str(error), 1, 1),)
    except (RecursionError, MemoryError):
        return (("nested too deep", 1, 1),)
    return ()


def chooses_target(snippet: str) -> bool:
    """Whether it may decide for itself which task to move, or where to."""
    return any(word in snippet for word in _WORDS_OF_CHOICE)


@lru_cache(maxsize=1024)
def texts_in(snippet: str) -> frozenset[str]:
    """The strings that it spells out; none when Python cannot read it."""
    if syntax_problems(snippet):
        return frozenset()
    constants = (node.value for node in ast.walk(_parse(snippet)) if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def _parse(snippet: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(snippet)
