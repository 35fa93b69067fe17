"""Commands against a server of the release before there were views: a stand-in that answers as that
one did, and notes what was begun."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cli_scene import Command, Ending

from holdfast.cli.server_backend import ServerBackend

RUN = {"id": "inst_000001", "kind": "plan", "version": 3, "status": "running"}
PLAN = {
    "plan_id": "greet",
    "name": "Greet",
    "main_task_id": "001",
    "tasks": [{"task_id": "001", "name": "Greet"}],
    "listeners": [],
}
KNOWN: dict[tuple[str, str], Any] = {
    ("GET", "/plans/greet"): {"definition": PLAN},
    ("GET", "/agents"): {"agents": [{"agent_id": "clerk", "name": "Clerk"}]},
    ("GET", "/runs/inst_000001"): RUN,
    ("GET", "/interactions"): {"interactions": [], "next": None},
    ("GET", "/runs"): {"runs": [], "next": None},
    ("POST", "/instances"): RUN,
    ("POST", "/chats"): {"sessionId": "chat_000001"},
    ("POST", "/instances/inst_000001/cancel"): RUN,
}


class OlderServer(ThreadingHTTPServer):
    """Knows no `/runs/{id}/view`, `/timeline`, `/cancel` and `/resume`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.begun: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: OlderServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer()
        self.server.begun.append(self.path)

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        known = KNOWN.get((self.command, path))
        status, told = (404, _no_such_path()) if known is None else (200, known)
        body = json.dumps(told).encode()
        self.send_response(status)
        kind = "application/json" if known is not None else "application/problem+json"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def _no_such_path() -> dict[str, Any]:
    """In Starlette's words; of a run that there is not it speaks in its own."""
    told = {"success": False, "error": "Not Found", "message": "Not Found"}
    return {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "Not Found",
        **told,
    }


@pytest.fixture
def older() -> Iterator[OlderServer]:
    with OlderServer() as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture
def there(older: OlderServer, holdfast: Command) -> Callable[..., Ending]:
    return lambda *arguments: holdfast(*arguments, "--url", older.url)


@pytest.mark.parametrize(
    "command",
    [
        ("run", "greet"),
        ("chat", "hello"),
        ("watch", "1"),
        ("history", "1"),
        ("graph", "1"),
        ("cancel", "1"),
        ("resume", "1"),
        ("continue", "1"),
        ("diagnose", "1"),
        ("repair", "1"),
    ],
    ids=lambda one: one[0],
)
def test_what_an_older_server_has_not_is_said_with_the_remedy_and_nothing_begins(
    there: Callable[..., Ending], older: OlderServer, command: tuple[str, ...]
) -> None:
    said = there(*command)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {older.url}: ")
    assert "the server has no GET /runs/" in said.err
    assert "it is older than this client; upgrade the server to Holdfast" in said.err
    assert "or use the holdfast command of the server's own release" in said.err
    assert there(*command, "--json").json["error"]["kind"] == "ServerTooOld"
    assert older.begun == []


@pytest.mark.parametrize("command", [("run", "greet"), ("chat", "hello")], ids=lambda one: one[0])
def test_what_begins_something_says_that_nothing_was_begun(
    there: Callable[..., Ending], command: tuple[str, ...]
) -> None:
    assert "nothing was begun; the server has no GET /runs/none/view" in there(*command).err


def test_what_an_older_server_has_still_works(there: Callable[..., Ending]) -> None:
    assert there("runs").out.startswith("no runs yet")
    assert there("inbox").out == "nothing waits for a person\n"
    assert there("graph", "greet").code == 0


async def test_a_command_that_the_server_has_not_is_refused_too(older: OlderServer) -> None:
    from holdfast.cli.shell import Address
    from holdfast.errors import ServerTooOld

    backend = ServerBackend(Address(older.url))
    with pytest.raises(ServerTooOld, match="no POST /runs/inst_000001/cancel"):
        async with backend.opened():
            await backend.cancel("inst_000001", "")


async def test_repairs_that_the_server_has_not_are_refused_too(older: OlderServer) -> None:
    from holdfast.cli.backend import OwnPatch
    from holdfast.cli.shell import Address
    from holdfast.errors import ServerTooOld

    backend, patch = ServerBackend(Address(older.url)), OwnPatch([])
    for asked, told in (
        (lambda: backend.cases("inst_000001"), "no GET /instances/inst_000001/cases"),
        (lambda: backend.rehearsed("inst_000001", patch), "no POST /instances/inst_000001/patches"),
        (lambda: backend.propose("inst_000001", patch), "no POST /instances/inst_000001/patches"),
    ):
        with pytest.raises(ServerTooOld, match=told):
            async with backend.opened():
                await asked()
