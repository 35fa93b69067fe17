"""A plan that was drawn up and adopted is kept like one that was registered, and audited."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from drafting_office import REQUESTS, Office, Person, see_through
from server_scene import serving

from holdfast import Holdfast
from holdfast.core.storing import plan_digest
from holdfast.errors import NotAllowed
from holdfast.plans.registering import KIND
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.runtime.identity import Identity, acting
from holdfast.source.planfile import load_plan
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

BADGE = REQUESTS["badge"]


def furnished(office: Office, home: Path | None = None, **options: Any) -> Holdfast:
    model = ScriptedModel(lambda _: call(SKETCH_PLAN, **BADGE.sketch))
    return office.furnish(Holdfast(home, model=model, **options))


async def drawn_up(app: Holdfast) -> str:
    """A run in which a plan was drawn up and approved."""
    run = await app.plans.start_plan_by_prompt(BADGE.text)
    assert await see_through(app, run, Person()) == "done"
    return run.id


async def adoptions(app: Holdfast) -> list[tuple[str, str, str, Any]]:
    deeds = [one.record for one in await app.journal.audit()]
    found = [one for one in deeds if one.action == "adopted"]
    return [(one.who, one.subject, one.run_id, json.loads(one.detail)) for one in found]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "calls")


@pytest.mark.parametrize("signed_in", [False, True])
async def test_the_audit_has_who_adopted_which_plan(
    office: Office, tmp_path: Path, signed_in: bool
) -> None:
    async with furnished(office, tmp_path / "home") as app:
        run_id = await drawn_up(app)
        with acting(Identity("Will Zhang", via="token")) if signed_in else nullcontext():
            plan = await app.plans.adopt(run_id, "badge", by="Will Zhang", approvals="drop")
        told = {"digest": plan_digest(plan), "approvals": "drop"}
        told |= {"via": "token"} if signed_in else {}
        assert await adoptions(app) == [("Will Zhang", "badge", run_id, told)]


async def test_it_is_there_after_a_restart_with_its_source_and_who_registered_it(
    office: Office, tmp_path: Path
) -> None:
    async with furnished(office, tmp_path / "home") as app:
        plan = await app.plans.adopt(await drawn_up(app), "badge", by="Will Zhang")
    again = furnished(office, tmp_path / "home")
    async with again, serving(again) as scene:
        shown = (await scene.admin.get("/plans/badge")).json()
        assert (shown["origin"], shown["registered_by"]) == ("registered", "Will Zhang")
        assert shown["digest"] == plan_digest(plan)
        assert load_plan(shown["source"], "badge.yaml", again.catalog()) == plan
        assert again.engine.definitions.authors(shown["digest"]) == ("Will Zhang",)
        person, before = Person(), len(office.calls())
        run = await again.plans.start_plan_by_prompt("", "badge")
        assert await see_through(again, run, person) == "done"
        assert (office.called()[before:], person.approved) == (["grant_access"], ["grant_access"])


async def test_an_application_without_a_server_adopts_it_anew_and_nothing_else_under_its_id(
    office: Office, tmp_path: Path
) -> None:
    async with furnished(office, tmp_path / "home") as app:
        run_id = await drawn_up(app)
        plan = await app.plans.adopt(run_id, "badge", by="Will Zhang")
    async with furnished(office, tmp_path / "home") as app:
        assert "badge" not in app.engine.definitions.plan_ids()
        with pytest.raises(NotAllowed, match="the plan id badge is taken"):
            await app.plans.adopt(run_id, "badge", by="Will Zhang", approvals="drop")
        assert "badge" not in app.engine.definitions.plan_ids()
        assert await app.plans.adopt(run_id, "badge", by="Will Zhang") == plan
        assert len(await app.engine.store.all_kept(KIND, app.engine.clock.now())) == 1


async def test_other_servers_of_the_database_have_it_at_once(office: Office, database: str) -> None:
    one = furnished(office, database=database)
    other = furnished(office, database=database, drives=False)
    async with one, other, serving(other) as scene:
        plan = await one.plans.adopt(await drawn_up(one), "badge", by="Will Zhang")
        async with asyncio.timeout(30):
            while "badge" not in other.engine.definitions.plan_ids():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        answer = await scene.admin.get("/plans/badge")
        assert answer.json()["digest"] == plan_digest(plan)
