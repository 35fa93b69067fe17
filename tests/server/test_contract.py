"""The OpenAPI is kept: Schemathesis makes requests of it, and every kind of caller sends them.

Requests fit the description or break it on purpose, about things that are there and things
that are not. Whatever comes: no 5xx, and status, content type and body as declared. What each
caller is served follows the table of `test_authority`; here nobody gets more by being odd.

The server runs in a thread of its own, because Schemathesis' requests wait for their answers.
Endless streams are left out (`test_streams`, `test_feed`, `test_run_events`): an answer that
never ends cannot be compared with anything.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hostile_scene import CROWD, Ground, standing_ground
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from test_authority import DOCUMENT, KNOWN, OF_SOMETHING, TABLE

from holdfast import Holdfast
from holdfast.server.auth.authentication import ANSWER, LOGIN, Limit

ENDLESS = {
    "stream_run_events",
    "stream_run_timeline",
    "stream_conversation_events",
    "stream_events",
    "follow_newest_session",
}
REFUSALS = [400, 401, 403, 404, 409, 410, 413, 422]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
SCHEMA = schemathesis.openapi.from_dict(
    DOCUMENT,
    config=schemathesis.Config.from_dict(
        {
            "seed": 7,
            # Who asks is told by each session itself.
            "generation": {"with-security-parameters": False},
            # 413 and 410 are refusals too; Schemathesis does not think of them by itself.
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
        }
    ),
).exclude(operation_id=sorted(ENDLESS))
OPERATIONS = {
    one.ok().definition.raw["operationId"]: one.ok() for one in SCHEMA.get_all_operations()
}
UNLIMITED = {LOGIN: Limit(10**9, 60.0), ANSWER: Limit(10**9, 60.0)}
"""Every caller here is refused all the time, and all of them from one address."""

BY_SUBJECT: Mapping[str, frozenset[str]] = {
    "answer_interaction": OF_SOMETHING,
    "respond_to_interaction": OF_SOMETHING,
    "keep_draft": OF_SOMETHING,
    "answer_interactions": KNOWN,
    "get_interaction": KNOWN,
}
"""Questions are several here: who may not answer the table's one may answer another. Of several
at once each has its own outcome, so whoever is known is told."""

BOUNDS = settings(
    max_examples=3,
    stateful_step_count=10,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@dataclass
class Site:
    """A server in its thread, and a session of requests for each kind of caller."""

    ground: Ground
    sessions: dict[str, requests.Session] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.ground.scene.url

    def send(self, case: schemathesis.Case, name: str) -> schemathesis.Response:
        """The answer to one caller, as declared."""
        answer = case.call(base_url=self.url, session=self.sessions[name], timeout=30)
        checked(case, answer)
        return answer


def checked(case: schemathesis.Case, answer: schemathesis.Response) -> None:
    """As declared; but Schemathesis takes a stream's schema, which is text, for its events'."""
    stream = answer.headers.get("content-type", [""])[0].startswith("text/event-stream")
    excluded = [response_schema_conformance] if stream else []
    case.validate_response(answer, checks=CHECKS, excluded_checks=excluded)


async def known_ids(ground: Ground) -> dict[str, list[str]]:
    """What there is, by the names that paths have for it."""
    mended, patch_id = await ground.proposed()
    instances = [await ground.waiting(), await ground.failed(), mended]
    question, consent, locked = (
        (await ground.question(instances[0]))["requestId"],
        (await ground.approval())["requestId"],
        (await ground.locked())["requestId"],
    )
    session_id, grant_id = await ground.remembered()
    conversation_id = await ground.achieved()
    digest = ground.scene.app.engine.definitions.current("apply_computer").digest
    return {
        "plan_id": ["apply_computer", "grant_access"],
        "digest": [digest],
        "plan_instance_id": instances,
        "instance_id": instances,
        "case_id": ["case_1", "case_2"],
        "patch_id": [patch_id],
        "lesson_id": [await ground.lesson()],
        "run_id": [*instances, session_id, conversation_id],
        "request_id": [question, consent, locked],
        "field": ["code"],
        "session_id": [session_id, await ground.chat("break")],
        "grant_id": [grant_id],
        "conversation_id": [conversation_id],
        "agent_id": ["clerk"],
        "name": ["pay"],
        "token_id": [await ground.spare_token()],
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    ready: Future[Site] = Future()
    ended = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(ready, ended)), daemon=True)
    thread.start()
    site = ready.result(60)
    try:
        yield site
    finally:
        for session in site.sessions.values():
            session.close()
        ended.set()
        thread.join(30)
        assert not thread.is_alive()


async def _serve(ready: Future[Site], ended: threading.Event) -> None:
    app = Holdfast.in_memory()
    async with app, standing_ground(app) as ground:
        ground.scene.services.attempts._limits = UNLIMITED
        site = Site(ground, ids=await known_ids(ground))
        for name in CROWD:
            site.sessions[name] = requests.Session()
            site.sessions[name].trust_env = False
            if name in ground.tokens:
                site.sessions[name].headers["Authorization"] = f"Bearer {ground.tokens[name]}"
        ready.set_result(site)
        await asyncio.to_thread(ended.wait)


def path_names(operation: schemathesis.APIOperation[Any, Any, Any, Any]) -> list[str]:
    parameters = operation.definition.raw.get("parameters", ())
    return [one["name"] for one in parameters if one["in"] == "path"]


@st.composite
def cases(
    draw: st.DrawFn, site: Site, operation_id: str, mode: GenerationMode
) -> tuple[schemathesis.Case, list[str]]:
    """A request, half of them about what there is, and three callers: the admin is always one."""
    operation = OPERATIONS[operation_id]
    there = draw(st.booleans())
    known = {one: draw(st.sampled_from(site.ids[one])) for one in path_names(operation) if there}
    case = draw(operation.as_strategy(mode, path_parameters=known or None))
    first = draw(st.integers(0, len(CROWD) - 1))
    others = [CROWD[(first + step) % len(CROWD)] for step in (0, 4)]
    return case, sorted({*others, "admin"}, key="admin".__eq__)


def kinds_of_requests() -> Iterator[tuple[str, GenerationMode]]:
    """Where nothing is sent, nothing of it can be wrong."""
    for operation_id, operation in sorted(OPERATIONS.items()):
        yield operation_id, GenerationMode.POSITIVE
        if operation.definition.raw.keys() & {"parameters", "requestBody"}:
            yield operation_id, GenerationMode.NEGATIVE


@pytest.mark.parametrize(("operation_id", "mode"), list(kinds_of_requests()))
def test_whatever_is_sent_is_answered_as_declared_and_nobody_gets_more(
    operation_id: str, mode: GenerationMode, site: Site
) -> None:
    may = TABLE[operation_id][0] | BY_SUBJECT.get(operation_id, frozenset())

    @BOUNDS
    @given(made=cases(site, operation_id, mode))
    def ask(made: tuple[schemathesis.Case, list[str]]) -> None:
        case, callers = made
        for name in callers:
            answer = site.send(case, name)
            assert name in may or answer.status_code >= 400, (name, case.as_curl_command())

    ask()


@pytest.mark.parametrize("name", CROWD)
def test_one_request_leads_to_the_next_and_all_are_answered_as_declared(
    name: str, site: Site
) -> None:
    """What an answer names is asked for next, as the links of the description say."""

    class Walk(SCHEMA.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"base_url": site.url, "session": site.sessions[name], "timeout": 30}

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, *more: Any, **named: Any
        ) -> None:
            checked(case, response)

    run_state_machine_as_test(Walk, settings=BOUNDS)  # type: ignore[no-untyped-call]
