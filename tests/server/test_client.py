"""The client: the server's refusals as errors, once-only requests, streams that come back."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from chains import chain
from listeners import seen
from serve_child import STEPS
from server_scene import Office, Scene, listening, settled
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import warm
from holdfast import Client, Holdfast, errors
from holdfast.client import ServerEvent
from holdfast.client.event_stream import EventStream
from holdfast.client.problems import refusal_of
from holdfast.client.transport import path_of
from holdfast.server.settings import ServerSettings
from holdfast.server.streams.sse import Frame, encoded

HERE = Path(__file__).parent


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[Client]:
    async with Client(scene.url, await token(scene)) as client:
        yield client


async def token(scene: Scene, *roles: str) -> str:
    _, secret = await scene.services.tokens.issue("a client", "person", roles or ["admin"], None)
    return secret


async def paused(client: Client, scene: Scene) -> tuple[str, str]:
    """A run that waits, and its question."""
    run = await client.instances.start("order", plan_id="apply_computer")
    await settled(scene, run["id"])
    [question] = (await client.interactions.list(run=run["id"]))["interactions"]
    return run["id"], question["requestId"]


async def test_a_run_from_start_to_end(client: Client, scene: Scene) -> None:
    assert (await client.me())["roles"] == ["admin"]
    assert (await client.health())["status"]
    run_id, question = await paused(client, scene)
    assert (await client.instances.get(run_id))["status"] == "pause"
    await client.interactions.answer(question, data={"computer_model": "MacBook Pro"})
    events = [event async for event in client.events(run_id)]
    assert [event.id for event in events if event.id] == [
        str(one["seq"]) for one in (await client.runs.history(run_id))["events"]
    ]
    assert events[-1].type == "RunCompleted"
    assert [event async for event in client.events(run_id, after=events[-1].id)] == []
    assert run_id in [one["id"] for one in (await client.runs.list(kind="plan"))["runs"]]
    assert "<svg" in await client.instances.graph(run_id)


async def test_every_noun_is_offered(client: Client, scene: Scene) -> None:
    source = (await client.plans.list())["plans"]
    assert {one["plan_id"] for one in source} == {"apply_computer", "grant_access"}
    registered = await client.plans.register(
        chain(3)
        .replace("tool: touch", "tool: grant_access")
        .replace("args: {}", "args: {employee: Will Zhang}")
    )
    assert registered["plan_id"] == "chain"
    versions = await client.plans.versions("chain")
    assert versions["versions"][0]["digest"] == registered["digest"]
    assert (await client.plans.version("chain", registered["digest"]))["current"]
    assert {one["name"] for one in (await client.tools.list())["tools"]} == {
        "apply_computer",
        "grant_access",
    }
    assert (await client.tools.get("grant_access"))["name"] == "grant_access"
    assert (await client.agents.list())["agents"] == []
    assert (await client.chats.list())["chats"] == []
    assert (await client.conversations.list())["conversations"] == []
    issued = await client.tokens.issue("guest", roles=["viewer"])
    assert issued["id"] in [one["id"] for one in (await client.tokens.list())["tokens"]]
    await client.tokens.revoke(issued["id"])
    assert issued["id"] not in [one["id"] for one in (await client.tokens.list())["tokens"]]
    assert (await client.audit.list())["entries"]
    assert "holdfast" in await client.metrics()
    with pytest.raises(errors.NotFound):
        await client.conversations.get("conv_000001")
    with pytest.raises(errors.NotFound):
        await client.chats.say("chat_000001", "hello")


async def test_refusals_are_the_errors_that_they_are(client: Client, scene: Scene) -> None:
    with pytest.raises(errors.NotFound, match="inst_999999"):
        await client.instances.get("inst_999999")
    with pytest.raises(errors.PlanRejected) as rejected:
        await client.plans.register("plan_id: broken\nmain_task_id: '001'\n")
    assert rejected.value.problems
    assert all(one.message for one in rejected.value.problems)
    run_id, question = await paused(client, scene)
    with pytest.raises(errors.InvalidAnswer) as invalid:
        await client.interactions.answer(question, data={"computer_model": "abacus"})
    assert "computer_model" in str(invalid.value.fields)
    await client.interactions.answer(question, data={"computer_model": "MacBook Pro"})
    with pytest.raises(errors.AlreadyAnswered) as answered:
        await client.interactions.answer(question, data={"computer_model": "ThinkPad X1"})
    assert answered.value.by == "a client"
    assert answered.value.at > 0
    await settled(scene, run_id)
    with pytest.raises(errors.NotAllowed):
        await client.instances.resume(run_id)
    with pytest.raises(errors.InvalidValue):
        await client.instances.start("x", plan_id="apply_computer", values={"n": float("nan")})


async def test_strangers_and_the_unauthorised_are_told_so(scene: Scene) -> None:
    async with Client(scene.url, "hf_nothing") as stranger:
        with pytest.raises(errors.Unauthenticated):
            await stranger.me()
        with pytest.raises(errors.Unauthenticated):
            await anext(stranger.all_events())
    async with Client(scene.url, await token(scene, "viewer")) as viewer:
        with pytest.raises(errors.NotPermitted):
            await viewer.instances.start("x", plan_id="apply_computer")


async def test_a_failed_run_is_repaired(client: Client, scene: Scene, office: Office) -> None:
    office.failures = 1
    run_id = (await client.instances.start("let in", plan_id="grant_access"))["id"]
    assert await settled(scene, run_id) == "error"
    [case] = (await client.instances.cases(run_id))["cases"]
    assert (await client.instances.case(run_id, case["case_id"]))["case"] == case

    operations = [{"op": "set_args", "listener_id": "L001", "set": {"employee": "WZ001"}}]
    foreseen = (await client.instances.rehearse(run_id, operations, reason="an id"))["proposal"]
    assert foreseen["success"]["reached"]
    assert (await client.instances.patches(run_id))["patches"] == []

    made = await client.instances.propose(run_id, operations, reason="an id", listener_id="L001")
    patch = made["case"]["proposal"]["patch_id"]
    assert "~ L001" in await client.instances.patch_graph(run_id, patch)
    _, secret = await scene.services.tokens.issue("another", "person", ["approver"], None)
    async with Client(scene.url, secret) as approver:
        await approver.interactions.answer(made["interaction"]["requestId"], option_id="apply")
    assert await settled(scene, run_id) == "done"
    [applied] = (await client.instances.patches(run_id))["patches"]
    assert applied["patch_id"] == patch
    born, then = [await client.runs.definition(run_id, at=one) for one in (1, None)]
    last = (await client.runs.get(run_id))["version"]
    now = await client.runs.definition(run_id, at=last)
    assert born["digest"] == then["digest"] == applied["base"]
    assert now["digest"] == applied["digest"]


async def test_what_is_wrong_with_a_patch_comes_as_its_error(
    client: Client, scene: Scene, office: Office
) -> None:
    office.failures = 1
    run_id = (await client.instances.start("let in", plan_id="grant_access"))["id"]
    await settled(scene, run_id)
    unknown = [{"op": "skip", "listener_id": "L008"}, {"op": "skip", "listener_id": "L009"}]
    for way in (client.instances.propose, client.instances.rehearse):
        with pytest.raises(errors.PatchRejected) as rejected:
            await way(run_id, unknown)
        assert [one.partition(":")[0] for one in rejected.value.problems] == [
            "operations[0].listener_id",
            "operations[1].listener_id",
        ]
    with pytest.raises(errors.NotAllowed, match="today's version"):
        await client.instances.propose(run_id, to_current=True)
    with pytest.raises(errors.PatchRejected) as rejected:
        await client.instances.rehearse(run_id, unknown, language="zh")
    assert all("计划" in one or "监听器" in one for one in rejected.value.problems)
    with pytest.raises(errors.InvalidValue):
        await client.instances.propose(run_id, [{"op": "skip", "n": float("nan")}])


def test_whatever_a_name_contains_stays_one_part_of_the_path() -> None:
    assert path_of("runs", "../a b/ü?x#y") == "/runs/..%2Fa%20b%2F%C3%BC%3Fx%23y"


class Unreliable:
    """In front of a server: lets a request through, or breaks it off at a place of its choice.

    `fate` says for each request: `serve`; `refuse` (503, not served); `drop` (served, and the
    answer never leaves); a number (cut after so many bytes of the body); `mute` (nothing more
    is said, and the connection stays).
    """

    def __init__(self, app: ASGIApp, fates: list[str | int]) -> None:
        self._app = app
        self.fates = fates
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self.requests += 1
        fate = self.fates.pop(0) if self.fates else "serve"
        if fate == "refuse":
            await _unavailable(send)
            return
        await self._app(scope, receive, _Cut(fate, receive, send))


async def _unavailable(send: Send) -> None:
    headers = [(b"retry-after", b"0"), (b"content-type", b"application/problem+json")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"detail": "disk full"}'})


class _Cut:
    def __init__(self, fate: str | int, receive: Any, send: Send) -> None:
        self._fate = fate
        self._transport = receive.__self__.transport
        self._send = send
        self._left = fate if isinstance(fate, int) else 0

    async def __call__(self, message: Message) -> None:
        if self._fate == "drop":
            self._transport.abort()
        elif self._fate == "mute" and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        elif isinstance(self._fate, int) and message["type"] == "http.response.body":
            await self._until_cut(message)
        else:
            await self._send(message)

    async def _until_cut(self, message: Message) -> None:
        body = message["body"][: self._left]
        self._left -= len(body)
        await self._send({**message, "body": body, "more_body": True})
        if not self._left:
            self._transport.close()
            self._fate = "drop"


@asynccontextmanager
async def unreliable(
    scene: Scene, *fates: str | int, **options: Any
) -> AsyncIterator[tuple[Client, Unreliable]]:
    """A client that reaches the scene's server through something that breaks connections."""
    web = scene.app.asgi(ServerSettings(heartbeat=0.1))
    front = Unreliable(web, [])
    async with listening(front) as url:
        secret = await token(scene)
        async with Client(url, secret, **options) as client:
            front.fates = [*fates]
            try:
                yield client, front
            finally:
                web.state.services.streams.close()


async def test_a_request_whose_answer_was_lost_is_carried_out_once(
    scene: Scene, office: Office
) -> None:
    async with unreliable(scene, "drop", "drop") as (client, front):
        run = await client.instances.start("order", plan_id="grant_access")
        assert front.requests == 3
    await settled(scene, run["id"])
    assert [one.run_id for one in await scene.app.runs()] == [run["id"]]
    assert office.count("grant_access") == 1


async def test_a_server_that_cannot_acknowledge_is_asked_again(scene: Scene) -> None:
    async with unreliable(scene, "refuse", "refuse") as (client, front):
        run = await client.instances.start("order", plan_id="grant_access")
        assert front.requests == 3
    assert [one.run_id for one in await scene.app.runs()] == [run["id"]]


async def test_patience_ends_and_says_why(scene: Scene) -> None:
    async with unreliable(scene, *["refuse"] * 100, patience=0.2) as (client, _):
        with pytest.raises(errors.JournalUnavailable, match="disk full"):
            await client.plans.list()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        async with Client(url, "hf_x", patience=0.2, stream_patience=0.2) as client:
            with pytest.raises(errors.OperatorError, match="is the server running"):
                await client.me()
            with pytest.raises(errors.OperatorError, match="is the server running"):
                await anext(client.all_events())


async def finished(client: Client, scene: Scene) -> tuple[str, list[str]]:
    """A run that is over, and the ids of its events."""
    run_id, question = await paused(client, scene)
    await client.interactions.answer(question, data={"computer_model": "MacBook Pro"})
    assert await settled(scene, run_id) == "done"
    return run_id, [str(n) for n in range(1, await scene.app.journal.version(run_id) + 1)]


async def test_a_stream_cut_anywhere_goes_on_and_misses_and_repeats_nothing(
    scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.streams.sse.RETRY", b"retry: 1\n\n")
    run_id, expected = await finished(client, scene)
    async with unreliable(scene) as (shaky, front):
        whole = (await shaky._transport.send("GET", f"/runs/{run_id}/events")).content
        for cut in range(0, len(whole), 397):
            front.fates = [cut, cut // 2, "drop", "refuse"]
            told = [one async for one in shaky.events(run_id)]
            assert [one.id for one in told if one.id] == expected, cut


async def test_a_question_is_handed_on_once_however_often_the_stream_comes_back(
    scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.streams.sse.RETRY", b"retry: 1\n\n")
    run_id, _ = await paused(client, scene)
    told = []
    async with (
        asyncio.timeout(30),
        unreliable(scene, 300, 900, 1500) as (shaky, front),
        aclosing(shaky.events(run_id)) as events,
    ):
        async for event in events:
            told.append(event)
            if event.type == "QuestionOpened":
                await client.instances.cancel(run_id)
    assert front.requests >= 2
    assert [one.type for one in told].count("INTERACTION") == 1
    assert [int(one.id) for one in told if one.id] == [*range(1, len(told))]


async def test_a_connection_without_heartbeats_is_given_up_and_taken_up_again(
    scene: Scene, client: Client
) -> None:
    run_id, expected = await finished(client, scene)
    async with unreliable(scene, "mute", silence=0.3) as (shaky, front):
        async with asyncio.timeout(30):
            told = [one async for one in shaky.events(run_id)]
        assert [one.id for one in told if one.id] == expected
        assert front.requests == 2


async def test_heartbeats_keep_a_silent_stream_alive(scene: Scene, client: Client) -> None:
    run_id, _ = await paused(client, scene)
    async with unreliable(scene, silence=1.0) as (patient, front):
        async with asyncio.timeout(30), aclosing(patient.events(run_id)) as events:
            told = [(await anext(events)).type for _ in range(3)]
            assert told == ["INTERACTION", "RunStarted", "QuestionOpened"]
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(2.0)
            assert not waiting.done()
            await client.instances.cancel(run_id)
            assert (await waiting).id == "3"
        assert front.requests == 1


class CutWire:
    """In place of the wire: five events, and each connection ends after so many bytes."""

    def __init__(self, *cuts: int) -> None:
        self.cuts = list(cuts)

    @asynccontextmanager
    async def stream(
        self, path: str, headers: dict[str, str], parameters: Any, silence: float
    ) -> AsyncIterator[httpx.Response]:
        last = int(headers.get("last-event-id", 0))
        told = [encoded(Frame({"n": "行\n"}, "Told", n)) for n in range(last + 1, 6)]
        body = b"".join([b"retry: 0\n\n: beat\n\n", *told, b"event: end\ndata: {}\n\n"])
        yield httpx.Response(200, content=body[: self.cuts.pop(0)] if self.cuts else body)


async def test_wherever_a_connection_ends_the_next_goes_on_from_the_last_whole_event() -> None:
    whole = 400
    for first in range(whole):
        following = EventStream(CutWire(first, whole - first, 7), "/", {}, 1.0, 1.0)  # type: ignore[arg-type]
        assert [event.id async for event in following.events()] == ["1", "2", "3", "4", "5"]


class Server:
    """`serve_child.py` as a process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""

    async def start(self) -> None:
        self._process = await warm.create_subprocess_exec(
            sys.executable,
            str(HERE / "serve_child.py"),
            str(self._home),
            str(self.port),
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        said = (await self._process.stdout.readline()).decode().strip()
        assert said.startswith("hf_"), said
        self.token = self.token or said

    async def stop(self, how: signal.Signals) -> int:
        self._process.send_signal(how)
        return await self._process.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_ten_runs_are_followed_through_the_servers_death_and_return(
    tmp_path: Path, how: signal.Signals
) -> None:
    server = Server(tmp_path)
    await server.start()
    told: dict[str, list[ServerEvent]] = {}
    feed: list[ServerEvent] = []
    halfway = asyncio.Event()

    async def follow(run_id: str) -> None:
        async for event in client.events(run_id):
            told.setdefault(run_id, []).append(event)
            if sum(map(len, told.values())) > 10 * STEPS // 2:
                halfway.set()

    async def follow_all() -> None:
        async for event in client.all_events("0"):
            feed.append(event)

    async with asyncio.timeout(120), Client(server.url, server.token) as client:
        everything = asyncio.create_task(follow_all())
        runs = [(await client.instances.start("go", plan_id="chain"))["id"] for _ in range(10)]
        following = [asyncio.create_task(follow(run_id)) for run_id in runs]
        await halfway.wait()
        stopped = await server.stop(how)
        assert stopped == (-signal.SIGKILL if how is signal.SIGKILL else 0)
        await server.start()
        await asyncio.gather(*following)
        for run_id in runs:
            assert (await client.instances.get(run_id))["status"] == "done"
            history = (await client.runs.history(run_id, limit=200))["events"]
            assert [one.data for one in told[run_id]] == history
        total = sum(map(len, told.values()))
        await seen(lambda: len(feed) >= total)
        assert [int(one.id or 0) for one in feed] == [*range(1, total + 1)]
        for run_id in runs:
            assert [one.data for one in feed if one.data["run_id"] == run_id] == [
                one.data for one in told[run_id]
            ]
        everything.cancel()
        await asyncio.wait({everything})
        assert await server.stop(signal.SIGTERM) == 0


async def test_the_application_that_is_served_need_not_be_told_of_its_clients(
    app: Holdfast,
) -> None:
    """`import holdfast` offers the client without loading a server."""
    code = "import holdfast, sys; holdfast.Client; assert 'fastapi' not in sys.modules"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0


def _particular(name: str, **members: Any) -> dict[str, Any]:
    return {"type": f"urn:holdfast:{name}", "detail": "no", **members}


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (422, {"detail": [{"loc": ["body"], "msg": "wrong"}]}, errors.CallerError),
        (404, {"type": ["x"], "detail": {}}, errors.NotFound),
        (405, {"detail": ["no"]}, errors.CallerError),
        (409, _particular("already-answered", answered_at="noon"), errors.NotAllowed),
        (422, _particular("invalid-value", fields=["a", "b"]), errors.CallerError),
        (422, _particular("invalid-value", fields=7), errors.CallerError),
        (422, _particular("plan-rejected"), errors.CallerError),
        (422, _particular("plan-rejected", problems=[{"odd": 1}]), errors.CallerError),
        (422, _particular("form-rejected", problems=[{}]), errors.CallerError),
        (422, {"detail": "no", "fields": [1]}, errors.CallerError),
    ],
)
def test_what_another_server_refuses_is_an_error_of_ours(
    status: int, said: Any, error: type[Exception]
) -> None:
    assert type(refusal_of(httpx.Response(status, json=said))) is error


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("body", [b"[" * 100_000, b"null", b"[]", b'"x"', b"\xff"])
async def test_what_is_no_json_object_is_an_error_of_ours(status: int, body: bytes) -> None:
    async def another(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async with listening(another) as url, Client(url) as client:
        with pytest.raises(errors.HoldfastError):
            await client.me()
