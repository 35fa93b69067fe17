"""The guard: who is asking, by what they carry, and by nothing else they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest
from server_scene import Scene, serving, start

from holdfast import Holdfast
from holdfast.errors import NotFound, NotPermitted
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.credentials import csrf_fits
from holdfast.server.auth.jwt import Oidc
from holdfast.server.auth.principal import Permission, Principal, plan
from holdfast.server.settings import ServerSettings

FORGED = {
    "X-Forwarded-User": "root",
    "X-Remote-User": "root",
    "X-User": "root",
    "X-Role": "admin",
    "X-Roles": "admin",
    "X-Forwarded-For": "127.0.0.1",
    "Remote-User": "root",
}


@pytest.fixture
async def signed_in(scene: Scene) -> AsyncIterator[httpx.AsyncClient]:
    """A browser with a session of an admin."""
    _, link = await scene.services.tokens.new_link("ann")
    _, secret = await scene.services.tokens.redeem(link)
    async with httpx.AsyncClient(
        base_url=scene.url, cookies={"holdfast": secret}, trust_env=False
    ) as client:
        yield client


def caller(*roles: str, **grants: str) -> Caller:
    held = {name: frozenset({role}) for name, role in grants.items()}
    return Caller(Principal("will", "Will Zhang", roles=frozenset(roles), grants=held))


async def test_nobody_is_told_how_to_say_who_they_are(scene: Scene) -> None:
    answer = await scene.stranger.get("/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Bearer" in answer.json()["detail"]


async def test_headers_that_claim_to_be_somebody_mean_nothing(scene: Scene) -> None:
    assert (await scene.stranger.get("/me", headers=FORGED)).status_code == 401
    viewer = await scene.as_a("viewer")
    me = (await viewer.get("/me", headers=FORGED)).json()
    assert me["roles"] == ["viewer"]
    assert (await viewer.get("/tokens", headers=FORGED)).status_code == 403


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Basic cm9vdDpyb290", "hf_abc", "Bearer hf_abc", "Bearer a b"],
)
async def test_an_authorization_that_proves_nothing_is_refused(scene: Scene, header: str) -> None:
    answer = await scene.stranger.get("/me", headers={"Authorization": header})
    assert answer.status_code == 401
    assert "hf_abc" not in answer.text


async def test_a_bad_bearer_is_refused_beside_a_good_cookie(
    signed_in: httpx.AsyncClient,
) -> None:
    answer = await signed_in.get("/me", headers={"Authorization": "Bearer hf_x"})
    assert answer.status_code == 401


async def test_a_revoked_token_is_out_with_the_next_request(scene: Scene) -> None:
    made, token = await scene.services.tokens.issue("ann", roles=["viewer"])
    client = await scene.with_token(token)
    assert (await client.get("/me")).status_code == 200
    await scene.services.tokens.revoke(made.id)
    answer = await client.get("/me")
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


async def test_a_cookie_reads_without_further_proof(signed_in: httpx.AsyncClient) -> None:
    me = (await signed_in.get("/me")).json()
    assert (me["id"], me["roles"]) == ("ann", ["admin"])
    assert csrf_fits(signed_in.cookies["holdfast"], me["csrf_token"])


def wanted(name: str = "bot") -> dict[str, object]:
    return {"name": name, "kind": "service"}


async def test_a_cookie_changes_something_from_our_own_origin_only(
    scene: Scene, signed_in: httpx.AsyncClient
) -> None:
    port = scene.url.rpartition(":")[2]
    refused: list[dict[str, str]] = [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": scene.url + ".evil.example"},
        {"Origin": f"http://127.0.0.1:{int(port) + 1}"},
        {"Origin": f"http://localhost:{port}"},
        {"Origin": scene.url.replace("http:", "https:")},
        {"Sec-Fetch-Site": "cross-site", "Origin": scene.url},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ]
    for headers in refused:
        answer = await signed_in.post("/tokens", json=wanted(), headers=headers)
        assert answer.status_code == 403, headers
        assert "origin" in answer.json()["detail"]
    for headers in ({"Origin": scene.url}, {"Sec-Fetch-Site": "same-origin"}):
        answer = await signed_in.post("/tokens", json=wanted(), headers=headers)
        assert answer.status_code == 201, headers


async def test_a_page_made_for_one_person_does_nothing_in_the_name_of_another(
    scene: Scene, signed_in: httpx.AsyncClient
) -> None:
    def headers(person: str) -> dict[str, str]:
        return {"Origin": scene.url, "Holdfast-Person": quote(person)}

    refused = await signed_in.post("/tokens", json=wanted(), headers=headers("张三"))
    assert refused.status_code == 409
    assert "opened by 张三, and ann is signed in" in refused.json()["detail"]
    assert "bot" not in (await signed_in.get("/tokens")).text
    taken = await signed_in.post("/tokens", json=wanted(), headers=headers("ann"))
    assert taken.status_code == 201


async def test_a_bearer_needs_no_origin(scene: Scene) -> None:
    answer = await scene.admin.post(
        "/tokens", json=wanted(), headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 201
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_foreign_page_gets_no_leave_by_preflight(scene: Scene) -> None:
    answer = await scene.stranger.options(
        "/tokens",
        headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    )
    assert answer.status_code >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_behind_tls_our_origin_is_https(app: Holdfast) -> None:
    async with serving(app, ServerSettings(secure_cookies=True)) as scene:
        _, link = await scene.services.tokens.new_link("ann")
        _, secret = await scene.services.tokens.redeem(link)
        headers = {"Cookie": f"holdfast={secret}", "Origin": scene.url.replace("http:", "https:")}
        answer = await scene.stranger.post("/logout", headers=headers)
        assert answer.status_code == 204


async def test_many_failed_tokens_are_told_to_wait_and_good_ones_pass(scene: Scene) -> None:
    bad = {"Authorization": "Bearer hf_wrong"}
    for _ in range(10):
        assert (await scene.stranger.get("/me", headers=bad)).status_code == 401
    answer = await scene.stranger.get("/me", headers=bad)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert (await scene.admin.get("/me")).status_code == 200
    assert (await scene.stranger.get("/me")).status_code == 401


async def test_an_issuer_that_is_away_is_503_and_not_401(app: Holdfast) -> None:
    settings = ServerSettings(oidc=Oidc("http://127.0.0.1:9", "holdfast"))
    token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.e30.AAAA"
    async with serving(app, settings) as scene:
        answer = await scene.stranger.get("/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert (await scene.admin.get("/me")).status_code == 200


async def test_without_an_issuer_a_jwt_is_no_token_of_ours(scene: Scene) -> None:
    answer = await scene.stranger.get("/me", headers={"Authorization": "Bearer a.b.c"})
    assert answer.status_code == 401


async def test_a_run_that_may_not_be_seen_does_not_exist(scene: Scene) -> None:
    run_id = await start(scene)
    other = caller(grant_access="operator")
    with pytest.raises(NotFound, match="there is no run"):
        await other.require(scene.services, Permission.READ, run_id)
    with pytest.raises(NotFound):
        await other.require(scene.services, Permission.OPERATE, run_id)
    with pytest.raises(NotFound):
        await caller("admin").require(scene.services, Permission.READ, "inst_999999")


async def test_what_may_be_seen_is_not_permitted_for_everything(scene: Scene) -> None:
    run_id = await start(scene)
    for one in (caller("viewer"), caller(apply_computer="viewer")):
        await one.require(scene.services, Permission.READ, run_id)
        with pytest.raises(NotPermitted, match="operate for apply_computer"):
            await one.require(scene.services, Permission.OPERATE, run_id)
    await caller(apply_computer="operator").require(scene.services, Permission.OPERATE, run_id)


async def test_a_refusal_names_the_role_to_ask_for(scene: Scene) -> None:
    viewer = await scene.as_a("viewer")
    refused = await viewer.post("/instances", json={"plan_id": "apply_computer"})
    assert refused.status_code == 403
    assert refused.json()["detail"].endswith("ask an admin for the role operator")
    refused = await viewer.get("/tokens")
    assert refused.json()["detail"].endswith("ask an admin for the role admin")
    expert = await scene.as_a("interviewer")
    refused = await expert.get("/interactions", headers={"Accept-Language": "zh"})
    assert refused.status_code == 403
    assert refused.json()["detail"] == "您的角色无权查看：请向管理员申请角色“查看者”"


async def test_a_name_is_judged_without_a_run(scene: Scene) -> None:
    one = caller(apply_computer="operator")
    await one.require(scene.services, Permission.OPERATE, subject=plan("apply_computer"))
    with pytest.raises(NotPermitted):
        await one.require(scene.services, Permission.OPERATE, subject=plan("grant_access"))


async def test_lists_are_for_all_who_read_anything_and_the_rest_is_for_everywhere(
    scene: Scene,
) -> None:
    one = caller(apply_computer="admin")
    await one.require(scene.services, Permission.READ)
    with pytest.raises(NotPermitted):
        await one.require(scene.services, Permission.ADMINISTER)
    with pytest.raises(NotPermitted):
        await caller("finance").require(scene.services, Permission.READ)
