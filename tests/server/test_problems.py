"""Errors over HTTP: one table, problem+json, the seeds' members, and nothing of our insides."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from server_scene import Scene, start

from holdfast import errors
from holdfast.server.problems import MEDIA_TYPE, TABLE, problem, problem_bytes, status_of


def leaves(kind: type[Exception]) -> set[type[Exception]]:
    below = {one for child in kind.__subclasses__() for one in leaves(child)}
    return below | {kind}


def test_every_error_of_a_caller_or_author_is_a_4xx_and_of_an_operator_a_503() -> None:
    for kind in leaves(errors.CallerError) | leaves(errors.AuthorError):
        assert 400 <= status_of(kind.__new__(kind))[0] < 500, kind
    for kind in leaves(errors.OperatorError):
        assert status_of(kind.__new__(kind))[0] == 503, kind
    for kind in (errors.InternalError, errors.VersionConflict, RuntimeError):
        assert status_of(kind("?"))[0] == 500, kind


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.Unauthenticated, 401),
        (errors.NotPermitted, 403),
        (errors.NotFound, 404),
        (errors.NotAllowed, 409),
        (errors.AlreadyAnswered, 409),
        (errors.TooLate, 410),
        (errors.InvalidAnswer, 422),
        (errors.InvalidValue, 422),
        (errors.PlanRejected, 422),
        (errors.ConditionError, 422),
        (errors.TooMany, 429),
        (errors.JournalUnavailable, 503),
    ],
)
def test_the_table(kind: type[Exception], status: int) -> None:
    assert status_of(kind.__new__(kind))[0] == status


def test_the_table_has_what_the_errors_module_has() -> None:
    assert all(issubclass(kind, errors.HoldfastError) for kind in TABLE)


def test_half_a_character_does_not_break_the_answer() -> None:
    sent = problem_bytes(problem(422, "half \ud800 of it"))
    assert json.loads(sent)["detail"] == "half \ud800 of it"


def assert_problem(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["success"] is False
    assert body["error"] == body["detail"]
    assert body["title"]
    assert body["type"]
    return body


async def test_a_problem_says_what_where_and_under_which_request(scene: Scene) -> None:
    answer = await scene.admin.get("/instances/inst_999999")
    body = assert_problem(answer, 404)
    assert body["instance"] == "/instances/inst_999999"
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["type"] == "urn:holdfast:not-found"


async def test_whoever_is_unknown_is_asked_who_they_are(scene: Scene) -> None:
    answer = await scene.stranger.get("/instances")
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_path_or_a_method_that_is_not_there(scene: Scene) -> None:
    assert_problem(await scene.admin.get("/nowhere"), 404)
    assert_problem(await scene.admin.delete("/instances"), 405)


async def test_what_does_not_fit_is_told_by_field_and_without_its_value(scene: Scene) -> None:
    sent = {"prompt": 7, "plan_id": "../etc", "canary": "hunter2"}
    answer = await scene.admin.post("/instances", json=sent)
    body = assert_problem(answer, 422)
    assert set(body["fields"]) == {"prompt", "plan_id", "canary"}
    assert all(name in body["message"] for name in body["fields"])
    assert "hunter2" not in answer.text


async def test_an_unknown_query_parameter_is_refused(scene: Scene) -> None:
    answer = await scene.admin.get("/instances", params={"statsu": "pause"})
    assert "statsu" in assert_problem(answer, 422)["fields"]


async def test_a_mistake_of_ours_says_nothing_of_our_insides(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(source: str, sees: object) -> None:
        raise RuntimeError(f"hunter2 in {source}")

    monkeypatch.setattr(scene.services.plans, "check", broken)
    with caplog.at_level(logging.ERROR):
        answer = await scene.admin.post("/plans/check", json={"source": "canary"})
    body = assert_problem(answer, 500)
    assert "hunter2" not in answer.text
    assert "hunter2" not in caplog.text
    assert "canary" not in caplog.text
    assert body["request_id"] in caplog.text
    assert "RuntimeError" in caplog.text


async def test_a_journal_that_is_down_is_a_503_that_claims_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any) -> None:
        raise errors.JournalUnavailable("no space left on /secret/path")

    monkeypatch.setattr(scene.app.journal, "runs", full)
    answer = await scene.admin.get("/runs")
    body = assert_problem(answer, 503)
    assert "/secret/path" not in answer.text
    assert "may or may not" in body["detail"]
    assert int(answer.headers["retry-after"]) >= 1


STRANGE: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/instances/..%2f..%2fetc%2fpasswd", {}),
    ("GET", "/instances/%00", {}),
    ("GET", "/instances/" + "x" * 5000, {}),
    ("GET", "/instances/inst_000001%0d%0aX-Injected:%201", {}),
    ("GET", "/runs/%ff%fe", {}),
    ("GET", "/plans/%E2%80%AEevil", {}),
    ("GET", "/plans/apply_computer/versions/" + "0" * 64, {}),
    ("GET", "/plans/apply_computer/versions/latest", {}),
    ("GET", "/instances?limit=99999999999999999999999999", {}),
    ("GET", "/instances?limit=" + "9" * 6000, {}),
    ("GET", "/instances?limit=0", {}),
    ("GET", "/instances?limit=-1", {}),
    ("GET", "/instances?limit=NaN", {}),
    ("GET", "/instances?status=asleep", {}),
    ("GET", "/instances?before=%00", {}),
    ("GET", "/runs?roots=perhaps", {}),
    ("GET", "/runs?kind=spaceship", {}),
    ("POST", "/instances", {"content": b"{"}),
    ("POST", "/instances", {"content": b'{"values": {"x": NaN}}'}),
    ("POST", "/instances", {"content": b'{"values": {"x": Infinity}}'}),
    ("POST", "/instances", {"content": b'{"values": {"x": 1' + b"0" * 5000 + b"}}"}),
    ("POST", "/instances", {"content": b'{"values": {"x": 123456789012345678901}}'}),
    ("POST", "/instances", {"content": b'{"prompt": "\\ud800"}'}),
    ("POST", "/instances", {"content": b'{"values": {"\\ud800": 1}}'}),
    ("POST", "/instances", {"content": b"\xff\xfe{}"}),
    ("POST", "/instances", {"content": b"[" * 60 + b"]" * 60}),
    ("POST", "/instances", {"content": b"null"}),
    ("POST", "/instances", {"content": b"[]"}),
    ("POST", "/instances", {"content": b'"text"'}),
    ("POST", "/plans", {"content": b'{"source": 1}'}),
    ("POST", "/plans", {"content": b'{"source": ""}'}),
    ("POST", "/plans", {"content": b'{"source": "\\u0000"}'}),
    ("POST", "/plans", {"content": b'{"source": "- - - -"}'}),
    ("POST", "/plans", {"content": b'{"source": "{a: 1, a: 2}"}'}),
    ("POST", "/plans/inst_000001/continue?wait=NaN", {"content": b"{}"}),
    ("POST", "/plans/inst_000001/continue?wait=1e999", {"content": b"{}"}),
    ("POST", "/plans/inst_000001/continue?wait=-1", {"content": b"{}"}),
]


async def test_strange_requests_are_refused_and_break_nothing(scene: Scene) -> None:
    await start(scene)
    for method, path, sent in STRANGE:
        headers = {"content-type": "application/json"} if sent else {}
        answer = await scene.admin.request(method, path, headers=headers, **sent)
        assert 400 <= answer.status_code < 500, (method, path, sent, answer.text)
        assert_problem(answer, answer.status_code)
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1
