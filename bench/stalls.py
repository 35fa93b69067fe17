"""`python -m bench.stalls`: how long the worst that a caller may send holds the event loop.

The server has a process of its own, with its journal on the project's disk. Before each place the
figures are set to nothing, then the worst allowed input is sent, several times. Two figures are
taken from the server: the longest piece of work on the loop, in time of the processor, which says
the same on a busy machine; and the longest that a heartbeat every millisecond was late, which also
shows work in other threads that kept the interpreter to itself, but on a busy machine shows that
too. Of the rounds the smallest figure counts. Nothing is asserted: the bounds are tested.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from asyncio import events
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from bench.child import ROOT
from holdfast import Holdfast
from holdfast.console import install
from holdfast.journal.port import Attached, Deed
from holdfast.server.services import Services
from holdfast.server.serving import keep_for_good
from holdfast.server.settings import ServerSettings
from holdfast.testing.scripted_model import ScriptedModel

PROMISED_MS = 50.0
ROUNDS = 3
DEEDS = 40_000
RUNS = 400
CHINESE = {"Accept-Language": "zh"}
FORM = {
    "line": {"type": "text", "required": False, "validation": {"pattern": "^.{0,90}[yz]"}},
    "words": {"type": "textarea", "required": False, "validation": {"pattern": r"(?:\w?){30}[yz]"}},
    "value": {"type": "textarea", "required": False, "json": True},
    "kinds": {
        "type": "multiselect",
        "required": False,
        "options": [str(number) for number in range(1_000)],
        "validation": {"values": [str(number) for number in range(1_000)]},
    },
}


def plan_source(tasks: int, extra: str = "") -> str:
    """As many tasks as fit, each with its listener."""
    head = 'plan_id: large\nname: Large\nmain_task_id: "001"\n' + extra
    ids = [f"{number:03d}" for number in range(1, tasks + 1)]
    lines = [f'  - {{task_id: "{one}", name: T}}\n' for one in ids]
    listeners = [
        f"  - {{listener_id: L{one}, trigger_task_id: '{before}', trigger_condition: Running, "
        f"listener_type: code, code_snippet: 'result = 1', "
        f"success_output: {{task_id: '{one}', status: Done}}}}\n"
        for before, one in zip(["001", *ids], ids, strict=False)
    ]
    return head + "tasks:\n" + "".join(lines) + "listeners:\n" + "".join(listeners)


ASK = f"""
plan_id: ask
name: Ask
main_task_id: "001"
tasks: [{{task_id: "001", name: Asked}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Tell
    form: {json.dumps(FORM)}
    success_output: {{task_id: "001", status: Done, context: {{told: "{{{{result}}}}"}}}}
"""

FETCH = """
plan_id: fetch
name: Fetch
main_task_id: "001"
tasks: [{task_id: "001", name: Fetched}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: fetch
    success_output: {task_id: "001", status: Done, context: {told: "{{result}}"}}
"""


class Stalls:
    """The longest piece of work on the loop, and the latest heartbeat, since they were read."""

    def __init__(self) -> None:
        self.work = self.late = 0.0

    def install(self) -> None:
        run = events.Handle._run  # noqa: SLF001

        def timed(handle: events.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.work = max(self.work, time.thread_time() - began)

        events.Handle._run = timed  # type: ignore[method-assign, assignment]  # noqa: SLF001

    async def beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            self.late = max(self.late, time.perf_counter() - began - 0.001)

    def read(self) -> dict[str, float]:
        found = {"work_ms": 1e3 * self.work, "late_ms": 1e3 * self.late}
        self.work = self.late = 0.0
        return found


def application(home: Path) -> Holdfast:
    app = Holdfast(home, model=ScriptedModel(["yes"] * 1_000))
    app.load_plan_text(ASK)
    app.agent("clerk", name="Clerk", model=None)

    @app.tool(idempotent=True)  # type: ignore[untyped-decorator]
    async def fetch() -> Any:
        return {"success": True, "rows": [[] for _ in range(9_900)]}

    app.load_plan_text(FETCH)
    return app


async def prepare(app: Holdfast, services: Services) -> str:
    deeds = [Deed(1.0, "Will", "did", str(n), detail='{"n": 1}') for n in range(1_000)]
    for _ in range(DEEDS // len(deeds)):
        await app.journal.attach(Attached(deeds))
    _, token = await services.tokens.issue("bench", "person", ["admin"])
    return token


async def serve(home: Path) -> None:
    """In the server's process: says its port and token, then serves until it is stopped."""
    stalls = Stalls()
    app = application(home)
    web = app.asgi(ServerSettings(host="127.0.0.1"))
    install(web)
    services: Services = web.state.services

    async def measured(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/stalls":
            await web(scope, receive, send)
            return
        body = json.dumps(stalls.read()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with app:
            token = await prepare(app, services)
            print(json.dumps([listener.getsockname()[1], token]), flush=True)
            keep_for_good(web)
            stalls.install()
            beating = asyncio.create_task(stalls.beat())
            config = uvicorn.Config(measured, log_level="error", lifespan="off", loop="asyncio")
            await uvicorn.Server(config).serve([listener])
            beating.cancel()


@contextmanager
def server() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".stalls-") as home:
        command = [sys.executable, "-m", "bench.stalls", "--serve", home]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            assert child.stdout is not None
            port, token = json.loads(child.stdout.readline())
            try:
                yield f"http://127.0.0.1:{port}", token
            finally:
                child.terminate()


Send = Callable[[httpx.AsyncClient], Awaitable[Any]]


def many(value: str, count: int) -> bytes:
    return ("[" + ",".join([value] * count) + "]").encode()


def post(path: str, body: Any, **headers: str) -> Send:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        told = {"Content-Type": "application/json", **headers}
        return await client.post(path, content=content, headers=told)

    return send


def get(path: str, **headers: str) -> Send:
    return lambda client: client.get(path, headers=headers)


async def asked(client: httpx.AsyncClient) -> str:
    """A new run that waits; its question's id."""
    started = await client.post("/instances", json={"plan_id": "ask"})
    run_id = started.json()["id"]
    while True:
        found = (await client.get("/interactions", params={"run": run_id})).json()
        for one in found["interactions"]:
            return str(one["requestId"])
        await asyncio.sleep(0.02)


def answer(data: Mapping[str, Any], how: str = "answer") -> Send:
    async def send(client: httpx.AsyncClient) -> httpx.Response:
        question_id = await asked(client)
        await client.get("/stalls")
        if how == "draft":
            return await client.put(f"/interactions/{question_id}/draft", json={"data": data})
        body = {"data": data}
        return await client.post(f"/interactions/{question_id}/answer", json=body)

    return send


async def fetched(client: httpx.AsyncClient) -> httpx.Response:
    started = await client.post("/instances", json={"plan_id": "fetch"})
    run_id = started.json()["id"]
    while (shown := await client.get(f"/instances/{run_id}")).json()["status"] == "running":  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return shown


async def listed(client: httpx.AsyncClient) -> httpx.Response:
    for _ in range(20):
        await client.post("/instances", json={"plan_id": "ask", "prompt": "x" * 9_000})
    await client.get("/stalls")
    return await client.get("/interactions", params={"limit": 200}, headers=CHINESE)


def uses(source: str) -> Send:
    """Registers a plan, then reads and draws it."""

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        registered = await client.post("/plans", json={"source": source})
        assert registered.status_code == 201, registered.text
        await client.get("/plans/large")
        await client.get("/plans/large/versions")
        return await client.get("/plans/large/graph.svg")

    return send


WORD = "must be at most " * 60
PATTERN = {"x": {"validation": {"pattern": "(?:.{0,90}){0,90}[yz]$"}, "default": "x" * 9_000}}
HUGE = "inputs: " + json.dumps(PATTERN) + "\n"
DEEP = "(" * 60 + "001.status == Done" + ")" * 60
LONG = " or ".join(["001.status == Done"] * 400)


def places() -> dict[str, Send]:
    """Every place where something that a caller sends is worked on, with its worst."""
    condition = plan_source(2).replace("trigger_condition: Running", f'trigger_condition: "{LONG}"')
    return {
        "a body of 1 MiB of []": post("/plans/check", many("[]", 349_000)),
        "a body of 1 MiB of texts": post("/plans/check", many('""', 349_000)),
        "a body of 1 MiB of quotation marks": post("/plans/check", b'"' * 1_048_000),
        "a body of 1 MiB of brackets": post("/plans/check", b"[" * 1_048_000),
        "a body of as many values as are taken": post("/plans/ask/continue", many("[]", 4_900)),
        "a body of 10,000 keys": post(
            "/instances/x/continue", {"provided_params": {str(n): 1 for n in range(4_900)}}
        ),
        "a form of 1 MiB of fields": post(
            "/login", b"a=&" * 349_000, **{"Content-Type": "application/x-www-form-urlencoded"}
        ),
        "check: a hostile pattern and default": post(
            "/plans/check", {"source": plan_source(1, HUGE)}
        ),
        "check: the longest plan": post("/plans/check", {"source": plan_source(2_400)}),
        "check: 500,000 characters of brackets": post("/plans/check", {"source": "[" * 499_000}),
        "check: 500,000 characters of a list": post("/plans/check", {"source": "- a\n" * 124_000}),
        "check: a condition of 400 parts": post("/plans/check", {"source": condition}),
        "register, read and draw a long plan": uses(plan_source(2_000)),
        "an answer: texts and patterns": answer({"line": "é" * 3_000, "words": "é" * 3_000}),
        "an answer: JSON within": answer({"value": "[" + "[]," * 9_000 + "1]"}),
        "an answer: 1,000 options": answer({"kinds": [str(n) for n in range(1_000)]}),
        "an answer: 5,000 unknown fields": answer({f"f{n}": 1 for n in range(4_900)}),
        "an answer: 1 MB of text": answer({"line": "x" * 1_000_000}),
        "a draft of 900 kB": answer({"words": "x" * 900_000}, "draft"),
        "a tool's result of 9,900 lists": fetched,
        "a chat's message of 1 MB": post(
            "/api/agent/chat/react/stream", {"message": "x " * 499_000, "agentId": "clerk"}
        ),
        "a conversation's longest input": post("/conversations", {"input": "x " * 99_000}),
        "an inbox of 200 in Chinese": listed,
        "a refusal in Chinese that is nearly ours": post(
            "/plans/check", {"source": f"plan_id: {json.dumps(WORD)}"}, **CHINESE
        ),
        "audit: 40,000 entries verified": get("/audit/verify"),
        "audit: a page of 1,000": get("/audit?limit=1000"),
        "Accept-Language of 60 kB": get("/plans", **{"Accept-Language": "a-b;q=0.1," * 6_000}),
        "a JWT of 16 kB": get("/me", Authorization="Bearer " + "a." * 8_000),
        "a cursor of 8 kB": get("/runs/inst_000001/events", **{"Last-Event-ID": "9" * 8_000}),
        "a list with long parameters": get("/instances?plan_id=" + "x" * 8_000),
        "the API's description": get("/openapi.json"),
        "a page of the console": get("/console/", **CHINESE),
    }


@dataclass(frozen=True, slots=True)
class Stall:
    place: str
    status: str
    work_ms: float
    late_ms: float


async def measure(place: str, send: Send, client: httpx.AsyncClient, rounds: int) -> Stall:
    found, status = [], ""
    for _ in range(rounds):
        await client.get("/stalls")
        try:
            status = str((await send(client)).status_code)
        except httpx.HTTPError as error:
            status = type(error).__name__
        await asyncio.sleep(0.05)
        found.append((await client.get("/stalls")).json())
    work, late = (min(one[name] for one in found) for name in ("work_ms", "late_ms"))
    print(f"{place}: {work:.1f} ms", file=sys.stderr)
    return Stall(place, status, round(work, 1), round(late, 1))


async def run(rounds: int, only: str) -> list[Stall]:
    with server() as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            base_url=url, headers=headers, timeout=120.0, trust_env=False
        ) as client:
            return [
                await measure(place, send, client, rounds)
                for place, send in places().items()
                if only in place
            ]


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    reader.add_argument("--json", action="store_true", help="print JSON instead of a table")
    reader.add_argument("--rounds", type=int, default=ROUNDS)
    reader.add_argument("--only", default="", help="places whose name has this in it")
    given = reader.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve))
        return
    found = asyncio.run(run(given.rounds, given.only))
    if given.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    print("| what is sent | answered | longest work, ms | heartbeat late, ms |\n|---|---|---|---|")
    for one in found:
        print(f"| {one.place} | {one.status} | {one.work_ms} | {one.late_ms} |")
    worst = max(found, key=lambda one: one.work_ms)
    print(f"\nlongest: {worst.work_ms} ms ({worst.place}); promised: {PROMISED_MS:g} ms")


if __name__ == "__main__":
    main()
