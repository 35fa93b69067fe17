"""Commands that are printed, in the README or by a command, work when they are pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_scene import Command

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"holdfast [^\n`]*")
PAUSED = 4


def blocks(page: str, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


def pasted(line: str) -> list[str]:
    """The arguments of the first command in a line, without what labels it."""
    found = PRINTED.search(line)
    assert found is not None, line
    return shlex.split(found[0].partition("  (")[0], comments=True)[1:]


@pytest.fixture(params=["README.md", "README.zh-CN.md"])
def page(request: pytest.FixtureRequest, place: Path) -> str:
    """A README whose agent stands in an otherwise empty directory."""
    name: str = request.param
    (place / "clerk.py").write_text(blocks(name, "python")[-1], encoding="utf-8")
    return name


def chat_line(page: str) -> list[str]:
    [line] = [one for one in blocks(page, "sh") if one.startswith("holdfast chat ")]
    return pasted(line)


def test_the_agent_of_the_readme_asks_and_what_it_prints_answers(
    holdfast_process: Command, page: str
) -> None:
    asked = holdfast_process(*chat_line(page))
    assert asked.code == PAUSED, asked.err
    approve, *_ = [one for one in asked.out.splitlines() if "--option approve" in one]
    answered = holdfast_process(*pasted(approve))
    assert (answered.code, answered.err) == (0, "")
    [more] = [one for one in answered.out.splitlines() if "to say more" in one]
    assert holdfast_process(*pasted(more), "Please pay 42 to Will Zhang.").code == PAUSED


def test_the_inbox_says_how_to_see_a_question_with_the_options_that_it_was_given(
    holdfast: Command, place: Path
) -> None:
    holdfast("run", "ask", "--home", "elsewhere")
    listed = holdfast("inbox", "--home", "elsewhere")
    shown = holdfast(*pasted(listed.out.splitlines()[-1]))
    assert shown.code == 0
    assert "to answer: holdfast answer" in shown.out


IN_MEMORY = """
from holdfast import Holdfast
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

app = Holdfast.in_memory(model=ScriptedModel([call("pay", amount=5)] * 9))


@app.tool(approval="require")
async def pay(amount: int) -> dict:
    return {"paid": amount}


app.agent("clerk", tools=["pay"])
app.load_plans("plans")
"""


@pytest.mark.parametrize("command", [("chat", "Pay."), ("run", "ask")])
def test_an_application_in_memory_says_that_its_questions_end_with_it(
    holdfast_process: Command, place: Path, command: tuple[str, ...]
) -> None:
    (place / "brief.py").write_text(IN_MEMORY, encoding="utf-8")
    ended = holdfast_process(*command, "--app", "brief:app")
    assert ended.code == PAUSED, ended.err
    assert "waits for: " in ended.out
    assert "  kept in memory: the run and its questions end with this command\n" in ended.out
    assert "holdfast " not in ended.out
