"""What the contract, the table of authority and the attacks share: one of everything, and whoever
comes for it.

    ground = await Ground.of(scene)
    instance_id = await ground.waiting()

`PRINCIPALS` are the kinds of callers there are. `elsewhere` is an admin, of one plan that the
stories are not about: whatever is told of the others' plans must not reach them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from chat_scene import Till, asked, open_chat, tell
from kept_lessons import learned
from server_scene import Office, Scene, furnish, serving, settled, start

from holdfast import Holdfast
from holdfast.core.run.state import RunState
from holdfast.runtime.machines import as_conversation, as_plan
from holdfast.server.settings import ServerSettings
from holdfast.testing.model_script import Entry, Seen, call, fail
from holdfast.testing.scripted_model import ScriptedModel

PATIENCE = 30.0

UNLOCK = """\
plan_id: unlock
name: Unlock a door
main_task_id: "001"
tasks:
  - {task_id: "001", name: Unlock a door}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: unlock
    args: {door: front}
    fields: {code: {type: secret, label: Code}}
    success_output: {task_id: "001", status: Done}
"""


PATCH = {
    "operations": [{"op": "set_args", "listener_id": "L001", "set": {"employee": "WZ001"}}],
    "listener_id": "L001",
}
"""For an instance of `grant_access` that has failed."""

BY_ID = {"op": "set_args", "listener_id": "@listener", "set": {"employee": "WZ001"}}
"""The same as a lesson keeps it."""


@dataclass(frozen=True)
class Sort:
    """A kind of caller; without roles or grants nobody at all."""

    roles: Collection[str] = ()
    grants: Mapping[str, Collection[str]] = field(default_factory=dict)
    kind: str = "person"


PRINCIPALS: Mapping[str, Sort] = {
    "nobody": Sort(),
    "viewer": Sort(["viewer"]),
    "author": Sort(["author"]),
    "approver": Sort(["approver"]),
    "operator": Sort(["operator"]),
    "service": Sort(["operator", "approver"], kind="service"),
    "granted": Sort(grants={"apply_*": ["operator"], "grant_access": ["operator"]}),
    "elsewhere": Sort(grants={"unlock": ["admin"]}),
    "admin": Sort(["admin"]),
}

CROWD = sorted(PRINCIPALS)


@dataclass
class Shop:
    """Where a conversation's tasks are done, as soon as they are let through."""

    done: int = 0
    through: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, task: str = "") -> dict[str, Any]:
        await self.through.wait()
        self.done += 1
        return {"did": self.done}


@dataclass
class Doors:
    codes: list[str] = field(default_factory=list)

    async def unlock(self, door: str, code: str) -> dict[str, str]:
        self.codes.append(code)
        return {"door": door}


@dataclass
class World:
    """Everything that could be done to somebody, and a count of what was."""

    office: Office
    till: Till
    shop: Shop
    doors: Doors

    def done(self) -> tuple[int, ...]:
        return len(self.office.calls), len(self.till.paid), self.shop.done, len(self.doors.codes)


def mind(seen: Seen) -> Entry:
    if any(one.name == "plan_tasks" for one in seen.tools):
        return call("plan_tasks", tasks=[{"id": "load", "description": "load", "type": "work"}])
    if seen.results:
        return "Done."
    if seen.asked == "break":
        return fail(400, "no")
    if seen.asked.startswith("pay "):
        return call("pay", amount=int(seen.asked.removeprefix("pay ")))
    return f"You said: {seen.asked}"


def populate(app: Holdfast) -> World:
    """Plans that ask and that fail, a clerk who must be permitted to pay, doors and a shop."""
    world = World(furnish(app), Till(), Shop(), Doors())
    app.planner_agent.max_retry_count = 0
    app.tool(world.till.pay, approval="require")
    app.tool(world.doors.unlock, idempotent=True)
    app.tool(world.shop.work, idempotent=True)
    app.load_plan_text(UNLOCK)
    app.agent("clerk", name="Clerk", model=None, tools=["pay"])
    app.models.default_model = ScriptedModel(mind)
    return world


def thinks(state: RunState) -> bool:
    """Whether a model is asked about a failure of the run."""
    return any(as_plan(state).repair.busy())


@dataclass
class Ground:
    """Subjects for requests, made by an admin whom no story is about."""

    scene: Scene
    world: World
    crowd: dict[str, httpx.AsyncClient] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    async def gather(self) -> None:
        """A client for every kind of caller."""
        for name, sort in PRINCIPALS.items():
            token = None
            if name != "nobody":
                kind: Any = sort.kind
                issued = self.scene.services.tokens.issue(name, kind, sort.roles, sort.grants)
                _, token = await issued
                self.tokens[name] = token
            self.crowd[name] = await self.scene.with_token(token)

    async def waiting(self) -> str:
        """An instance that waits for the computer's model."""
        return await start(self.scene)

    async def failed(self) -> str:
        """An instance whose tool has failed, and will not again; whatever calls that tool too, as
        a former one that was resumed, has had its turn before."""
        for run in await self.scene.app.runs():
            if run.name == "grant_access":
                await settled(self.scene, run.run_id)
        self.world.office.failures = 1
        instance_id = await start(self.scene, "grant_access")
        assert await settled(self.scene, instance_id) == "error"
        await self._looked_at(instance_id)
        return instance_id

    async def over(self) -> str:
        """One that has failed, and was then cancelled."""
        instance_id = await self.failed()
        answer = await self.scene.admin.post(f"/instances/{instance_id}/cancel")
        assert answer.status_code == 200, answer.text
        assert await settled(self.scene, instance_id) == "cancelled"
        return instance_id

    async def _looked_at(self, run_id: str) -> None:
        """Once no model thinks about its failure any more."""
        async with asyncio.timeout(PATIENCE):
            while thinks(await self.scene.app.engine.state(run_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def proposed(self) -> tuple[str, str]:
        """A failed instance, and the patch that is proposed for it."""
        instance_id = await self.failed()
        answer = await self.scene.admin.post(f"/instances/{instance_id}/patches", json=PATCH)
        assert answer.status_code == 201, answer.text
        return instance_id, answer.json()["case"]["proposal"]["patch_id"]

    async def lesson(self) -> str:
        """A repair of `grant_access` that has helped."""
        return await learned(self.scene.app, "grant_access", "L001", BY_ID)

    async def question(self, run_id: str) -> dict[str, Any]:
        """The one question of a run that is open."""
        found = await self.scene.admin.get(f"/interactions?run={run_id}&status=open")
        [one] = found.json()["interactions"]
        return dict(one)

    async def locked(self) -> dict[str, Any]:
        """A question for a secret."""
        return await self.question(await start(self.scene, "unlock"))

    async def chat(self, *messages: str) -> str:
        session_id = await open_chat(self.scene.admin)
        for message in messages:
            await tell(self.scene, self.scene.admin, session_id, message)
        return session_id

    async def approval(self, amount: int = 5) -> dict[str, Any]:
        """A question: may the clerk pay?"""
        return await asked(self.scene.admin, await self.chat(f"pay {amount}"))

    async def remembered(self) -> tuple[str, str]:
        """A session, and an approval that it remembers."""
        session_id = await self.chat()
        answer = await self.scene.admin.post(
            f"/chats/{session_id}/approvals", json={"tool": "pay", "uses": 1}
        )
        return session_id, answer.json()["grantId"]

    async def pursued(self) -> str:
        """A conversation in the middle of a task."""
        self.world.shop.through.clear()
        return await self._converse("executing")

    async def achieved(self) -> str:
        """A conversation that is through."""
        self.world.shop.through.set()
        return await self._converse("completed")

    async def held(self) -> str:
        conversation_id = await self.pursued()
        answer = await self.scene.admin.post(f"/conversations/{conversation_id}/pause")
        assert answer.status_code == 200, answer.text
        return conversation_id

    async def _converse(self, phase: str) -> str:
        answer = await self.scene.admin.post("/conversations", json={"input": "sell"})
        run_id = str(answer.json()["id"])
        await self.scene.app.engine.wait_for(
            run_id,
            lambda state: (
                as_conversation(state).phase == phase
                and (phase == "completed" or bool(state.in_flight))
            ),
            PATIENCE,
        )
        return run_id

    async def spare_token(self) -> str:
        made, _ = await self.scene.services.tokens.issue("spare", "person", ["viewer"], None)
        return made.id

    async def link(self) -> str:
        _, secret = await self.scene.services.tokens.new_link("guest", ["viewer"])
        return secret

    async def standing(self) -> tuple[Any, ...]:
        """What is different when anything was done: commits, deeds and the tools' calls."""
        journal = self.scene.app.journal
        deeds = [one.number for one in await journal.audit(0, 100_000)]
        return await journal.last_commit(), len(deeds), self.world.done()


@asynccontextmanager
async def standing_ground(
    app: Holdfast, settings: ServerSettings | None = None
) -> AsyncIterator[Ground]:
    """A populated application, served; conversations are let through at the end."""
    world = populate(app)
    async with serving(app, settings) as scene:
        ground = Ground(scene, world)
        await ground.gather()
        try:
            yield ground
        finally:
            world.shop.through.set()
