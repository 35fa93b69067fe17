"""Attacks by pages: another's site in the browser of somebody who is signed in here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from hostile_scene import Ground, standing_ground

from holdfast import Holdfast

START = {"plan_id": "apply_computer"}


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


@pytest.fixture
async def signed_in(ground: Ground) -> httpx.AsyncClient:
    client = await ground.scene.with_token(None)
    answer = await client.post("/login", json={"token": ground.tokens["admin"]})
    assert answer.status_code == 200
    return client


FOREIGN_PAGES: list[dict[str, str]] = [
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "Same-Origin"},
    {"Referer": "http://127.0.0.1/"},
]


@pytest.mark.parametrize("headers", FOREIGN_PAGES)
async def test_a_cookie_does_nothing_for_another_s_page(
    headers: dict[str, str], ground: Ground, signed_in: httpx.AsyncClient
) -> None:
    question = await ground.approval()
    before = await ground.standing()
    path = f"/interactions/{question['requestId']}/answer"
    for place, body in ((path, {"selectedOptionId": "approve"}), ("/instances", START)):
        answer = await signed_in.post(place, json=body, headers=headers)
        assert answer.status_code == 403, answer.text
        # What a form can send without a preflight.
        plain = {**headers, "Content-Type": "text/plain"}
        answer = await signed_in.post(place, content=json.dumps(body), headers=plain)
        assert answer.status_code == 403, answer.text
    for method, place in (("POST", "/logout"), ("DELETE", "/tokens/tok_1"), ("PUT", "/me")):
        answer = await signed_in.request(method, place, headers=headers)
        assert answer.status_code in (403, 405), (method, place)
    assert await ground.standing() == before
    assert (await signed_in.get("/me")).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_what_is_not_called_json_is_not_read_as_json(
    kind: str, ground: Ground, signed_in: httpx.AsyncClient
) -> None:
    before = await ground.standing()
    headers = {"Origin": ground.scene.url, "Content-Type": kind}
    answer = await signed_in.post("/instances", content=json.dumps(START), headers=headers)
    assert answer.status_code == 422, answer.text
    assert await ground.standing() == before


@pytest.mark.parametrize("headers", [one for one in FOREIGN_PAGES if "Referer" not in one and one])
async def test_another_s_page_signs_nobody_in(headers: dict[str, str], ground: Ground) -> None:
    link = await ground.link()
    before = await ground.standing()
    for sent_as in ({"json": {"token": link}}, {"data": {"token": link}}):
        answer = await ground.scene.stranger.post("/login", headers=headers, **sent_as)  # type: ignore[arg-type]
        assert answer.status_code == 403, answer.text
        assert "set-cookie" not in answer.headers
    assert await ground.standing() == before
