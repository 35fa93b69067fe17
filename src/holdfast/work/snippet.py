"""What is wrong with a code snippet, said to the author of the plan.

Python's own compiler finds and words most mistakes best, so it is asked first; Monty knows what
its smaller Python leaves out and what happened while the snippet ran. Monty gives no place for a
snippet that ran out of time or memory: then the loops of the snippet are named instead.
"""

from __future__ import annotations

import ast
import re
import warnings

from pydantic_monty import Frame, MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

from holdfast.errors import SnippetError
from holdfast.i18n.message import joined, msg
from holdfast.source.snippets import SnippetProblem, size_problem

_NEVER_SET = msg("the snippet never sets `result`; end it with `result = {{...}}`")
_NO_OUTSIDE = msg("a snippet has no files, no network and no environment: pass what it needs in")
_LOOPS = (ast.While, ast.For, ast.AsyncFor, ast.comprehension)


def first_problem(snippet: str) -> SnippetProblem | None:
    """What Python itself refuses, and a snippet that has no way to set `result`."""
    return _syntax_problem(snippet) or _without_result(snippet)


def sandbox_problem(error: MontyError, *, lines_before: int) -> SnippetProblem:
    """What Monty refused to parse, `lines_before` lines of ours standing before the snippet."""
    frames = _frames(error)
    line, column = (frames[-1].line, frames[-1].column) if frames else (lines_before + 1, 1)
    return _plain(_message(error)), max(line - lines_before, 1), max(column, 1)


def explain(snippet: str, error: MontyError) -> SnippetError:
    """Why Monty gave a snippet up, with its line."""
    frames = _frames(error)
    if _is_refused_syntax(error, frames):
        return _refused_syntax(snippet, error)
    if frames and frames[-1].line > _line_count(snippet):
        return refused_result(snippet, _hand_over(error))
    told = _loops(snippet, _limit(error)) if _is_limit(error) else _failure(error)
    return SnippetError(_at_line(frames[-1].line, told) if frames else told)


def refused_result(snippet: str, message: str) -> SnippetError:
    """`message`, placed where the snippet last sets `result`."""
    lines = [line for node in _nodes(snippet) if (line := _line_setting_result(node))]
    return SnippetError(_at_line(max(lines), message) if lines else message)


def _at_line(line: int, problem: str) -> str:
    return msg("line {line}: {problem}", line=line, problem=problem)


def line_at(snippet: str, offset: int) -> int:
    """The line of a UTF-8 byte offset."""
    return snippet.encode()[:offset].count(b"\n") + 1


def _syntax_problem(snippet: str) -> SnippetProblem | None:
    try:
        if (problem := size_problem(snippet)) is not None:
            return problem
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(snippet, "<snippet>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        return error.msg, max(error.lineno or 1, 1), max(error.offset or 1, 1)
    except (RecursionError, MemoryError):
        return msg("the snippet is nested too deeply"), 1, 1
    except ValueError as error:
        return str(error), 1, 1
    return None


def _without_result(snippet: str) -> SnippetProblem | None:
    if any(_line_setting_result(node) for node in _nodes(snippet)):
        return None
    return _NEVER_SET, _line_count(snippet), 1


def _line_setting_result(node: ast.AST) -> int:
    """The node's line if it binds the name `result`, else 0."""
    match node:
        case ast.Name(id="result", ctx=ast.Store()) | ast.MatchAs(name="result"):
            return node.lineno
        case ast.FunctionDef(name="result") | ast.ClassDef(name="result"):
            return node.lineno
    return 0


def _nodes(snippet: str) -> list[ast.AST]:
    if _syntax_problem(snippet) is not None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(ast.walk(ast.parse(snippet)))


def _line_count(snippet: str) -> int:
    return snippet.count("\n") + 1


def _is_refused_syntax(error: MontyError, frames: list[Frame]) -> bool:
    """Monty reports syntax that it lacks as a NotImplementedError outside of any function."""
    unsupported = isinstance(error.exception(), NotImplementedError)
    return isinstance(error, MontySyntaxError) or (
        unsupported and bool(frames) and frames[-1].function_name is None
    )


def _refused_syntax(snippet: str, error: MontyError) -> SnippetError:
    message, line, _ = _syntax_problem(snippet) or sandbox_problem(error, lines_before=0)
    return SnippetError(f"line {line}: {message}")


def _is_limit(error: MontyError) -> bool:
    """A snippet may raise such errors itself, but not with Monty's wording."""
    match error.exception():
        case RecursionError():
            return True
        case TimeoutError() | MemoryError():
            return re.search("limit exceeded|its memory limit", _message(error)) is not None
    return isinstance(error, MontyCrashedError)


def _limit(error: MontyError) -> str:
    match error.exception():
        case RecursionError():
            return msg("the snippet's calls are nested more than 200 deep")
        case MemoryError():
            return msg("the snippet used more than its 32 MB of memory")
    if isinstance(error, MontyCrashedError) and not error.timed_out:
        return msg("the snippet brought its sandbox down")
    return msg("the snippet ran longer than its 1 s")


def _loops(snippet: str, problem: str) -> str:
    """The problem, and where the time or the memory may have gone."""
    loops = [
        node.target if isinstance(node, ast.comprehension) else node
        for node in _nodes(snippet)
        if isinstance(node, _LOOPS)
    ]
    lines = sorted({loop.lineno for loop in loops})
    if not lines:
        return problem
    listed = ", ".join(map(str, lines))
    return msg("{problem}; it loops at line {lines}", problem=problem, lines=listed)


def _hand_over(error: MontyError) -> str:
    match error.exception():
        case NameError():
            return _NEVER_SET
        case RecursionError():
            return msg("`result` is nested too deeply")
        case MemoryError():
            return msg("`result` is too large")
    return msg("`result` cannot be kept as JSON: {reason}", reason=_plain(_message(error)))


def _failure(error: MontyError) -> str:
    text = _plain(str(error))
    match error.exception():
        case ModuleNotFoundError():
            return msg(
                "{text}; a snippet has only the sandbox's own modules, such as json, re, math",
                text=text,
            )
        case PermissionError():
            return joined("; ", (text, _NO_OUTSIDE))
        case RuntimeError() if "not supported in this environment" in text:
            return joined("; ", (text, _NO_OUTSIDE))
    return text


def _frames(error: MontyError) -> list[Frame]:
    """The frames that stand in the snippet, not in a string that it evaluates."""
    if not isinstance(error, MontySyntaxError | MontyRuntimeError):
        return []
    return [frame for frame in error.traceback() if frame.filename != "<string>"]


def _message(error: MontyError) -> str:
    if isinstance(error, MontySyntaxError | MontyRuntimeError):
        return error.display("msg")
    return str(error)


def _plain(message: str) -> str:
    message = re.sub(r"^NotImplementedError: |Internal error in monty: ", "", message)
    before, lacking, what = message.partition("The monty syntax parser does not yet support ")
    told = msg("snippets do not have {what}", what=what) if lacking else ""
    return f"{before}{told}" if before else told
