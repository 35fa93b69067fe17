"""Stories and graphs have their words in Chinese too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files
from string import Formatter

import pytest

from holdfast.console.phrases import phrases_in
from holdfast.console.words.story import CHINESE
from holdfast.drawing.graph import STEPS, TASKS, run_words
from holdfast.drawing.tasks import STATUSES
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus
from holdfast.views.stories import conversations, plans, sessions

TOLD = ("holdfast.views.stories", "holdfast.drawing")


def phrases() -> Iterator[str]:
    """Every text that is handed to `say`."""
    for package in TOLD:
        for file in files(package).iterdir():
            if not file.name.endswith(".py"):
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _says(node.func) and node.args:
                    yield from _texts(node.args[0])


def _says(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "say"


def _texts(argument: ast.expr) -> Iterator[str]:
    """The text itself, or both of a choice."""
    either = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
    for node in either:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def tables() -> Iterator[str]:
    yield from (told for _, told in [*TASKS.values(), *STEPS.values(), *STATUSES.values()])
    yield from (*map(run_words, RunStatus), *EngineState)
    yield from (*plans._EDITS.values(), *filter(None, plans._REASONS.values()))
    yield from (*sessions._ENDS.values(), *conversations.PHASES.values())
    yield from conversations._WORK.values()
    tellers = (plans.PlanStory, sessions.SessionStory, conversations.ConversationStory)
    yield from (one.engine for one in tellers)


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("phrase", sorted({*phrases(), *tables()}))
def test_every_phrase_has_its_words_in_chinese(phrase: str) -> None:
    assert places(CHINESE[phrase]) == places(phrase)


def test_a_time_to_come_is_told_by_how_far_away_it_is() -> None:
    assert phrases_in("en").due(1012.0, 1000.0) == "in 12 s"
    assert phrases_in("zh").due(1012.0, 1000.0) == "12 秒后"
    assert phrases_in("en").due(1000.1, 1000.0) == "in a moment"
    assert phrases_in("zh").due(1000.1, 1000.0) == "稍后"
    assert phrases_in("en").due(1000.0, 1000.0) == "at once"
