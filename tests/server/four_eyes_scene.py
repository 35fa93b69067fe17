"""What tests of four eyes share: ann, an approver who would like to do it alone, bob, the further
person, and will, who only ever starts runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
from server_scene import Scene, settled

from holdfast.runs.handles import SETTLED
from holdfast.server.settings import ServerSettings

FOUR_EYES = ServerSettings(four_eyes=True)
APPROVE = {"selectedOptionId": "approve"}


@dataclass
class Four:
    scene: Scene
    ann: httpx.AsyncClient
    bob: httpx.AsyncClient
    will: httpx.AsyncClient

    async def start(self, plan_id: str) -> str:
        started = await self.will.post("/instances", json={"plan_id": plan_id})
        assert started.status_code == 201, started.text
        await settled(self.scene, started.json()["id"])
        return str(started.json()["id"])

    async def open(self, root_id: str, kind: str) -> dict[str, Any]:
        """The one open question of its type in the run or below it, as ann sees it, once it is
        asked: another one that is open lets the run settle before."""
        async with asyncio.timeout(30):
            while True:
                found = await self.ann.get(
                    "/interactions", params={"run": root_id, "status": "open"}
                )
                if of_kind := [one for one in found.json()["interactions"] if one["type"] == kind]:
                    [one] = of_kind
                    return dict(one)

    async def answers(
        self, who: httpx.AsyncClient, root_id: str, kind: str, **body: Any
    ) -> httpx.Response:
        question = await self.open(root_id, kind)
        answer = await who.post(f"/interactions/{question['requestId']}/answer", json=body)
        await self.scene.app.engine.wait_for_status(question["runId"], SETTLED, 30)
        await settled(self.scene, root_id)
        return answer

    async def approves(self, who: httpx.AsyncClient, root_id: str) -> int:
        return (await self.answers(who, root_id, "TOOL_APPROVAL", **APPROVE)).status_code


async def people(scene: Scene) -> Four:
    every = ["approver", "operator", "author"]
    return Four(
        scene,
        await scene.somebody(every, name="ann"),
        await scene.somebody(["approver"], name="bob"),
        await scene.somebody(["operator"], name="will"),
    )
