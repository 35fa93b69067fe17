"""Agents are declared by the same rules in Python as in files, and work when they are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Asking, Holdfast
from holdfast.errors import AuthorError, InvalidAnswer, NotAllowed, PlanRejected
from holdfast.testing.scripted_model import ScriptedModel


def office() -> Holdfast:
    app = Holdfast.in_memory(model=ScriptedModel(["ok"]))

    @app.tool
    async def pay(amount: int) -> dict[str, int]:
        return {"paid": amount}

    return app


def refusal(app: Holdfast, agent_id: str, **declared: Any) -> str:
    with pytest.raises(AuthorError) as caught:
        app.agent(agent_id, **declared)
    assert agent_id not in app.engine.definitions.agent_ids()
    return str(caught.value)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"agents": ["a"]}, "a hands work to itself"),
        ({"max_iterations": 0}, "max_iterations must be between 1 and 1000"),
        ({"max_iterations": "3"}, "max_iterations must be of int, not str"),
        ({"max_iterations": True}, "max_iterations must be of int, not bool"),
        ({"context_limit": 5}, "context_limit must be at least 1000"),
        ({"tools": "pay"}, "tools must be a list of names"),
        ({"tools": ["pay", "pay"]}, "pay stands in tools twice"),
        ({"verification_tools": ["pay"]}, "pay may change something"),
        ({"tools": ["pay"], "approval": {"pya": "disabled"}}, "a has no tool or agent 'pya'"),
        ({"approval": "perhaps"}, "approval is 'perhaps'"),
        ({"asking": {"titel": "Well?"}}, "did you mean title?"),
        ({"asking": {"title": object()}}, "is not JSON"),
        ({"name": 5}, "name: must be text, not int"),
        ({"model": "\ud800"}, "model: half of a character"),
        ({"asks_people": True, "tools": ["ask_person"]}, "rename the tool"),
        ({"asks_people": True, "agents": ["person"]}, "rename the agent person"),
        ({"agents": ["b"], "tools": ["ask_b"]}, "ask_b is how b is called"),
    ],
)
def test_a_mistake_is_told_at_once(declared: dict[str, Any], problem: str) -> None:
    assert problem in refusal(office(), "a", **declared)


def test_all_mistakes_are_told_together() -> None:
    told = refusal(office(), "a", agents=["a"], max_iterations=-3, approval={"pya": "auto"})
    assert len(told.splitlines()) == 3


def test_a_circle_is_refused_when_it_closes() -> None:
    app = office()
    app.agent("a", agents=["b"])
    assert "work would go round in a circle" in refusal(app, "b", agents=["a"])


def test_how_people_are_asked_may_be_said_as_in_a_file() -> None:
    app = office()
    mapped = app.agent("a", asking={"title": "Well?", "role": "boss"})
    assert mapped.asking == Asking(title="Well?", role="boss")
    assert app.agent("b", asking=mapped.asking).asking == mapped.asking


def test_a_tool_that_joins_later_must_look_where_it_verifies() -> None:
    app = office()
    app.agent("a", verification_tools=["wipe"])

    async def wipe() -> None:
        """Wipes."""

    with pytest.raises(AuthorError, match="wipe may change something"):
        app.tool(wipe)
    app.tool(wipe, read_only=True)


async def test_an_agent_works_when_all_that_it_names_is_there() -> None:
    app = office()
    app.agent("a", tools=["pay", "wipe"], agents=["b"])
    async with app:
        with pytest.raises(NotAllowed, match="no tool 'wipe', no agent 'b'"):
            await app.sessions.open("a")

        @app.tool
        async def wipe() -> None: ...

        app.agent("b")
        assert (await app.sessions.open("a")).agent_id == "a"


async def test_a_sessions_rules_name_the_agents_own_tools() -> None:
    app = office()
    app.agent("b")
    app.agent("a", tools=["pay"], agents=["b"])
    async with app:
        with pytest.raises(InvalidAnswer, match="a has no tool or agent 'pya'") as caught:
            await app.sessions.open("a", approval={"pya": "disabled"})
        assert set(caught.value.fields) == {"approval.pya"}
        await app.sessions.open("a", approval={"pay": "auto", "ask_b": "require", "*": "auto"})


def test_files_of_a_directory_may_name_each_others_agents(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text("{id: a, agents: [b]}")
    (tmp_path / "2.yaml").write_text("{id: b, tools: [pay]}")
    app = office()
    assert [agent.agent_id for agent in app.load_agents(tmp_path)] == ["a", "b"]


def test_what_is_wrong_across_files_is_told_together(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text("{id: a, agents: [b, nobody]}")
    (tmp_path / "2.yaml").write_text("{id: b, agents: [a]}")
    app = office()
    with pytest.raises(PlanRejected) as caught:
        app.load_agents(tmp_path)
    assert sorted(one.message.partition(":")[0] for one in caught.value.problems) == [
        "there is no agent 'nobody'",
        "work would go round in a circle",
        "work would go round in a circle",
    ]
    assert not list(app.engine.definitions.agent_ids())
