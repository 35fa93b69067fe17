"""What tests of the server share: a real server on a loopback port, and clients of every role.

    async with serving(app) as scene:
        answer = await scene.admin.post("/instances", json={"plan_id": "apply_computer"})

The server runs in the test's own loop, so a test may look at the application while it serves.
`scene.as_a("viewer")` is a client with that role, `scene.stranger` one without a token.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from holdfast import Holdfast
from holdfast.server.middleware.connections import bounded
from holdfast.server.services import Services
from holdfast.server.settings import ServerSettings

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing here is encrypted, and reading all authorities for each client takes long."""

ROLES = ("viewer", "operator", "approver", "author", "admin")

APPLY_COMPUTER = """\
plan_id: apply_computer
name: Computer for a colleague
main_task_id: "001"
inputs: {name: {type: text, label: 姓名, default: 张三}}
tasks:
  - {task_id: "001", name: Computer for a colleague}
  - {task_id: "002", name: Ordered}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: apply_computer
    args: {employee: "{001.context.name}"}
    retry: {attempts: 1}
    fields:
      computer_model:
        type: radio
        label: 电脑型号
        options:
          - {value: MacBook Pro, label: MacBook Pro 14寸}
          - {value: ThinkPad X1, label: ThinkPad X1 Carbon}
    success_output: {task_id: "002", status: Done, context: {order: "{{result.order_id}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""
"""Asks for the computer's model, orders it, and is done."""

GRANT_ACCESS = """\
plan_id: grant_access
name: Access for a colleague
main_task_id: "001"
tasks:
  - {task_id: "001", name: Access for a colleague}
  - {task_id: "002", name: Granted}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee: Will Zhang}
    retry: {attempts: 1}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""
"""Calls a tool that fails as often as `Office.failures` says."""


@dataclass
class Office:
    """The tools behind the plans: what they were called with, and how often one still fails."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failures: int = 0

    def count(self, tool: str) -> int:
        return sum(name == tool for name, _ in self.calls)

    async def apply_computer(self, employee: str, computer_model: str) -> dict[str, Any]:
        self.calls.append(
            ("apply_computer", {"employee": employee, "computer_model": computer_model})
        )
        return {"order_id": f"PC-{self.count('apply_computer')}"}

    async def grant_access(self, employee: str) -> dict[str, Any]:
        self.calls.append(("grant_access", {"employee": employee}))
        if self.failures:
            self.failures -= 1
            return {"success": False, "error": "the door does not answer"}
        return {"granted": True}


def furnish(app: Holdfast) -> Office:
    """Tools and plans enough for most stories."""
    office = Office()
    app.tool(office.apply_computer)
    app.tool(office.grant_access)
    app.load_plan_text(APPLY_COMPUTER)
    app.load_plan_text(GRANT_ACCESS)
    return office


@dataclass
class Scene:
    """A server that takes requests, and whoever talks to it."""

    app: Holdfast
    services: Services
    url: str
    stranger: httpx.AsyncClient
    admin: httpx.AsyncClient
    _stack: AsyncExitStack
    _known: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    async def as_a(self, role: str) -> httpx.AsyncClient:
        """A person with one role, the same one however often it is asked for."""
        if role not in self._known:
            self._known[role] = await self.somebody([role], name=f"some {role}")
        return self._known[role]

    async def somebody(
        self,
        roles: Collection[str] = (),
        *,
        grants: Mapping[str, Collection[str]] | None = None,
        kind: Any = "person",
        name: str = "Will Zhang",
    ) -> httpx.AsyncClient:
        """A client with a token of its own."""
        _, token = await self.services.tokens.issue(name, kind, roles, grants)
        return await self.with_token(token)

    async def with_token(self, token: str | None) -> httpx.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        client = httpx.AsyncClient(
            base_url=self.url, headers=headers, verify=NO_TLS, trust_env=False, timeout=30.0
        )
        return await self._stack.enter_async_context(client)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the test run's."""
        yield


@asynccontextmanager
async def listening(web: ASGIApp, settings: ServerSettings | None = None) -> AsyncIterator[str]:
    """Any ASGI application on a loopback port; its address."""
    # Without its protocol named, asyncio leaves the socket to wait for more before it sends.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            web,
            http=bounded(settings or ServerSettings()),
            log_config=None,
            access_log=False,
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        server = _Server(config)
        task = asyncio.create_task(server.serve([listener]))
        while not server.started and not task.done():  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def serving(app: Holdfast, settings: ServerSettings | None = None) -> AsyncIterator[Scene]:
    """The application over HTTP; it is opened with the server unless it is open."""
    web = app.asgi(settings)
    services: Services = web.state.services
    async with AsyncExitStack() as stack, listening(web, settings) as url:
        stack.callback(services.streams.close)
        scene = Scene(app, services, url, None, None, stack)  # type: ignore[arg-type]
        scene.stranger = await scene.with_token(None)
        scene.admin = await scene.as_a("admin")
        yield scene
        await stack.aclose()


async def settled(scene: Scene, instance_id: str) -> str:
    """The status once it is at rest or waits for a person."""
    return await (await scene.app.instance(instance_id)).wait_until_settled(30)


async def start(scene: Scene, plan_id: str = "apply_computer", **values: Any) -> str:
    """A new instance, at rest or waiting for a person."""
    answer = await scene.admin.post("/instances", json={"plan_id": plan_id, "values": values})
    assert answer.status_code == 201, answer.text
    instance_id = str(answer.json()["id"])
    await settled(scene, instance_id)
    return instance_id
