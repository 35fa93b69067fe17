"""`holdfast serve`: where it listens, whom it lets in, how it stops."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from cli_scene import Command, command_line, environment
from serving import BY_HAND, served

import warm


def test_the_first_start_prints_a_link_that_signs_an_admin_in_once(place: Path) -> None:
    with served(place) as server:
        first = server.open_link()
        assert (first.status_code, first.headers["location"]) == (303, "/console/")
        me = httpx.get(f"{server.url}/me", cookies=dict(first.cookies)).json()
        assert me["roles"] == ["admin"]
        second = server.open_link()
        assert second.status_code == 401
        assert "used already" in second.json()["detail"]
        assert httpx.get(f"{server.url}/me").status_code == 401


def test_a_later_start_prints_a_link_only_when_it_is_asked_for(place: Path) -> None:
    with served(place) as server:
        server.open_link()
        assert server.stop()[0] == 0
    with served(place) as server:
        assert server.link is None
        assert server.stop()[0] == 0
    with served(place, "--link") as server:
        assert server.open_link().status_code == 303


def test_a_person_is_told_where_it_is_and_how_to_sign_in(place: Path) -> None:
    process = warm.Popen(
        command_line("serve", "--port", "0"),
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    where, link, last = (process.stdout.readline() for _ in range(3))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert where.startswith(".holdfast is served at http://127.0.0.1:")
    assert link.startswith("  to sign in, once and within 15 minutes: http://127.0.0.1:")
    assert last == "  Ctrl-C stops it\n"
    assert err.startswith("stopping: what is in flight ends first")
    assert process.returncode == 0


def test_a_later_start_says_how_to_get_a_link_while_it_serves(
    place: Path, holdfast: Command
) -> None:
    assert holdfast("token", "create", "will", "--role", "admin").code == 0
    process = warm.Popen(
        command_line("serve", "--port", "0"),
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    where, _, link = (process.stdout.readline() for _ in range(3))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    url = where.split()[-1]
    assert link == f"  `holdfast token link --url {url}`\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_streams_and_then_the_server(place: Path, how: signal.Signals) -> None:
    with (
        served(place) as server,
        server.sign_in() as browser,
        browser.stream("GET", "/events") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        began = time.monotonic()
        server.process.send_signal(how)
        said = list(lines)
        _, err = server.process.communicate(timeout=60)
        assert server.process.returncode == 0
        assert time.monotonic() - began < 20, "it waited for the stream"
        assert "event: bye" in said
        assert err == ""


def test_a_second_signal_leaves_at_once_and_loses_nothing(
    application: str, place: Path, holdfast_process: Command
) -> None:
    with served(place, application) as server:
        token = server.token("admin")
        headers = {"Authorization": f"Bearer {token}"}
        body = {"plan_id": "call_slow", "values": {"who": "张三"}}
        started = httpx.post(f"{server.url}/instances", json=body, headers=headers)
        assert started.status_code == 201, started.text
        while not (place / "slow.begun").exists():
            time.sleep(0.02)
        server.process.send_signal(signal.SIGINT)
        while not server.is_closed():
            time.sleep(0.02)
        assert server.process.poll() is None, "what is in flight ends first"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=5) == 130
    [row] = holdfast_process("runs", "--home", "kept", "--json").json
    assert row["status"] == "running"


def test_a_home_in_use_names_the_server_that_has_it(place: Path, holdfast_process: Command) -> None:
    with served(place) as server:
        busy = holdfast_process("run", "ask", "--json")
        assert (busy.code, busy.json["error"]["kind"]) == (1, "HomeBusy")
        assert f"--url {server.url}" in busy.json["error"]["message"]
        assert server.stop()[0] == 0
    assert not (place / ".holdfast" / "server.json").exists()


def test_what_a_dead_server_left_behind_is_not_believed(
    application: str, place: Path, holdfast_process: Command
) -> None:
    with served(place, application) as server:
        server.process.kill()
        server.process.wait(timeout=60)
    assert (place / "kept" / "server.json").exists()
    with warm.Popen(
        command_line("run", "call_slow", "--app", application),
        cwd=place,
        env=environment(),
        stdout=subprocess.DEVNULL,
    ):
        while not (place / "slow.begun").exists():
            time.sleep(0.02)
        busy = holdfast_process("cancel", "1", "--app", application)
        (place / "go").touch()
    assert busy.code == 1
    assert "--url" not in busy.err


def test_an_address_that_others_reach_needs_somebody_who_can_sign_in(
    place: Path, holdfast_process: Command
) -> None:
    refused = holdfast_process("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert "holdfast token create" in refused.err
    assert holdfast_process("token", "create", "will", "--role", "admin").code == 0
    with served(place, "--host", "0.0.0.0", "--allow-host", "127.0.0.1") as server:
        assert server.link is None
        assert httpx.get(f"{server.url}/me").status_code == 401


def test_an_issuer_is_a_way_to_sign_in_too(place: Path) -> None:
    issuer = ("--oidc-issuer", "http://127.0.0.1:9/", "--oidc-audience", "holdfast")
    with served(place, "--host", "0.0.0.0", "--allow-host", "127.0.0.1", *issuer) as server:
        assert httpx.get(f"{server.url}/me").status_code == 401


def test_options_may_stand_in_the_environment(place: Path) -> None:
    with served(place, HOLDFAST_ALLOW_HOST="holdfast.example") as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 400
        named = httpx.get(f"{server.url}/healthz", headers={"Host": "holdfast.example"})
        assert named.status_code == 200


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--oidc-issuer", "https://issuer.example"), "go together"),
        (("works:app", "--app", "other:app"), "leave one out"),
        (("--port", "70000"), "--port"),
        (("--url", "http://127.0.0.1:1"), "--url"),
    ],
)
def test_wrong_usage_is_named(
    holdfast: Command, application: str, arguments: tuple[str, ...], complaint: str
) -> None:
    ending = holdfast("serve", *arguments)
    assert ending.code == 2
    assert complaint in ending.err


def test_a_port_in_use_is_said_and_nothing_is_begun(place: Path, holdfast: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ending = holdfast("serve", "--port", str(taken.getsockname()[1]), "--json")
    assert ending.code == 1
    assert ending.json["error"]["kind"] == "OperatorError"
    assert "is in use: choose another with --port" in ending.json["error"]["message"]


def test_an_agent_that_is_not_there_cannot_be_the_default(holdfast: Command) -> None:
    ending = holdfast("serve", "--default-agent", "nobody")
    assert (ending.code, "there is no agent 'nobody'" in ending.err) == (1, True)


def test_the_access_log_has_no_link_in_it(place: Path) -> None:
    with served(place, "--access-log") as server:
        assert server.link is not None
        httpx.get(server.link, headers=BY_HAND)
        code, _, err = server.stop()
    assert code == 0
    assert '"GET /login?… HTTP/1.1" 303' in err
    assert "link_" not in err


def test_the_application_may_be_named_by_itself(application: str, place: Path) -> None:
    with served(place, application) as server:
        headers = {"Authorization": f"Bearer {server.token('admin')}"}
        found = httpx.get(f"{server.url}/plans", headers=headers).json()
        names = {one["plan_id"] for one in found["plans"]}
        assert names == {"call_pay", "call_shaky", "call_slow"}
        announced = json.loads((place / "kept" / "server.json").read_text(encoding="utf-8"))
        assert announced == {"url": server.url, "pid": server.process.pid}


BOUNDS = {
    "header-bytes": (1024, "GET / HTTP/1.1\r\nHost: x\r\nX: " + "v" * 1024, 431),
    "header-count": (2, "GET / HTTP/1.1\r\nHost: x\r\nX: 1\r\nX: 1\r\nX: 1\r\n", 431),
    "url-bytes": (256, "GET /" + "u" * 256 + " HTTP/1.1\r\n", 414),
    "header-seconds": (0.1, "GET / HTTP/1.1\r\n", 408),
    "max-connections": (1, "", 503),
    "connections-per-address": (1, "", 503),
}


@pytest.mark.parametrize("as_variable", [False, True])
def test_what_is_sent_before_anybody_is_known_is_bounded_as_it_says(
    place: Path, as_variable: bool
) -> None:
    """With one connection at a time, each bound is met by its own."""
    for name, (bound, head, status) in BOUNDS.items():
        variable = {f"HOLDFAST_{name.upper().replace('-', '_')}": str(bound)}
        with (
            served(place, **variable) if as_variable else served(place, f"--{name}", str(bound))
        ) as server:
            where = ("127.0.0.1", httpx.URL(server.url).port or 0)
            with socket.create_connection(where), socket.create_connection(where) as client:
                client.settimeout(60)
                client.sendall(head.encode())
                assert client.recv(100).startswith(f"HTTP/1.1 {status} ".encode()), name


def test_an_idle_connection_is_closed_when_it_says(place: Path) -> None:
    with served(place, "--idle-seconds", "0.1") as server:
        where = ("127.0.0.1", httpx.URL(server.url).port or 0)
        with socket.create_connection(where) as client:
            client.settimeout(60)
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
