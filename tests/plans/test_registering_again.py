"""A notebook's cell is run twice, or with changes: the tool is registered again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plan_texts import load, start, step
from session_scenes import PATIENCE

from holdfast import Holdfast
from holdfast.errors import AuthorError, CallerError

CELL = '''
@app.tool({options})
async def pay(amount: int) -> dict:
    """Pay."""
    ran.append("{word}")
    return {{"paid": amount}}
'''


class Notebook:
    """Cells share one namespace; each is compiled anew, as often as it is run."""

    def __init__(self) -> None:
        self.app = Holdfast.in_memory()
        self.ran: list[str] = []
        self._names: dict[str, Any] = {"app": self.app, "ran": self.ran}

    def run(self, word: str = "first", options: str = "") -> None:
        exec(CELL.format(options=options, word=word), self._names)


async def paid(app: Holdfast) -> str:
    load(app, step("L1", "001", "001", tool="pay", args={"amount": 7}))
    return await (await start(app)).wait_until_settled(PATIENCE)


async def test_the_same_cell_may_be_run_again() -> None:
    notebook = Notebook()
    async with notebook.app as app:
        notebook.run()
        first = app.tools.get("pay")
        assert await paid(app) == "done"
        notebook.run()
        assert app.tools.get("pay") is not first, "the new function sees the cell's new globals"
        assert await paid(app) == "done"
    assert notebook.ran == ["first", "first"]


@pytest.mark.parametrize(
    ("word", "options"), [("second", ""), ("first", "approval='require'"), ("first", "timeout=9")]
)
async def test_another_one_of_the_name_is_refused_and_the_remedy_is_named(
    word: str, options: str
) -> None:
    notebook = Notebook()
    notebook.run()
    known = notebook.app.tools.get("pay")
    with pytest.raises(CallerError, match=r"already is a tool named 'pay'.*replace=True"):
        notebook.run(word, options)
    assert notebook.app.tools.get("pay") is known


async def test_replacing_it_is_said_explicitly() -> None:
    notebook = Notebook()
    async with notebook.app as app:
        notebook.run()
        notebook.run("second", "replace=True")
        assert await paid(app) == "done"
    assert notebook.ran == ["second"]


async def test_consent_to_the_one_before_is_no_consent_to_this_one() -> None:
    notebook = Notebook()
    async with notebook.app as app:
        notebook.run(options="approval='require'")
        load(app, step("L1", "001", "001", tool="pay", args={"amount": 7}))
        instance = await start(app)
        assert await instance.wait_until_settled(PATIENCE) == "pause"
        [before] = await app.inbox()
        notebook.run("second", "approval='require', replace=True")
        await app.answer(before.question_id, option_id="approve")
        assert await instance.wait_until_settled(PATIENCE) == "pause"
        assert notebook.ran == []
        [anew] = [row for row in await app.inbox() if row.status == "open"]
        assert anew.question_id != before.question_id
        await app.answer(anew.question_id, option_id="approve")
        assert await instance.wait_until_settled(PATIENCE) == "done"
    assert notebook.ran == ["second"]


async def test_consent_holds_where_the_same_is_registered_again() -> None:
    notebook = Notebook()
    async with notebook.app as app:
        notebook.run(options="approval='require'")
        load(app, step("L1", "001", "001", tool="pay", args={"amount": 7}))
        instance = await start(app)
        assert await instance.wait_until_settled(PATIENCE) == "pause"
        [asked] = await app.inbox()
        notebook.run(options="approval='require'")
        await app.answer(asked.question_id, option_id="approve")
        assert await instance.wait_until_settled(PATIENCE) == "done"
    assert notebook.ran == ["first"]


def test_a_file_of_tools_may_be_loaded_again(tmp_path: Path) -> None:
    app, file = Holdfast.in_memory(), tmp_path / "tools.yaml"
    declared = {"name": "pay", "endpoint": "http://127.0.0.1:9/${PLACE}"}
    file.write_text(json.dumps({"tools": [declared]}))
    app.load_tools(file, {"PLACE": "pay"})
    app.load_tools(file, {"PLACE": "pay"})
    with pytest.raises(CallerError, match="replace=True"):
        app.load_tools(file, {"PLACE": "wire"})
    app.load_tools(file, {"PLACE": "wire"}, replace=True)


def test_what_replaces_a_tool_must_suit_the_agents_that_have_it() -> None:
    app = Holdfast.in_memory()
    app.tool(lambda: 1, name="stock", read_only=True)
    app.agent("clerk", tools=["stock"], verification_tools=["stock"])
    with pytest.raises(AuthorError, match="stock may change something"):
        app.tool(lambda: 2, name="stock", replace=True)
    assert app.tools.get("stock").spec.read_only


@pytest.mark.parametrize("name", ["nothing. It is harmless", "", "p\u0430y", "pay\u202e"])
def test_no_tool_is_registered_under_a_name_that_reads_as_words_of_ours(
    name: str, tmp_path: Path
) -> None:
    app = Holdfast.in_memory()
    if name:
        with pytest.raises(AuthorError, match="is no name for a tool"):
            app.tool(name=name)(lambda: None)
    names = ("sound", name)
    declared = [{"name": one, "endpoint": "http://127.0.0.1:9/x"} for one in names]
    path = tmp_path / "tools.yaml"
    path.write_text(json.dumps({"tools": declared}))
    with pytest.raises(AuthorError):
        app.load_tools(path)
    assert list(app.tools) == []
