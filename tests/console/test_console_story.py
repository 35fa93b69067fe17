"""Stories and graphs have their words in Chinese too; what was can be seen again, at any event."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files
from string import Formatter

import pytest
from console_plans import an_office, started
from run_scene import chain, trip

from holdfast.console.phrases import phrases_in
from holdfast.console.words_story import CHINESE
from holdfast.drawing.graph import STEPS, TASKS, run_words
from holdfast.drawing.tasks import STATUSES
from holdfast.model import commands as c
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus
from holdfast.views import past as pasts
from holdfast.views.dry_run import dry_run
from holdfast.views.past import Past
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


async def test_any_moment_of_a_run_can_be_folded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "STRIDE", 7)
    async with an_office() as office:
        office.load_plan_text(chain(10))
        run_id = await started(office, "chain")
        now, past = await office.engine.state(run_id), Past()
        for seq in (now.version - 1, 3, 1, 20, now.version, now.version + 5):
            then = await past.state(office.journal, now, seq)
            assert then.version == min(seq, now.version)
        assert (await past.state(office.journal, now, 1)).status is RunStatus.RUNNING


async def test_a_look_at_the_past_reads_no_more_than_a_stride_again() -> None:
    async with an_office() as office:
        office.load_plan_text(chain(200))
        run_id = await started(office, "chain")
        now, past = await office.engine.state(run_id), Past()
        await past.state(office.journal, now, now.version - 1)
        read: list[int] = []
        journal_read = office.journal.read

        async def counted(run_id: str, after: int = 0, limit: int | None = None) -> object:
            read.append(limit or 0)
            return await journal_read(run_id, after, limit)

        office.journal.read = counted  # type: ignore[method-assign, assignment]
        await past.state(office.journal, now, now.version - 2)
        assert sum(read) <= pasts.STRIDE


async def test_what_would_come_of_a_press_is_known_beforehand() -> None:
    async with an_office() as office:
        state = await office.engine.state(await trip(office))
        resumed = dry_run(state, c.Resume("will"), 0.0)
        assert resumed is not None
        assert (resumed.again, resumed.stays) == (("L002",), ("L001",))
        cancelled = dry_run(state, c.Cancel("will"), 0.0)
        assert cancelled is not None
        assert len(cancelled.withdrawn) == 1
        assert dry_run(state, c.Skip("L001", "will"), 0.0) is None
        assert (await office.engine.state(state.run_id)).version == state.version
