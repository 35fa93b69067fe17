"""Signing in and out in a browser, the tokens of others, and the audit of it all."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings

BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def new_link(scene: Scene, **wanted: Any) -> str:
    _, secret = await scene.services.tokens.new_link(**wanted)
    return secret


def cookie_of(answer: httpx.Response) -> tuple[str, set[str]]:
    value, *attributes = answer.headers["set-cookie"].split("; ")
    return value.removeprefix("holdfast="), {one.lower() for one in attributes}


async def test_a_link_opened_by_hand_signs_in_at_once(scene: Scene) -> None:
    link = await new_link(scene)
    answer = await scene.stranger.get("/login", params={"token": link}, headers=BY_HAND)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login"
    secret, attributes = cookie_of(answer)
    assert attributes == {"httponly", "max-age=43200", "path=/", "samesite=lax"}
    assert link not in answer.text
    me = await scene.stranger.get("/me")
    assert me.json()["id"] == "owner"
    assert secret.startswith("hfs_")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "no-cors"},
        {**BY_HAND, "Sec-Purpose": "prefetch;prerender"},
        {**BY_HAND, "Purpose": "prefetch"},
    ],
)
async def test_whatever_else_fetches_a_link_uses_nothing_up(
    scene: Scene, headers: dict[str, str]
) -> None:
    link = await new_link(scene)
    answer = await scene.stranger.get("/login", params={"token": link}, headers=headers)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert f'name="token" value="{link}"' in answer.text
    assert "<script" not in answer.text
    assert "style=" not in answer.text
    await scene.stranger.head("/login", params={"token": link}, headers=BY_HAND)
    redeemed = await scene.stranger.post("/login", data={"token": link})
    assert redeemed.status_code == 303


async def test_the_page_shows_what_it_was_given_as_text(scene: Scene) -> None:
    evil = '"><script>alert(1)</script>'
    answer = await scene.stranger.get("/login", params={"token": evil})
    assert "<script>" not in answer.text


async def test_a_used_link_says_what_to_do(scene: Scene) -> None:
    link = await new_link(scene)
    await scene.stranger.post("/login", data={"token": link})
    answer = await scene.stranger.get("/login", params={"token": link}, headers=BY_HAND)
    assert answer.status_code == 401
    assert "holdfast serve --link" in answer.json()["detail"]
    assert link not in answer.text


async def test_a_program_signs_in_with_a_token_and_learns_who_it_is(scene: Scene) -> None:
    _, token = await scene.services.tokens.issue("ann", roles=["operator"])
    answer = await scene.stranger.post("/login", json={"token": token})
    assert answer.status_code == 200
    assert answer.json()["permissions"] == ["answer", "operate", "read"]
    assert (await scene.stranger.get("/me")).json()["id"] == "ann"


async def test_another_s_page_cannot_sign_somebody_in(scene: Scene) -> None:
    link = await new_link(scene)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await scene.stranger.post("/login", data={"token": link}, headers=headers)
        assert answer.status_code == 403
    own = await scene.stranger.post("/login", data={"token": link}, headers={"Origin": scene.url})
    assert own.status_code == 303


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{}", {"Content-Type": "application/json"}),
        (b"[]", {"Content-Type": "application/json"}),
        (b'{"token": 7}', {"Content-Type": "application/json"}),
        (b'{"token": "x", "more": 1}', {"Content-Type": "application/json"}),
        (b"", {"Content-Type": "application/json"}),
        (b"", FORM),
        (b"other=1", FORM),
        (b"token=x", {}),
    ],
)
async def test_a_sign_in_that_cannot_be_read_says_so(
    scene: Scene, body: bytes, headers: dict[str, str]
) -> None:
    answer = await scene.stranger.post("/login", content=body, headers=headers)
    assert answer.status_code == 422
    assert "fields" in answer.json()


async def test_failed_sign_ins_are_slowed_down(scene: Scene) -> None:
    answers = [await scene.stranger.post("/login", json={"token": "hf_no"}) for _ in range(11)]
    assert [one.status_code for one in answers] == [401] * 10 + [429]
    assert "retry-after" in answers[-1].headers
    link = await new_link(scene)
    assert (await scene.stranger.post("/login", json={"token": link})).status_code == 200


async def test_signing_out_ends_the_session_and_drops_the_cookie(scene: Scene) -> None:
    await scene.stranger.post("/login", json={"token": await new_link(scene)})
    secret = scene.stranger.cookies["holdfast"]
    answer = await scene.stranger.post("/logout", headers={"Origin": scene.url})
    assert answer.status_code == 204
    assert "holdfast" not in scene.stranger.cookies
    again = await scene.stranger.get("/me", headers={"Cookie": f"holdfast={secret}"})
    assert again.status_code == 401
    assert (await scene.admin.post("/logout")).status_code == 204


async def test_over_tls_the_cookie_is_for_tls(app: Holdfast) -> None:
    settings = ServerSettings(secure_cookies=True, session_hours=1)
    async with serving(app, settings) as scene:
        answer = await scene.stranger.post("/login", json={"token": await new_link(scene)})
        _, attributes = cookie_of(answer)
        assert attributes >= {"secure", "max-age=3600", "httponly", "samesite=lax"}


async def test_only_an_admin_handles_tokens_and_reads_the_audit(scene: Scene) -> None:
    requests = [
        ("GET", "/tokens", None),
        ("POST", "/tokens", {"name": "x"}),
        ("POST", "/tokens/link", {"name": "x"}),
        ("DELETE", "/tokens/tok_0", None),
        ("GET", "/audit", None),
        ("GET", "/audit/verify", None),
    ]
    for role in ("viewer", "operator", "approver", "author", "finance"):
        client = await scene.as_a(role)
        for method, path, body in requests:
            answer = await client.request(method, path, json=body)
            assert answer.status_code == 403, (role, path)
    for method, path, body in requests:
        assert (await scene.stranger.request(method, path, json=body)).status_code == 401


async def test_a_token_is_shown_once_works_is_listed_and_is_revoked(scene: Scene) -> None:
    wanted = {
        "name": "nightly",
        "kind": "service",
        "roles": ["viewer"],
        "grants": {"a*": ["operator"]},
    }
    made = (await scene.admin.post("/tokens", json=wanted)).json()
    client = await scene.with_token(made["token"])
    assert (await client.get("/me")).json()["grants"] == {"a*": ["operator"]}
    listing = await scene.admin.get("/tokens")
    assert made["token"] not in listing.text
    row = next(one for one in listing.json()["tokens"] if one["id"] == made["id"])
    assert row["last_used_at"] is not None
    assert row["created_by"] == "some admin"
    assert row["expires_at"] == pytest.approx(row["created_at"] + 90 * 86_400)
    assert (await scene.admin.delete(f"/tokens/{made['id']}")).status_code == 204
    assert (await client.get("/me")).status_code == 401
    assert (await scene.admin.delete(f"/tokens/{made['id']}")).status_code == 404


async def test_a_token_asked_for_twice_under_one_key_is_one_token(scene: Scene) -> None:
    headers = {"Idempotency-Key": "k1"}
    before = len(await scene.services.tokens.list())
    answers = [
        await scene.admin.post("/tokens", json={"name": "x"}, headers=headers) for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert len(await scene.services.tokens.list()) == before + 1


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"name": ""},
        {"name": "a:b"},
        {"name": "local"},
        {"name": "x", "kind": "robot"},
        {"name": "x", "roles": [""]},
        {"name": "x", "expires_in_days": 0},
        {"name": "x", "admin": True},
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(scene: Scene, wanted: Any) -> None:
    answer = await scene.admin.post("/tokens", json=wanted)
    assert answer.status_code == 422
    assert answer.json()["fields"]


async def test_an_invitation_signs_another_person_in(scene: Scene) -> None:
    wanted = {"name": "ann", "roles": ["approver"]}
    made = (await scene.admin.post("/tokens/link", json=wanted)).json()
    assert made["url"].startswith(f"{scene.url}/login?token=link_")
    answer = await scene.stranger.get(made["url"], headers=BY_HAND)
    assert answer.status_code == 303
    assert (await scene.stranger.get("/me")).json()["roles"] == ["approver"]


async def test_a_service_cannot_make_itself_a_person(scene: Scene) -> None:
    bot = await scene.somebody(["admin"], kind="service", name="bot")
    for path, wanted in (("/tokens", {"name": "x"}), ("/tokens/link", {"name": "x"})):
        answer = await bot.post(path, json=wanted)
        assert answer.status_code == 403
    made = await bot.post("/tokens", json={"name": "x", "kind": "service"})
    assert made.status_code == 201


async def test_the_audit_is_paged_and_has_who_and_where_from(scene: Scene) -> None:
    await scene.admin.post("/tokens", json={"name": "x"})
    first = (await scene.admin.get("/audit", params={"limit": 1})).json()
    assert [one["action"] for one in first["entries"]] == ["issued_token"]
    rest = (await scene.admin.get("/audit", params={"after": first["next"]})).json()
    assert rest["next"] is None
    last = rest["entries"][-1]
    assert (last["who"], last["origin"]) == ("some admin", "127.0.0.1")
    assert last["previous"] == first["entries"][-1]["digest"]
    assert last["detail"]["name"] == "x"


async def test_the_chain_is_verified_to_its_head(scene: Scene) -> None:
    found = (await scene.admin.get("/audit/verify")).json()
    last = (await scene.admin.get("/audit")).json()["entries"][-1]
    assert found == {"ok": True, "entries": 1, "head": last["digest"], "problem": None}


async def test_every_answer_of_these_routes_stays_out_of_caches(scene: Scene) -> None:
    for path in ("/login", "/me", "/tokens", "/audit"):
        for client in (scene.admin, scene.stranger):
            assert (await client.get(path)).headers["cache-control"] == "no-store"
