"""Tokens from the command line: shown once, kept as a hash, revocable."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from cli_scene import Command
from serving import BY_HAND, served


def test_a_token_is_shown_once_and_never_again(holdfast: Command, place: Path) -> None:
    made = holdfast("token", "create", "will", "--role", "operator", "--expires", "30d", "--json")
    assert made.code == 0
    token = made.json["token"]
    assert token.startswith("hf_")
    listed = holdfast("token", "list", "--json")
    assert token not in listed.out
    [one] = listed.json
    assert (one["id"], one["name"], one["kind"]) == (made.json["id"], "will", "person")
    assert (one["roles"], one["last_used_at"]) == (["operator"], None)
    assert one["expires_at"] == made.json["expires_at"]
    for file in (place / ".holdfast").iterdir():
        assert token.encode() not in file.read_bytes(), file.name


def test_a_person_is_told_to_keep_it(holdfast: Command) -> None:
    made = holdfast("token", "create", "import", "--service", "--grant", "hr_*=operator")
    first, secret, last = made.out.splitlines()
    assert first.endswith("for the service import (hr_*: operator)")
    assert secret.strip().startswith("hf_")
    assert "not shown again" in last
    shown = holdfast("token", "list").out
    assert "hr_*: operator" in shown
    assert "service" in shown


def test_a_token_lets_in_until_it_is_revoked(
    place: Path, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = holdfast_process("token", "create", "will", "--role", "admin", "--json").json
    monkeypatch.setenv("HOLDFAST_TOKEN", admin["token"])
    with served(place) as server:
        at = ("--url", server.url, "--json")
        viewer = holdfast_process("token", "create", "eva", "--role", "viewer", *at).json
        headers = {"Authorization": f"Bearer {viewer['token']}"}
        assert httpx.get(f"{server.url}/me", headers=headers).json()["name"] == "eva"
        names = {one["name"]: one for one in holdfast_process("token", "list", *at).json}
        assert names.keys() == {"will", "eva"}
        assert names["eva"]["last_used_at"] is not None
        assert names["eva"].keys() == holdfast_process("token", "list", "--json").json[0].keys()
        assert holdfast_process("token", "revoke", viewer["id"], *at).json["revoked"]
        assert httpx.get(f"{server.url}/me", headers=headers).status_code == 401
        link = holdfast_process("token", "link", *at).json["link"]
        assert httpx.get(link, headers=BY_HAND).status_code == 303


def test_a_link_made_on_the_home_signs_in_once_the_server_is_there(
    place: Path, holdfast: Command
) -> None:
    made = holdfast("token", "link", "--name", "will", "--role", "approver", "--json").json
    with served(place) as server:
        signed_in = httpx.get(server.url + made["link"], headers=BY_HAND)
        me = httpx.get(f"{server.url}/me", cookies=dict(signed_in.cookies)).json()
    assert (me["name"], me["roles"]) == ("will", ["approver"])


def test_one_that_is_not_there_cannot_be_revoked(holdfast: Command) -> None:
    ending = holdfast("token", "revoke", "tok_none", "--json")
    assert (ending.code, ending.json["error"]["kind"]) == (1, "NotFound")


def test_making_and_revoking_are_deeds_of_the_user(holdfast: Command) -> None:
    made = holdfast("token", "create", "will", "--role", "viewer", "--json").json
    holdfast("token", "revoke", made["id"])
    deeds = holdfast("audit", "list", "--json").json
    assert [(one["origin"], one["subject"]) for one in deeds] == [("cli", made["id"])] * 2
    assert made["token"] not in json.dumps(deeds)
