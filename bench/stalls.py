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
import threading
import time
from asyncio import events
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from bench.child import ROOT
from holdfast import Holdfast
from holdfast.console import install
from holdfast.journal.port import Attached, AuditRecord
from holdfast.server.services import Services
from holdfast.server.serving import keep_for_good
from holdfast.server.settings import ServerSettings
from holdfast.testing.model_script import Entry, Seen, call
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


CALL = """
plan_id: {tool}
name: Call
main_task_id: "001"
tasks: [{{task_id: "001", name: Called}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: {tool}
    retry: {{attempts: 1}}
    success_output: {{task_id: "001", status: Done, context: {{told: "{{{{result}}}}"}}}}
"""

DEEPEST = "[" * 90 + "]" * 90
BODIES = {
    "http_long": json.dumps({"success": True, "text": "x" * 990_000}),
    "http_wide": json.dumps({"success": True, "rows": [1] * 49_000}),
    "http_deep": f'{{"success": true, "rows": [{",".join([DEEPEST] * 400)}]}}',
}
REFUSED = ("http_deep",)
"""Read, and then found to be deeper than what is kept."""


def replies(seen: Seen) -> Entry:
    """As much as the message asks for."""
    if seen.results:
        return "Done."
    match seen.asked:
        case "long":
            return "word " * 200_000
        case "wide":
            return call("note", value=list(range(9_000)))
        case "deep":
            return call("note", value=json.loads(DEEPEST))
    return "yes"


class Bodies(BaseHTTPRequestHandler):
    """The service behind the HTTP tools."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = BODIES[self.path.strip("/")].encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def http_tools(home: Path, port: int) -> Path:
    """Declared as users declare theirs."""
    tools = [
        {
            "name": name,
            "description": name,
            "endpoint": f"http://127.0.0.1:{port}/{name}",
            "idempotent": True,
        }
        for name in BODIES
    ]
    path = home / "tools.yaml"
    path.write_text(json.dumps({"tools": tools}), encoding="utf-8")
    return path


def application(home: Path, port: int) -> Holdfast:
    app = Holdfast(home, model=ScriptedModel(replies))
    app.load_plan_text(ASK)
    app.agent("clerk", name="Clerk", model=None, tools=["note"])

    @app.tool(idempotent=True)  # type: ignore[untyped-decorator]
    async def fetch() -> Any:
        return {"success": True, "rows": [[] for _ in range(9_900)]}

    @app.tool(idempotent=True)  # type: ignore[untyped-decorator]
    async def note(value: list[Any]) -> Any:
        return {"success": True}

    app.load_tools(http_tools(home, port))
    for tool in ("fetch", *BODIES):
        app.load_plan_text(CALL.format(tool=tool))
    return app


async def prepare(app: Holdfast, services: Services) -> str:
    deeds = [AuditRecord(1.0, "Will", "did", str(n), detail='{"n": 1}') for n in range(1_000)]
    for _ in range(DEEDS // len(deeds)):
        await app.journal.attach(Attached(deeds))
    _, token = await services.tokens.issue("bench", "person", ["admin"])
    return token


async def serve(home: Path) -> None:
    """In the server's process: says its port and token, then serves until it is stopped."""
    stalls = Stalls()
    service = ThreadingHTTPServer(("127.0.0.1", 0), Bodies)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    app = application(home, service.server_port)
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
            keep_for_good(app, web)
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


Send = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, and what says that it has reached its place: a status, and words of it."""

    status: int
    send: Send
    says: str = ""


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


def continues(params: Mapping[str, Any]) -> Send:
    async def send(client: httpx.AsyncClient) -> httpx.Response:
        started = await client.post("/instances", json={"plan_id": "ask"})
        path = f"/instances/{started.json()['id']}/continue"
        await client.get("/stalls")
        return await client.post(path, json={"provided_params": params})

    return send


async def ended(client: httpx.AsyncClient, run_id: str) -> httpx.Response:
    """The run, once it has come to its end or to a person."""
    while True:
        shown = await client.get(f"/runs/{run_id}")
        if shown.json()["status"] not in ("not_started", "running", "continue"):
            return shown
        await asyncio.sleep(0.02)


def finished(plan_id: str) -> Send:
    """Runs a plan whose only tool returns much; it must be taken, or be refused as too much."""

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        started = await client.post("/instances", json={"plan_id": plan_id})
        shown = await ended(client, started.json()["id"])
        assert (shown.json()["status"] == "done") == (plan_id not in REFUSED), shown.text[:500]
        return shown

    return send


def replied(how: str) -> Send:
    """A chat whose model replies with much."""

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        opened = await client.post("/chats", json={"agentId": "clerk"})
        run_id = opened.json()["sessionId"]
        said = await client.post(f"/chats/{run_id}/messages", json={"message": how})
        assert said.status_code == 200, said.text
        shown = await ended(client, run_id)
        assert shown.json()["status"] == "done", shown.text[:500]
        return shown

    return send


async def snapshot(client: httpx.AsyncClient) -> httpx.Response:
    began = await client.post("/conversations", json={"input": "x " * 99_000})
    run_id = began.json()["id"]
    await ended(client, run_id)
    await client.get("/stalls")
    return await client.get(f"/conversations/{run_id}/snapshot")


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


def places() -> dict[str, Case]:
    """Every place where something that a caller sends is worked on, with its worst."""
    condition = plan_source(2).replace("trigger_condition: Running", f'trigger_condition: "{LONG}"')
    lambdas = plan_source(2).replace("'result = 1'", f"'result = {'lambda: ' * 2_400}1'")
    return {
        "a body of 1 MiB of []": Case(413, post("/plans/check", many("[]", 349_000))),
        "a body of 1 MiB of texts": Case(413, post("/plans/check", many('""', 349_000))),
        "a body of 1 MiB of quotation marks": Case(413, post("/plans/check", b'"' * 1_048_000)),
        "a body of 1 MiB of brackets": Case(413, post("/plans/check", b"[" * 1_048_000)),
        "a body of as many values as are taken": Case(
            422, post("/plans/ask/continue", many("[]", 4_900))
        ),
        "a body of 4,900 keys": Case(422, continues({str(n): 1 for n in range(4_900)})),
        "a form of 1 MiB of fields": Case(
            413,
            post(
                "/login", b"a=&" * 349_000, **{"Content-Type": "application/x-www-form-urlencoded"}
            ),
        ),
        "check: a hostile pattern and default": Case(
            422, post("/plans/check", {"source": plan_source(1, HUGE)})
        ),
        "check: the longest plan": Case(200, post("/plans/check", {"source": plan_source(2_400)})),
        "check: 500,000 characters of brackets": Case(
            422, post("/plans/check", {"source": "[" * 499_000})
        ),
        "check: 500,000 characters of a list": Case(
            422, post("/plans/check", {"source": "- a\n" * 124_000})
        ),
        "check: a condition of 400 parts": Case(422, post("/plans/check", {"source": condition})),
        "check: a snippet of lambdas": Case(422, post("/plans/check", {"source": lambdas})),
        "register, read and draw a long plan": Case(200, uses(plan_source(2_000))),
        "an answer: texts and patterns": Case(
            422, answer({"line": "é" * 900, "words": "é" * 900}), "must match the pattern"
        ),
        "an answer: JSON within": Case(200, answer({"value": "[" + "[]," * 2_000 + "1]"})),
        "an answer: 1,000 options": Case(200, answer({"kinds": [str(n) for n in range(1_000)]})),
        "an answer: 4,900 unknown fields": Case(422, answer({f"f{n}": 1 for n in range(4_900)})),
        "an answer: 1 MB of text": Case(422, answer({"line": "x" * 1_000_000})),
        "a draft of 900 kB": Case(200, answer({"words": "x" * 900_000}, "draft")),
        "a tool's result of 9,900 lists": Case(200, finished("fetch")),
        "an HTTP tool's answer of 1 MB": Case(200, finished("http_long")),
        "an HTTP tool's answer of 49,000 values": Case(200, finished("http_wide")),
        "an HTTP tool's answer, deep": Case(200, finished("http_deep")),
        "a model's reply of 1 MB": Case(200, replied("long")),
        "a model's arguments of 9,000 values": Case(200, replied("wide")),
        "a model's arguments, deep": Case(200, replied("deep")),
        "a chat's message of 1 MB": Case(
            200,
            post("/api/agent/chat/react/stream", {"message": "x " * 499_000, "agentId": "clerk"}),
        ),
        "a conversation's longest input": Case(
            201, post("/conversations", {"input": "x " * 99_000})
        ),
        "a conversation's snapshot": Case(200, snapshot),
        "an inbox of 200 in Chinese": Case(200, listed),
        "a refusal in Chinese that is nearly ours": Case(
            422, post("/plans/check", {"source": f"plan_id: {json.dumps(WORD)}"}, **CHINESE)
        ),
        "audit: 40,000 entries verified": Case(200, get("/audit/verify")),
        "audit: a page of 1,000": Case(200, get("/audit?limit=1000")),
        "Accept-Language of 60 kB": Case(
            200, get("/plans", **{"Accept-Language": "a-b;q=0.1," * 6_000})
        ),
        "a JWT of 16 kB": Case(401, get("/me", Authorization="Bearer " + "a." * 8_000)),
        "a cursor of 8 kB": Case(
            422, get("/runs/inst_000001/events", **{"Last-Event-ID": "9" * 8_000})
        ),
        "a list with long parameters": Case(422, get("/instances?plan_id=" + "x" * 8_000)),
        "the API's description": Case(200, get("/openapi.json")),
        "a page of the console": Case(200, get("/console/runs", **CHINESE)),
    }


@dataclass(frozen=True, slots=True)
class Stall:
    place: str
    status: int
    work_ms: float
    late_ms: float


async def measure(place: str, case: Case, client: httpx.AsyncClient, rounds: int) -> Stall:
    found = []
    for _ in range(rounds):
        await client.get("/stalls")
        told = await case.send(client)
        reached = told.status_code == case.status and case.says in told.text
        assert reached, f"{place}: {told.status_code} {told.text[-700:]}"
        await asyncio.sleep(0.05)
        found.append((await client.get("/stalls")).json())
    work, late = (min(one[name] for one in found) for name in ("work_ms", "late_ms"))
    print(f"{place}: {work:.1f} ms", file=sys.stderr)
    return Stall(place, case.status, round(work, 1), round(late, 1))


async def run(rounds: int, only: str) -> list[Stall]:
    with server() as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            base_url=url, headers=headers, timeout=120.0, trust_env=False
        ) as client:
            return [
                await measure(place, case, client, rounds)
                for place, case in places().items()
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
