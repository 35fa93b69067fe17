"""Snippets as text: what shows in a piece of plan code without running it.

Only Python's own grammar is asked here; what the sandbox leaves out of the language is known
to the sandbox. Python reads and compiles a snippet in one piece, during which no other thread runs:
what that takes grows with its words and brackets, and fast with the functions inside others, so
both are bounded before.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from holdfast.i18n.message import msg

SnippetProblem: TypeAlias = tuple[str, int, int]
"""Message, line and column; both count from 1 within the snippet."""

MOST_PARTS: Final = 5_000
MOST_FUNCTIONS: Final = 200

_PART: Final = re.compile(r"\w+|[(\[{'\":]|\.\.\.")
_FUNCTIONS: Final = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.comprehension,
)
_WORDS_OF_CHOICE: Final = ("target_task", "target_status", "task_updates")


@lru_cache(maxsize=1024)
def syntax_problems(snippet: str) -> tuple[SnippetProblem, ...]:
    """What Python itself refuses, or takes too long to read."""
    try:
        problem = size_problem(snippet)
    except SyntaxError as error:
        return ((error.msg, error.lineno or 1, error.offset or 1),)
    except ValueError as error:
        return ((str(error), 1, 1),)
    except (RecursionError, MemoryError):
        return ((msg("nested too deep"), 1, 1),)
    return () if problem is None else (problem,)


def size_problem(snippet: str) -> SnippetProblem | None:
    """Why it is too large to be compiled; raises what Python says of what it cannot read."""
    parts = sum(1 for _ in islice(_PART.finditer(snippet), MOST_PARTS + 1))
    if parts > MOST_PARTS:
        return msg("it has more than {n:,} words, numbers, texts and brackets", n=MOST_PARTS), 1, 1
    functions = [node for node in ast.walk(_parse(snippet)) if isinstance(node, _FUNCTIONS)]
    if len(functions) > MOST_FUNCTIONS:
        return (
            msg("it has more than {n} functions, classes and comprehensions", n=MOST_FUNCTIONS),
            1,
            1,
        )
    return None


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
