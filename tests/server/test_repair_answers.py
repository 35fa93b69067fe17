"""Answers to proposals over HTTP: of two at once one counts and the other is told who and how; what
no longer fits changes nothing; and no way to answer gets round the further person.

`python tests/server/test_repair_answers.py 1000` has as many pairs.
"""

from __future__ import annotations

import asyncio
import sys
import time
import tomllib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    sys.path[:0] = [str(ROOT / one) for one in ("tests", *SETTINGS["ini_options"]["pythonpath"])]

import httpx
import pytest
from repair_scenes import REPAIRED, UNREPAIRED, WHO, Staff, given_up, proposal
from scenes import assert_sound, history, of_kind
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.model import events as e
from holdfast.runs.handles import PlanInstance

PAIRS = 40
AT_ONCE = 20
"""How many runs have failed and wait for their pair."""

APPLY: dict[str, Any] = {"selectedOptionId": "apply"}
REFUSE: dict[str, Any] = {"selectedOptionId": "refuse", "feedback": "never"}
WHO_ANSWERS = ("ann", "bob")

MAIL: dict[str, Any] = {"op": "set_args", "listener_id": "L002", "set": {"to": "all@example.com"}}


@pytest.fixture
def staff() -> Staff:
    return Staff()


@pytest.fixture
async def scene(staff: Staff) -> AsyncIterator[Scene]:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app, serving(app) as scene:
        yield scene


async def failed(scene: Scene) -> tuple[PlanInstance, str]:
    [found] = await given_up(scene.app, ["WZ001"])
    return found


async def answer(client: httpx.AsyncClient, question: str, given: dict[str, Any]) -> httpx.Response:
    return await client.post(f"/interactions/{question}/answer", json=given)


async def journaled(scene: Scene) -> int:
    return await scene.app.journal.last_commit()


async def nothing_applied(scene: Scene, instance: PlanInstance) -> None:
    state = await assert_sound(scene.app, instance.id)
    assert (state.status, state.repair.patches, state.origin) == ("error", (), None)
    assert of_kind(await history(scene.app, instance.id), e.PlanPatched) == []


# Two at once.


async def contest(scene: Scene, staff: Staff, count: int) -> Counter[str]:
    """An approval against a refusal for each of so many runs, each person with connections of their
    own; how often which has won."""
    people = {name: await scene.somebody(["approver"], name=name) for name in WHO_ANSWERS}
    won: Counter[str] = Counter()
    for start in range(0, count, AT_ONCE):
        names = [f"WZ{number:05}" for number in range(start, min(start + AT_ONCE, count))]
        waiting = await given_up(scene.app, names)
        pairs = [pair(people, question, number) for number, (_, question) in enumerate(waiting)]
        for name, (instance, _), (winner, word) in zip(
            names, waiting, await asyncio.gather(*pairs), strict=True
        ):
            await settle(scene, staff, name, instance, winner, applied=word == "apply")
            won[word] += 1
    return won


async def pair(people: dict[str, httpx.AsyncClient], question: str, number: int) -> tuple[str, str]:
    """Who has won, and with what; by turns each of them approves, and each speaks first. The other
    is told who and how."""
    words = dict(zip(WHO_ANSWERS, (REFUSE, APPLY) if number % 2 else (APPLY, REFUSE), strict=True))
    order = WHO_ANSWERS[::-1] if number % 4 < 2 else WHO_ANSWERS
    said = await asyncio.gather(*(answer(people[one], question, words[one]) for one in order))
    told = dict(zip(order, said, strict=True))
    [winner] = [name for name, one in told.items() if one.status_code == 200]
    [refused] = [one for name, one in told.items() if name != winner]
    assert refused.status_code == 409, refused.text
    problem, word = refused.json(), str(words[winner]["selectedOptionId"])
    assert (problem["answered_by"], problem["answered_option_id"]) == (winner, word)
    assert f"answered by {winner}" in problem["detail"]
    return winner, word


async def settle(
    scene: Scene, staff: Staff, name: str, instance: PlanInstance, winner: str, *, applied: bool
) -> None:
    """One patch or one refusal, by whom the server said, and nothing done after a refusal."""
    app = scene.app
    if applied:
        await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    state, events = await assert_sound(app, instance.id), await history(app, instance.id)
    patches, refusals = of_kind(events, e.PlanPatched), of_kind(events, e.PatchRefused)
    assert (len(patches), len(refusals)) == (applied, not applied)
    assert [one.by for one in (*patches, *refusals)] == [winner]  # type: ignore[attr-defined]
    assert state.status == ("done" if applied else "error")
    assert staff.counts(name) == (REPAIRED if applied else UNREPAIRED)


async def test_of_two_answers_at_once_one_counts_and_the_other_is_told_who_and_how(
    scene: Scene, staff: Staff
) -> None:
    won = await contest(scene, staff, PAIRS)
    assert won.total() == PAIRS
    assert set(won) == {"apply", "refuse"}


# What no longer fits.


async def test_an_answer_for_another_version_of_a_tool_changes_nothing(
    scene: Scene, staff: Staff
) -> None:
    instance, question = await failed(scene)
    approver = await scene.as_a("approver")
    staff.employ(scene.app, "2")
    refused = await answer(approver, question, APPLY)
    assert refused.status_code == 409, refused.text
    assert "a tool that the repair names has changed" in refused.json()["detail"]
    await nothing_applied(scene, instance)
    assert staff.counts("WZ001") == UNREPAIRED

    anew = await proposal(scene.app, instance.id, besides=question)
    assert (await answer(approver, question, APPLY)).status_code == 410
    assert (await answer(approver, anew.question_id, APPLY)).status_code == 200
    await scene.app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    assert staff.counts("WZ001") == REPAIRED


async def test_an_answer_to_another_run_of_the_failure_changes_nothing(
    scene: Scene, staff: Staff
) -> None:
    instance, question = await failed(scene)
    approver = await scene.as_a("approver")
    await scene.app.resume(instance.id, by=WHO)
    anew = await proposal(scene.app, instance.id, besides=question)
    before = await journaled(scene)
    late = await answer(approver, question, APPLY)
    assert late.status_code == 410, late.text
    assert await journaled(scene) == before
    await nothing_applied(scene, instance)
    assert (await answer(approver, anew.question_id, REFUSE)).status_code == 200


async def test_an_answer_to_a_plan_that_has_changed_meanwhile_changes_nothing(
    scene: Scene, staff: Staff
) -> None:
    """Two proposals are open; one is applied first."""
    instance, question = await failed(scene)
    operator, approver = await scene.as_a("operator"), await scene.as_a("approver")
    made = await operator.post(f"/instances/{instance.id}/patches", json={"operations": [MAIL]})
    other = made.json()["interaction"]["requestId"]
    assert (await answer(approver, question, APPLY)).status_code == 200
    late = await answer(approver, other, APPLY)
    assert late.status_code == 410, late.text
    await scene.app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    assert len(of_kind(await history(scene.app, instance.id), e.PlanPatched)) == 1
    assert staff.counts("WZ001") == REPAIRED


async def test_an_answer_under_another_digest_than_was_shown_changes_nothing(
    scene: Scene, staff: Staff
) -> None:
    instance, question = await failed(scene)
    approver, before = await scene.as_a("approver"), await journaled(scene)
    refused = await answer(approver, question, {**APPLY, "digest": "0" * 64})
    assert refused.status_code == 409, refused.text
    assert await journaled(scene) == before
    await nothing_applied(scene, instance)


# Who may.


async def proposed_by(scene: Scene, client: httpx.AsyncClient, instance: PlanInstance) -> str:
    path = f"/instances/{instance.id}/patches"
    made = await client.post(path, json={"operations": [MAIL], "reason": "tell all"})
    assert made.status_code == 201, made.text
    return str(made.json()["interaction"]["requestId"])


async def test_many_answers_at_once_are_no_way_round_the_further_person(
    scene: Scene, staff: Staff
) -> None:
    instance, of_rules = await failed(scene)
    both = await scene.somebody(["operator", "approver"], name="ann")
    own = await proposed_by(scene, both, instance)
    before = await journaled(scene)
    answered = await both.post("/interactions/answers", json={**APPLY, "requestIds": [own]})
    [outcome] = answered.json()["outcomes"]
    assert (outcome["success"], outcome["status"]) == (False, 403)
    assert "you proposed this repair" in outcome["error"]
    assert await journaled(scene) == before
    await nothing_applied(scene, instance)

    bob = await scene.somebody(["approver"], name="bob")
    answered = await bob.post("/interactions/answers", json={**APPLY, "requestIds": [own]})
    assert answered.json()["success"] is True
    assert (await answer(both, of_rules, APPLY)).status_code == 410, "it was for the plan before"


@pytest.mark.parametrize("given", [APPLY, REFUSE], ids=["apply", "refuse"])
async def test_a_service_answers_no_proposal_whatever_its_roles(
    scene: Scene, staff: Staff, given: dict[str, Any]
) -> None:
    instance, question = await failed(scene)
    service = await scene.somebody(["operator", "approver", "admin"], kind="service", name="robot")
    before = await journaled(scene)
    refused = await answer(service, question, given)
    assert refused.status_code == 403, refused.text
    assert "a person must answer this" in refused.json()["detail"]
    many = await service.post("/interactions/answers", json={**given, "requestIds": [question]})
    assert [one["status"] for one in many.json()["outcomes"]] == [403]
    drafted = await service.put(f"/interactions/{question}/draft", json={"data": {}})
    assert drafted.status_code == 403, drafted.text
    assert await journaled(scene) == before
    await nothing_applied(scene, instance)


async def test_what_a_service_has_proposed_a_person_approves(scene: Scene, staff: Staff) -> None:
    instance, _ = await failed(scene)
    service = await scene.somebody(["operator"], kind="service", name="robot")
    question = await proposed_by(scene, service, instance)
    assert (await answer(service, question, APPLY)).status_code == 403
    assert (await answer(await scene.as_a("operator"), question, APPLY)).status_code == 403
    assert (await answer(await scene.as_a("approver"), question, APPLY)).status_code == 200


async def test_consent_to_a_repair_is_none_to_the_call_that_it_adds(staff: Staff) -> None:
    """HR's tool requires approval, so the call is asked for with its arguments as they are then."""
    async with Holdfast.in_memory(max_retry_count=0) as app:
        staff.furnish(app)

        @app.tool(replace=True, idempotent=True, approval="require")
        async def create_employee_profile(id: str, name: str) -> dict[str, str]:  # noqa: A002
            staff.done["create_employee_profile", id] += 1
            staff.known.add(id)
            return {"employee_id": id}

        async with serving(app) as scene:
            approver = await scene.as_a("approver")
            instance, question = await failed(scene)
            assert (await answer(approver, question, APPLY)).status_code == 200
            await instance.wait_until_settled(30)
            listed = await approver.get("/interactions", params={"run": instance.id})
            [asked] = [one for one in listed.json()["interactions"] if one["status"] == "open"]
            assert asked["type"] == "TOOL_APPROVAL"
            assert '"id": "WZ001"' in str(asked).replace("'", '"')
            assert staff.counts("WZ001") == UNREPAIRED
            approved = await answer(approver, asked["requestId"], {"selectedOptionId": "approve"})
            assert approved.status_code == 200, approved.text
            await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    assert staff.counts("WZ001") == REPAIRED


async def campaign(count: int) -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app, serving(app) as scene:
        began = time.monotonic()
        won = dict(await contest(scene, staff, count))
        print(f"{count} pairs over HTTP in {time.monotonic() - began:.1f} s, won by {won}")


if __name__ == "__main__":
    asyncio.run(campaign(int(sys.argv[1])))
