"""Every text in the source that a person may come to read, found in the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files

HOLE = "\0"


def texts_in(module: str) -> Iterator[str]:
    """The texts that are no messages, what varies replaced; docstrings aside."""
    path = files("holdfast").joinpath(*module.split("/"))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(part)
        for node in ast.walk(tree)
        for part in _beside(node)
        if part is not node and isinstance(part, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                part.value if isinstance(part, ast.Constant) else HOLE for part in node.values
            )
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield from [node.value] if isinstance(node.value, str) else []


def _beside(node: ast.AST) -> Iterable[ast.AST]:
    """What is no text of its own: docstrings, parts of others, the ids of messages."""
    match node:
        case ast.Expr(value=value):
            return [value]
        case ast.JoinedStr():
            return ast.walk(node)
        case ast.Call(func=ast.Name(id="msg" | "msgid"), args=[form]):
            return [form]
    return []


def is_prose(text: str) -> bool:
    """Whether a person would read it: two words of letters at least."""
    return len(re.findall(r"(?<![\w.-])[A-Za-z`']{2,}(?![\w(=-])", text.replace(HOLE, " "))) >= 2


FOR_MODELS = frozenset(
    {
        f"a person wants other tasks than these: {HOLE}. They said: {HOLE}",
        "It was not run: {by} refused.",
        "It was not run: {by} asks for something else. Think again.",
        "It was not run: {by} skipped it. Go on without it.",
        "{by} refused.",
        "{by} asks you to think again.",
        "{by} skipped this. Go on without it.",
        f"Everything for {HOLE} is said to be done. Check the outcome of your part.",
        "What is known:",
        "There is no result: this call was not carried out.",
    }
)
"""What is told to a model; people see it only as what the model was told."""

OURS_TO_MEND = frozenset(
    {
        f"{HOLE} has no work to do outside",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'",
        "^NotImplementedError: |Internal error in monty: ",
        "The monty syntax parser does not yet support ",
        "not supported in this environment",
        "limit exceeded|its memory limit",
        "the answer to a request could not be kept: %s",
        "answers to %d requests could not be kept: %s",
        "fingerprints of requests",
        "not in",
        "what is missing",
        "answers to requests",
        "Callable[[Claimed, Request, Services], Awaitable[Response]]",
        "run %s: step %s raised at attempt %d\n%s",
        "at least one effect must be allowed at a time",
        "a background task failed",
        "run %s could not be recorded",
        "run %s waits for the journal: %s",
        "a case waits for the journal: %s",
        "nothing is learned of run %s",
        "run %s could not start %s",
        "run %s could not decide %s",
        "a child run is prepared with its parent's start",
        "a conclusion waited for something",
        "only the listener of a plan runs code, or concludes",
        f"results without a call in the turn before them: {HOLE}",
        f"{HOLE}, whose traceback cannot be told",
        "Traceback (most recent call last):\n",
        "\nIt led to this:\n\n",
    }
)
"""Mistakes of ours, the log's words, names of keys: no person reads them in another language."""

SILENT = FOR_MODELS | OURS_TO_MEND

SPEAKING = (
    "core/approval.py",
    "core/decider.py",
    "forms/from_tools.py",
    "forms/lost_results.py",
    "forms/problems.py",
    "forms/rules.py",
    "forms/shapes.py",
    "forms/validation.py",
    "forms/values.py",
    "language/conditions.py",
    "language/facts.py",
    "language/judgement.py",
    "language/strict.py",
    "source/agentcheck.py",
    "source/agentfile.py",
    "source/asking.py",
    "source/check.py",
    "source/flow.py",
    "source/forms.py",
    "source/names.py",
    "source/numbers.py",
    "source/planfile.py",
    "source/shape.py",
    "source/snippets.py",
    "source/soundness.py",
    "source/yaml.py",
    "core/plan/compiled.py",
    "core/plan/decide.py",
    "core/plan/builder.py",
    "core/plan/interventions.py",
    "core/plan/planner.py",
    "core/plan/questions.py",
    "core/plan/steps.py",
    "core/run/steps.py",
    "core/agent/steps.py",
    "core/agent/decide.py",
    "core/agent/state.py",
    "core/agent/questions.py",
    "core/conversation/decide.py",
    "core/conversation/builder.py",
    "core/conversation/phases.py",
    "core/conversation/questions.py",
    "core/conversation/schedule.py",
    "core/conversation/tasks.py",
    "core/interactions/answers.py",
    "core/interactions/calls.py",
    "core/interactions/listing.py",
    "core/interactions/checks.py",
    "core/interactions/requests.py",
    "core/interactions/wire.py",
    "runtime/background.py",
    "runtime/executor.py",
    "runtime/scheduler.py",
    "runtime/tracebacks.py",
    "runtime/turns.py",
    "runtime/machines.py",
    "work/driver.py",
    "work/confidence.py",
    "work/failures.py",
    "work/model_wire.py",
    "work/failed_attempts.py",
    "work/tracebacks.py",
    "work/models.py",
    "work/snippet.py",
    "interactions/service.py",
    "plans/results.py",
    "plans/routing.py",
    "agents/sessions.py",
    "server/auth/credentials.py",
    "server/auth/authentication.py",
    "server/middleware/idempotency.py",
    "server/auth/principal.py",
    "server/problems.py",
    "server/questions.py",
    "server/streams/run.py",
    "server/middleware/requests.py",
    "server/showing.py",
    "server/auth/tokens.py",
    "views/actions.py",
    "console/pages/plans.py",
    "console/pages/run.py",
    "console/views/node.py",
)
"""Where the words stand that people read in the console."""


def unsaid(module: str) -> set[str]:
    """The prose of a module that is no message, and is not known to need no translation."""
    prose = {text for text in texts_in(module) if " " in text.strip() and is_prose(text)}
    return prose - SILENT
