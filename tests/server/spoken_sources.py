"""Every text in the source that a person may come to read, found in the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from string import Formatter

from holdfast.server import words_cards
from holdfast.server.spoken import PHRASES, SENTENCES

HOLE = "\0"


def texts_in(module: str) -> Iterator[str]:
    """The texts of more than one word, what varies replaced; docstrings aside."""
    path = files("holdfast").joinpath(*module.split("/"))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Expr)
        for part in ([node.value] if isinstance(node, ast.Expr) else ast.walk(node))
        if part is not node and isinstance(part, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                part.value if isinstance(part, ast.Constant) else HOLE for part in node.values
            )
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield from [node.value] if isinstance(node.value, str) else []


def is_prose(text: str) -> bool:
    """Whether somebody would read it: two words of letters at least."""
    return len(re.findall(r"(?<![\w.-])[A-Za-z`']{2,}(?![\w(=-])", text.replace(HOLE, " "))) >= 2


KEYS = tuple({**SENTENCES, **PHRASES, **words_cards.LINES, **words_cards.LABELS})


def _plain(key: str) -> str:
    parts = Formatter().parse(key)
    return "".join(literal + (HOLE if name is not None else "") for literal, name, _, _ in parts)


PLAIN = tuple(map(_plain, KEYS))


def _own(text: str) -> int:
    return len(text.replace(HOLE, ""))


def _shape(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(re.escape(HOLE), "(?s:.*)"))


SHAPES = tuple((_shape(one), _own(one)) for one in PLAIN)


def is_covered(text: str) -> bool:
    """Whether the catalogue has the text, as a message or as a part of one."""
    bare = text.strip().strip("; ")
    part = _shape(bare)
    within = any(part.search(one) for one in PLAIN)
    return within or any(shape.fullmatch(bare) for shape, own in SHAPES if own >= 0.6 * _own(bare))


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
    }
)
"""What is told to a model; people see it only as what the model was told."""

OURS_TO_MEND = frozenset(
    {
        f"{HOLE} has no work to do outside",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'",
        "^NotImplementedError: |Internal error in monty: ",
        "The monty syntax parser does not yet support",
        "not supported in this environment",
        "limit exceeded|its memory limit",
        "the answer to a request could not be kept: %s",
        "fingerprints of requests",
        "answers to requests",
        "Callable[[Claimed, Request, Services], Awaitable[Response]]",
        "run %s: step %s raised at attempt %d\n%s",
        "run %s could not start %s",
        "run %s could not decide %s",
        "a child run is born with its parent's start",
        "a conclusion waited for something",
        "only the listener of a plan runs code, or concludes",
    }
)
"""Mistakes of ours, the log's words, names of keys: nobody is told."""

SILENT = FOR_MODELS | OURS_TO_MEND

SPEAKING = (
    "core/approval.py",
    "core/forms/from_tools.py",
    "core/forms/lost_results.py",
    "core/forms/problems.py",
    "core/forms/rules.py",
    "core/forms/shapes.py",
    "core/forms/validation.py",
    "core/forms/values.py",
    "core/language/conditions.py",
    "core/language/facts.py",
    "core/language/judgement.py",
    "core/language/strict.py",
    "core/source/agentcheck.py",
    "core/source/agentfile.py",
    "core/source/asking.py",
    "core/source/check.py",
    "core/source/flow.py",
    "core/source/forms.py",
    "core/source/names.py",
    "core/source/numbers.py",
    "core/source/planfile.py",
    "core/source/shape.py",
    "core/source/snippets.py",
    "core/source/soundness.py",
    "core/source/yaml.py",
    "core/plan/answers.py",
    "core/plan/compiled.py",
    "core/plan/decide.py",
    "core/plan/draft.py",
    "core/plan/follow_up.py",
    "core/plan/outputs.py",
    "core/plan/people.py",
    "core/plan/planner.py",
    "core/plan/questions.py",
    "core/plan/steps.py",
    "core/run/decision.py",
    "core/run/steps.py",
    "core/react/answers.py",
    "core/react/calls.py",
    "core/react/decide.py",
    "core/react/follow_up.py",
    "core/react/outcome.py",
    "core/react/questions.py",
    "core/react/thinking.py",
    "core/conversation/answers.py",
    "core/conversation/decide.py",
    "core/conversation/draft.py",
    "core/conversation/follow_up.py",
    "core/conversation/phases.py",
    "core/conversation/questions.py",
    "core/conversation/schedule.py",
    "core/conversation/tasks.py",
    "core/interactions/answers.py",
    "core/interactions/calling.py",
    "core/interactions/consequences.py",
    "core/interactions/keeping.py",
    "core/interactions/opening.py",
    "core/interactions/option_ids.py",
    "core/interactions/proposals.py",
    "core/interactions/requests.py",
    "core/interactions/wire.py",
    "runtime/dispatch.py",
    "runtime/performing.py",
    "runtime/starting.py",
    "runtime/tracebacks.py",
    "runtime/machines.py",
    "work/calling.py",
    "work/confidence.py",
    "work/failures.py",
    "work/model_failures.py",
    "work/failing.py",
    "work/model_names.py",
    "work/outcomes.py",
    "work/snippet.py",
    "desk.py",
    "results.py",
    "routing.py",
    "sessions.py",
    "server/credentials.py",
    "server/guard.py",
    "server/idempotency.py",
    "server/limits.py",
    "server/principal.py",
    "server/problems.py",
    "server/questions.py",
    "server/run_stream.py",
    "server/shield.py",
    "server/showing.py",
    "server/tokens.py",
    "console/deeds.py",
    "console/pages_plans.py",
    "console/pages_run.py",
    "console/views_node.py",
)
"""Where the words stand that people read in the console."""


def unsaid(module: str) -> set[str]:
    """The prose of a module that the catalogue does not have."""
    prose = {text for text in texts_in(module) if " " in text.strip() and is_prose(text)}
    return {text for text in prose - SILENT if not is_covered(text)}
