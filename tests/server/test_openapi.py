"""The server's description of itself: complete for every route, and in step with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from server_scene import Scene

from holdfast import Holdfast
from holdfast.server.openapi import TAGS
from holdfast.server.problems import MEDIA_TYPE

OPEN_TO_ALL = {"/healthz", "/readyz", "/login"}
METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return Holdfast.in_memory().asgi().openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield method, path, item[method]


def test_it_says_what_it_is(document: dict[str, Any]) -> None:
    info = document["info"]
    assert info["title"] == "Holdfast"
    assert "problem+json" in info["description"]
    assert {one["name"] for one in document["tags"]} == set(TAGS)


def test_operation_ids_are_the_functions_names_and_unique(document: dict[str, Any]) -> None:
    ids = [one["operationId"] for _, _, one in operations(document)]
    assert len(ids) == len(set(ids))
    assert all(one.isidentifier() and one == one.lower() for one in ids)
    stable = {"start_instance", "continue_plan", "resume_plan", "list_runs", "register_plan"}
    assert stable <= set(ids)


def test_no_two_schemas_share_a_name(document: dict[str, Any]) -> None:
    spelled_out = [name for name in document["components"]["schemas"] if "__" in name]
    assert spelled_out == []


def test_every_operation_is_described_and_tagged(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        assert operation.get("description"), (method, path)
        assert operation["tags"], (method, path)
        assert set(operation["tags"]) <= set(TAGS), (method, path)


def test_who_must_be_known_is_declared(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    kinds = {(one["type"], one.get("scheme") or one.get("in")) for one in schemes.values()}
    assert kinds == {("http", "bearer"), ("apiKey", "cookie")}
    for method, path, operation in operations(document):
        if path in OPEN_TO_ALL:
            continue
        offered = {name for one in operation.get("security", ()) for name in one}
        assert offered == set(schemes), (method, path)


def test_every_operation_declares_its_problems(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        declared = set(operation["responses"])
        needed = {"422", "503"}
        if operation.get("security"):
            needed |= {"401", "403", "429"}
        if "{" in path:
            needed |= {"404"}
        if operation.get("security") and method != "get":
            needed |= {"404", "409", "410", "413"}
        assert needed <= declared, (method, path, needed - declared)
        for status in declared:
            if status[0] in "45":
                content = operation["responses"][status]["content"]
                assert set(content) == {MEDIA_TYPE}, (method, path, status)
                assert content[MEDIA_TYPE]["example"]["status"] == int(status)


def test_every_operation_says_what_it_answers(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        good = [one for status, one in operation["responses"].items() if status[0] in "23"]
        assert good, (method, path)
        assert any(one.get("content") or one.get("description") for one in good), (method, path)


def test_whatever_changes_something_takes_a_key(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        names = [one["name"] for one in operation.get("parameters", ())]
        changes = method != "get" and bool(operation.get("security"))
        assert names.count("Idempotency-Key") == int(changes), (method, path)


def test_what_is_sent_has_examples_and_refuses_unknown_keys(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for method, path, operation in operations(document):
        for name in sent_schemas(operation):
            schema = schemas[name]
            assert schema.get("additionalProperties") is False, (method, path, name)
            shown = schema.get("examples") or [
                one for one in schema["properties"].values() if "examples" in one
            ]
            assert shown, (method, path, name)


def sent_schemas(operation: dict[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    for one in (schema, *schema.get("anyOf", ())):
        if "$ref" in one:
            yield one["$ref"].rpartition("/")[2]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            for one in part.values():
                yield from references(one)
        elif isinstance(part, list):
            for one in part:
                yield from references(one)

    for one in references(document):
        assert one.removeprefix("#/components/schemas/") in schemas, one


async def test_nobody_unknown_gets_anywhere(scene: Scene, document: dict[str, Any]) -> None:
    """Every operation but those open to all: 401, whatever is sent."""
    for method, path, _ in operations(document):
        if path in OPEN_TO_ALL:
            continue
        filled = path.replace("{", "").replace("}", "")
        for sent in ({}, {"content": b"{", "headers": {"content-type": "application/json"}}):
            answer = await scene.stranger.request(method.upper(), filled, **sent)  # type: ignore[arg-type]
            assert answer.status_code == 401, (method, path, answer.text)
            assert answer.headers["content-type"] == MEDIA_TYPE


async def test_the_description_is_served(scene: Scene) -> None:
    answer = await scene.stranger.get("/openapi.json")
    assert answer.status_code == 200
    assert "/instances/{instance_id}" in answer.json()["paths"]
