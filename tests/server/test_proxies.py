"""Proxies: what they say of a request is believed of those that are trusted, and of no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from server_scene import furnish, serving

from holdfast import Holdfast
from holdfast.server.auth.tokens import Tokens
from holdfast.server.middleware.connections import Gate
from holdfast.server.middleware.proxies import MOST_HOPS, TrustedProxies
from holdfast.server.settings import ServerSettings

PROXY = "10.0.0.1"
TRUSTED = ("10.0.0.0/8", "fd00::/8")
BEHIND = ServerSettings(
    trusted_proxies=("127.0.0.0/8",), allowed_hosts=("127.0.0.1", "holdfast.example")
)


def scope_of(peer: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    sent = [(b"host", b"inner:8420"), *((n.lower().encode(), v.encode()) for n, v in headers)]
    client = None if peer is None else (peer, 4711)
    return {"type": "http", "client": client, "scheme": "http", "headers": sent}


def seen(peer: str | None, *headers: tuple[str, str]) -> tuple[str, str, str]:
    """The client, scheme and host that a server behind the trusted proxies sees."""
    scope = scope_of(peer, *headers)
    TrustedProxies(TRUSTED).apply(scope)
    [host] = [value for name, value in scope["headers"] if name == b"host"]
    return scope["client"][0] if scope["client"] else "", scope["scheme"], host.decode()


def client(peer: str | None, *headers: tuple[str, str]) -> str:
    return seen(peer, *headers)[0]


FOR, PROTO, HOST = "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"
EVERYTHING = ((FOR, "1.2.3.4"), (PROTO, "https"), (HOST, "a.example"))
STANDARD = (("Forwarded", 'for=1.2.3.4;proto=https;host="a.example"'),)


@pytest.mark.parametrize("headers", [EVERYTHING, STANDARD, (*EVERYTHING, *STANDARD)])
def test_a_trusted_proxy_is_believed(headers: tuple[tuple[str, str], ...]) -> None:
    assert seen(PROXY, *headers) == ("1.2.3.4", "https", "a.example")


@pytest.mark.parametrize("peer", ["8.8.8.8", "11.0.0.1", "2001:db8::1", "::ffff:8.8.8.8", "", "x"])
@pytest.mark.parametrize("headers", [EVERYTHING, STANDARD])
def test_anybody_else_is_not(peer: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert seen(peer, *headers) == (peer, "http", "inner:8420")


def test_a_connection_without_an_address_is_nobody_we_trust() -> None:
    assert seen(None, *EVERYTHING) == ("", "http", "inner:8420")


def test_by_default_nobody_is_believed() -> None:
    scope = scope_of(PROXY, *EVERYTHING)
    TrustedProxies(ServerSettings().trusted_proxies).apply(scope)
    assert scope == scope_of(PROXY, *EVERYTHING)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("6.6.6.6, 1.2.3.4", "1.2.3.4"),  # the client wrote the first itself
        ("6.6.6.6, 1.2.3.4, 10.0.0.7", "1.2.3.4"),
        ("10.9.9.9, 1.2.3.4, 10.0.0.7, 10.0.0.8", "1.2.3.4"),
        ("10.0.0.9, 10.0.0.8", "10.0.0.9"),  # all of them are ours
        ("1.2.3.4, 2.3.4.5", "2.3.4.5"),  # a proxy that was not named is taken for the client
        ("2001:db8::7, fd00::2", "2001:db8::7"),
        ("[2001:db8::7]:443, fd00::2", "2001:db8::7"),
        ("1.2.3.4:5678", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4, ::ffff:10.0.0.2", "1.2.3.4"),
    ],
)
def test_of_a_chain_the_right_most_address_that_is_not_ours_is_the_client(
    told: str, expected: str
) -> None:
    assert client(PROXY, (FOR, told)) == expected
    quoted = ",".join(f'for="{_node(one.strip())}"' for one in told.split(","))
    assert client(PROXY, ("Forwarded", quoted)) == expected


def _node(address: str) -> str:
    return f"[{address}]" if address.count(":") > 1 and address[0] != "[" else address


def test_a_chain_in_several_headers_is_one_chain() -> None:
    assert client(PROXY, (FOR, "6.6.6.6"), (FOR, "1.2.3.4"), (FOR, "10.0.0.7")) == "1.2.3.4"


@pytest.mark.parametrize(
    "told",
    [
        "",
        ",",
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.4.5",
        "999.1.1.1",
        "fe80::1%eth0",
        "[::1",
        "x" * 9000,
        "1.2.3.4;",
        "1.2.3.4 5.6.7.8",
        "１.2.3.4",
        "01.2.3.4",
        "1.2.3.4:",
        "[1.2.3.4",
        "'1.2.3.4'",
    ],
)
def test_what_is_no_address_is_not_believed(told: str) -> None:
    scope = scope_of(PROXY)
    scope["headers"].append((FOR.lower().encode(), told.encode()))
    TrustedProxies(TRUSTED).apply(scope)
    assert scope["client"][0] == PROXY


def test_nothing_left_of_what_cannot_be_read_is_believed() -> None:
    assert client(PROXY, (FOR, "6.6.6.6, garbage, 10.0.0.7")) == "10.0.0.7"
    assert client(PROXY, ("Forwarded", "for=6.6.6.6, garbage, for=10.0.0.7")) == "10.0.0.7"


@pytest.mark.parametrize(
    "open_quote", ['for="', 'for=6.6.6.6;x="', '"', "for=6.6.6.6;", ";,=", "a="]
)
def test_what_a_client_leaves_open_takes_in_nothing_that_a_proxy_wrote(open_quote: str) -> None:
    assert client(PROXY, ("Forwarded", f"{open_quote}, for=1.2.3.4")) == "1.2.3.4"
    written = f'{open_quote}, for="[2001:db8::7]";by="[fd00::1]:80"'
    assert client(PROXY, ("Forwarded", written)) == "2001:db8::7"


def test_two_kinds_of_header_that_disagree_are_not_believed() -> None:
    """One of them is the client's own, and which of the two the proxy wrote cannot be known."""
    assert seen(PROXY, (FOR, "1.2.3.4"), ("Forwarded", "for=6.6.6.6;proto=https")) == (
        PROXY,
        "http",
        "inner:8420",
    )


def test_scheme_and_host_that_are_none_are_left_out() -> None:
    for scheme in ("javascript", "HTTPS://", "https http", "ws"):
        assert seen(PROXY, (FOR, "1.2.3.4"), (PROTO, scheme))[1] == "http"
    for host in ("a b", "a/b", "x@y", "a.example:999999", "", "a" * 300):
        assert seen(PROXY, (FOR, "1.2.3.4"), (HOST, host))[2] == "inner:8420"
    assert seen(PROXY, (FOR, "1.2.3.4"), (PROTO, "HTTPS"))[1] == "https"
    assert seen(PROXY, (FOR, "1.2.3.4"), (HOST, "[2001:DB8::1]:443"))[2] == "[2001:db8::1]:443"


def test_of_several_schemes_and_hosts_the_one_beside_the_client_counts() -> None:
    chain = (FOR, "6.6.6.6, 1.2.3.4, 10.0.0.7")
    told = seen(
        PROXY, chain, (PROTO, "http, https, http"), (HOST, "x.example, a.example, b.example")
    )
    assert told == ("1.2.3.4", "https", "a.example")
    assert seen(PROXY, chain, (PROTO, "ftp, https"))[1] == "http"  # not added to by all of them


def test_scheme_alone_may_be_told() -> None:
    assert seen(PROXY, (PROTO, "https")) == (PROXY, "https", "inner:8420")


def test_a_chain_without_end_is_not_followed() -> None:
    told = ",".join([*["6.6.6.6"], *["10.0.0.2"] * MOST_HOPS])
    assert client(PROXY, (FOR, told)) == "10.0.0.2"
    standard = ",".join(["for=6.6.6.6", *["for=10.0.0.2"] * MOST_HOPS])
    assert client(PROXY, ("Forwarded", standard)) == "10.0.0.2"


def test_a_trusted_proxy_has_as_many_connections_as_it_needs() -> None:
    gate = Gate(ServerSettings(connections_per_address=1, trusted_proxies=TRUSTED))
    for peer, admitted in ((PROXY, [True, True, True]), ("8.8.8.8", [True, False, False])):
        is_proxy = gate.proxies.trusts(peer)
        assert [gate.admit(peer, is_proxy=is_proxy) for _ in range(3)] == admitted


@pytest.fixture
def app(tmp_path: Path) -> Holdfast:
    app = Holdfast(tmp_path / "home")
    furnish(app)
    return app


FROM = {FOR: "1.2.3.4", PROTO: "https", HOST: "holdfast.example"}


async def test_the_audit_names_the_client_and_not_the_proxy(app: Holdfast) -> None:
    async with serving(app, BEHIND) as scene:
        made = await scene.admin.post("/tokens", json={"name": "will"}, headers={FOR: "1.2.3.4"})
        assert made.status_code == 201
        last = (await scene.admin.get("/audit")).json()["entries"][-1]
        assert last["origin"] == "1.2.3.4"


async def test_who_is_no_proxy_of_ours_does_not_choose_what_the_audit_says(app: Holdfast) -> None:
    async with serving(app) as scene:
        await scene.admin.post("/tokens", json={"name": "will"}, headers=FROM)
        last = (await scene.admin.get("/audit")).json()["entries"][-1]
        assert last["origin"] == "127.0.0.1"


async def test_refused_attempts_are_counted_by_the_client(app: Holdfast) -> None:
    async with serving(app, BEHIND) as scene:
        bad = {"Authorization": "Bearer hf_wrong"}

        async def tried(told: str) -> int:
            return (await scene.stranger.get("/me", headers={**bad, FOR: told})).status_code

        assert {await tried("1.2.3.4") for _ in range(10)} == {401}
        assert await tried("1.2.3.4") == 429
        assert await tried("1.2.3.5") == 401
        # What a client puts before its own address makes no other of it.
        assert await tried("9.9.9.9, 1.2.3.4") == 429


async def test_cookies_and_links_are_for_tls_where_the_proxy_has_it(app: Holdfast) -> None:
    async with serving(app, BEHIND) as scene:
        tokens: Tokens = scene.services.tokens
        _, token = await tokens.issue("will", "person", ["admin"])
        for headers, secure in ((FROM, True), ({FOR: "1.2.3.4"}, False)):
            answer = await scene.stranger.post("/login", json={"token": token}, headers=headers)
            assert ("; Secure" in answer.headers["set-cookie"]) is secure
        link = await scene.admin.post("/tokens/link", json={"name": "li"}, headers=FROM)
        assert link.json()["url"].startswith("https://holdfast.example/login?token=")


@pytest.mark.parametrize(
    ("told", "status"),
    [("holdfast.example", 200), ("evil.example", 400), ("holdfast.example:1", 200)],
)
async def test_a_host_that_a_proxy_names_must_be_allowed(
    app: Holdfast, told: str, status: int
) -> None:
    async with serving(app, BEHIND) as scene:
        answer = await scene.stranger.get("/healthz", headers={**FROM, HOST: told})
        assert answer.status_code == status


async def test_the_name_that_the_proxy_itself_calls_the_server_by_need_not_be(
    app: Holdfast,
) -> None:
    async with serving(app, BEHIND) as scene:
        inner = {**FROM, "Host": "holdfast-7d9f:8420"}
        assert (await scene.stranger.get("/healthz", headers=inner)).status_code == 200
        del inner[HOST]
        assert (await scene.stranger.get("/healthz", headers=inner)).status_code == 400


async def test_a_form_from_the_address_that_the_proxy_has_is_from_our_own_origin(
    app: Holdfast,
) -> None:
    async with serving(app, BEHIND) as scene:
        _, token = await scene.services.tokens.issue("will", "person", ["admin"])

        async def told(origin: str) -> httpx.Response:
            headers = {**FROM, "Origin": origin}
            return await scene.stranger.post("/login", json={"token": token}, headers=headers)

        assert (await told("https://holdfast.example")).status_code == 200
        assert (await told("http://holdfast.example")).status_code == 403
        assert (await told("https://evil.example")).status_code == 403
