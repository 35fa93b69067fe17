"""A rehearsal that does not reach the goal says over HTTP what stops it."""

from __future__ import annotations

from server_scene import Office, Scene, settled, start

TYPO = {
    "op": "set_args",
    "listener_id": "L001",
    "set": {"employee": "{001.context.emploee_id}"},
}


async def test_a_template_that_reads_what_is_not_there_is_told_with_its_reason(
    scene: Scene, office: Office
) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    assert await settled(scene, instance_id) == "error"
    path = f"/instances/{instance_id}/patches?rehearse=true"
    answer = await scene.admin.post(path, json={"operations": [TYPO]})
    assert answer.status_code == 200, answer.text
    success = answer.json()["proposal"]["success"]
    assert (success["calls"], success["reached"]) == ([], False)
    [why] = success["stopped"]
    assert why.startswith("L001: {001.context.emploee_id}: ")
    assert "has no 'emploee_id'" in why
    chinese = {"accept-language": "zh-CN"}
    answer = await scene.admin.post(path, json={"operations": [TYPO]}, headers=chinese)
    [said] = answer.json()["proposal"]["success"]["stopped"]
    assert said.startswith("L001")
    assert said != why
