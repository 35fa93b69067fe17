"""The catalogue: agents and tools, as far as the caller may see them."""

from __future__ import annotations

from chat_scene import employ
from server_scene import Scene, serving

from holdfast import Holdfast


async def test_agents_and_tools_are_listed_without_what_is_secret(app: Holdfast) -> None:
    employ(app, system_context="the safe is behind the picture", approval={"pay": "require"})
    app.agent("porter", agents=["clerk"])
    async with serving(app) as scene:
        viewer = await scene.as_a("viewer")
        agents = await viewer.get("/agents")
        assert [one["agent_id"] for one in agents.json()["agents"]] == ["clerk", "porter"]
        assert "picture" not in agents.text
        clerk = (await viewer.get("/agents/clerk")).json()
        assert clerk["tools"] == ["pay"]
        assert clerk["approval"] == {"pay": {"mode": "REQUIRE_APPROVAL"}}
        [tool] = (await viewer.get("/tools")).json()["tools"]
        assert tool == (await viewer.get("/tools/pay")).json()
        assert tool["parameters"]["properties"]["amount"]["type"] == "integer"
        assert (tool["approval"], tool["idempotent"]) == ({"mode": "REQUIRE_APPROVAL"}, False)
        assert (tool["read_only"], tool["description"]) == (False, "Pay somebody.")


async def test_what_is_not_there_or_not_shown_is_not_found(app: Holdfast) -> None:
    employ(app)
    app.agent("porter")
    async with serving(app) as scene:
        assert (await scene.admin.get("/agents/nobody")).status_code == 404
        assert (await scene.admin.get("/tools/nothing")).status_code == 404
        guest = await scene.somebody(grants={"porter": ["viewer"]}, name="guest")
        listed = (await guest.get("/agents")).json()["agents"]
        assert [one["agent_id"] for one in listed] == ["porter"]
        assert (await guest.get("/agents/clerk")).status_code == 404
        starred = await scene.somebody(grants={"cl*": ["operator"]}, name="starred")
        unknown = await starred.get("/agents/clark")
        assert (unknown.status_code, "clerk" in unknown.text) == (404, False)
        nobody = await scene.somebody(["finance"], name="nobody")
        assert (await nobody.get("/agents")).status_code == 403
        assert (await nobody.get("/tools")).status_code == 403


async def test_the_catalogue_takes_no_questions_it_does_not_know(scene: Scene) -> None:
    assert (await scene.admin.get("/tools?name=pay")).status_code == 422
