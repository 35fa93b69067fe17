"""Who may do what: one table for every operation there is, and every kind of caller is tried.

Whoever may is served as the OpenAPI declares it. Whoever may not gets 401, 403 or 404, and
nothing at all is different afterwards: no commit, no deed, no call of a tool.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import schemathesis
from chat_scene import RESPONSE, STREAM
from hostile_scene import CROWD, PATCH, PRINCIPALS, Ground, standing_ground

from holdfast import Holdfast
from holdfast.server.problems import MEDIA_TYPE

EVERYBODY = frozenset(PRINCIPALS)
KNOWN = EVERYBODY - {"nobody"}
READERS = KNOWN - {"granted", "elsewhere"}
OF_THE_PLAN = READERS | {"granted"}
OPERATORS = frozenset({"operator", "service", "admin"})
OPERATORS_OF_THE_PLAN = OPERATORS | {"granted"}
OF_SOMETHING = OPERATORS | {"approver", "granted", "elsewhere"}
ANSWERERS = OPERATORS | {"approver"}
APPROVERS = frozenset({"approver", "admin"})
AUTHORS = frozenset({"author", "admin"})
ADMINS = frozenset({"admin"})

APPROVE = {"selectedOptionId": "approve"}
MODEL = {"computer_model": "MacBook Pro"}
FRESH_PLAN = """\
plan_id: fresh
name: Fresh
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


@dataclass(frozen=True)
class Ask:
    """A request that is good in everything but perhaps who sends it."""

    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Recipe = Callable[[Ground], Awaitable[Ask]]


def at(path: str, body: Any = None) -> Recipe:
    async def recipe(ground: Ground) -> Ask:
        return Ask(path, body)

    return recipe


def about(make: Callable[[Ground], Awaitable[str]], path: str, body: Any = None) -> Recipe:
    """A request for a subject that is made for it: `{}` in the path is its id."""

    async def recipe(ground: Ground) -> Ask:
        return Ask(path.format(await make(ground)), body)

    return recipe


async def version_of_a_plan(ground: Ground) -> Ask:
    digest = ground.scene.app.engine.definitions.current("apply_computer").digest
    return Ask(f"/plans/apply_computer/versions/{digest}")


async def computer_question(ground: Ground) -> str:
    return str((await ground.question(await ground.waiting()))["requestId"])


async def consent(ground: Ground) -> str:
    return str((await ground.approval())["requestId"])


async def secret_question(ground: Ground) -> str:
    return str((await ground.locked())["requestId"])


async def several_answers(ground: Ground) -> Ask:
    return Ask("/interactions/answers", {"requestIds": [await consent(ground)], **APPROVE})


async def seeds_answer(ground: Ground) -> Ask:
    question = await ground.approval()
    named = {"sessionId": question["runId"], "requestId": question["requestId"]}
    return Ask(RESPONSE, {**named, **APPROVE})


async def finished_runs(ground: Ground) -> Ask:
    return Ask("/housekeeping/removals", {"roots": [await ground.achieved()]})


async def seeds_resume(ground: Ground) -> Ask:
    return Ask("/plans/grant_access/resume", {"plan_instance_id": await ground.failed()})


async def patch_in_a_picture(ground: Ground) -> Ask:
    instance_id, patch_id = await ground.proposed()
    return Ask(f"/instances/{instance_id}/patches/{patch_id}/diff.svg")


async def remembered_approval(ground: Ground) -> Ask:
    session_id, grant_id = await ground.remembered()
    return Ask(f"/chats/{session_id}/approvals/{grant_id}")


async def with_a_link(ground: Ground) -> Ask:
    return Ask("/login", {"token": await ground.link()})


WAITING, FAILED, OVER, CHAT = Ground.waiting, Ground.failed, Ground.over, Ground.chat
ONE_TASK = {"task_id": "002", "context": {"order": "PC-0"}}

TABLE: Mapping[str, tuple[frozenset[str], Recipe]] = {
    "list_plans": (KNOWN, at("/plans")),
    "register_plan": (AUTHORS, at("/plans", {"source": FRESH_PLAN})),
    "check_plan": (KNOWN, at("/plans/check", {"source": FRESH_PLAN})),
    "draft_plan": (OPERATORS, at("/plans/draft", {"prompt": "A badge for 张三"})),
    "get_plan": (OF_THE_PLAN, at("/plans/apply_computer")),
    "list_plan_versions": (OF_THE_PLAN, at("/plans/apply_computer/versions")),
    "get_plan_version": (OF_THE_PLAN, version_of_a_plan),
    "draw_plan": (OF_THE_PLAN, at("/plans/apply_computer/graph.svg")),
    "continue_plan": (ANSWERERS | {"granted"}, about(WAITING, "/plans/{}/continue", MODEL)),
    "resume_plan": (OPERATORS_OF_THE_PLAN, seeds_resume),
    "start_instance": (OPERATORS_OF_THE_PLAN, at("/instances", {"plan_id": "apply_computer"})),
    "list_instances": (KNOWN, at("/instances")),
    "get_instance": (OF_THE_PLAN, about(WAITING, "/instances/{}")),
    "draw_instance": (OF_THE_PLAN, about(WAITING, "/instances/{}/graph.svg")),
    "outline_instance": (OF_THE_PLAN, about(WAITING, "/instances/{}/graph.txt")),
    "continue_instance": (
        ANSWERERS | {"granted"},
        about(WAITING, "/instances/{}/continue", {"provided_params": MODEL}),
    ),
    "resume_instance": (OPERATORS_OF_THE_PLAN, about(FAILED, "/instances/{}/resume")),
    "skip_listener": (
        OPERATORS_OF_THE_PLAN,
        about(FAILED, "/instances/{}/skip", {"listener_id": "L001", "reason": "no"}),
    ),
    "mark_task_done": (
        OPERATORS_OF_THE_PLAN,
        about(WAITING, "/instances/{}/mark-done", ONE_TASK),
    ),
    "edit_task_context": (
        OPERATORS_OF_THE_PLAN,
        about(FAILED, "/instances/{}/context", {"task_id": "001", "context": {"a": 1}}),
    ),
    "rerun_from_listener": (
        OPERATORS_OF_THE_PLAN,
        about(FAILED, "/instances/{}/rerun", {"listener_id": "L001"}),
    ),
    "cancel_instance": (OPERATORS_OF_THE_PLAN, about(WAITING, "/instances/{}/cancel")),
    "fork_instance": (OPERATORS_OF_THE_PLAN, about(OVER, "/instances/{}/fork", {"at": 1})),
    "list_cases": (OF_THE_PLAN, about(FAILED, "/instances/{}/cases")),
    "get_case": (OF_THE_PLAN, about(FAILED, "/instances/{}/cases/case_1")),
    "list_patches": (OF_THE_PLAN, about(FAILED, "/instances/{}/patches")),
    "propose_patch": (OPERATORS_OF_THE_PLAN, about(FAILED, "/instances/{}/patches", PATCH)),
    "draw_patch": (OF_THE_PLAN, patch_in_a_picture),
    "list_runs": (KNOWN, at("/runs")),
    "cancel_run": (OPERATORS_OF_THE_PLAN, about(WAITING, "/runs/{}/cancel")),
    "resume_run": (OPERATORS_OF_THE_PLAN, about(FAILED, "/runs/{}/resume")),
    "get_run": (OF_THE_PLAN, about(WAITING, "/runs/{}")),
    "get_run_history": (OF_THE_PLAN, about(WAITING, "/runs/{}/history")),
    "get_run_tracebacks": (OPERATORS_OF_THE_PLAN, about(FAILED, "/runs/{}/tracebacks")),
    "get_run_definition": (OF_THE_PLAN, about(WAITING, "/runs/{}/definition")),
    "stream_run_events": (OF_THE_PLAN, about(WAITING, "/runs/{}/events")),
    "get_run_view": (OF_THE_PLAN, about(WAITING, "/runs/{}/view")),
    "get_run_timeline": (OF_THE_PLAN, about(WAITING, "/runs/{}/timeline")),
    "stream_run_timeline": (OF_THE_PLAN, about(WAITING, "/runs/{}/timeline/stream")),
    "stream_events": (KNOWN, at("/events")),
    "list_interactions": (KNOWN, at("/interactions")),
    "get_interaction": (OF_THE_PLAN, about(computer_question, "/interactions/{}")),
    "answer_interaction": (APPROVERS, about(consent, "/interactions/{}/answer", APPROVE)),
    "answer_interactions": (APPROVERS, several_answers),
    "keep_draft": (
        ANSWERERS | {"granted"},
        about(computer_question, "/interactions/{}/draft", {"data": MODEL}),
    ),
    "keep_secret": (
        ANSWERERS | {"elsewhere"},
        about(secret_question, "/interactions/{}/secrets/code", {"value": "4711"}),
    ),
    "open_chat": (OPERATORS, at("/chats", {"agentId": "clerk"})),
    "list_chats": (KNOWN, at("/chats")),
    "get_chat": (READERS, about(CHAT, "/chats/{}")),
    "send_message": (OPERATORS, about(CHAT, "/chats/{}/messages", {"message": "hello"})),
    "cancel_chat": (OPERATORS, about(CHAT, "/chats/{}/cancel")),
    "resume_chat": (OPERATORS, about(lambda g: g.chat("break"), "/chats/{}/resume")),
    "list_approvals": (READERS, about(CHAT, "/chats/{}/approvals")),
    "remember_approval": (APPROVERS, about(CHAT, "/chats/{}/approvals", {"tool": "pay"})),
    "revoke_approval": (ANSWERERS, remembered_approval),
    "start_turn": (OPERATORS, at(STREAM, {"message": "hello", "userId": "admin"})),
    "follow_newest_session": (KNOWN, at(STREAM)),
    "respond_to_interaction": (APPROVERS, seeds_answer),
    "start_conversation": (OPERATORS, at("/conversations", {"input": "sell"})),
    "list_conversations": (KNOWN, at("/conversations")),
    "get_conversation": (READERS, about(Ground.achieved, "/conversations/{}")),
    "get_snapshot": (READERS, about(Ground.achieved, "/conversations/{}/snapshot")),
    "stream_conversation_events": (READERS, about(Ground.achieved, "/conversations/{}/events")),
    "send_input": (
        OPERATORS,
        about(Ground.achieved, "/conversations/{}/messages", {"input": "more"}),
    ),
    "pause_conversation": (OPERATORS, about(Ground.pursued, "/conversations/{}/pause")),
    "resume_conversation": (OPERATORS, about(Ground.held, "/conversations/{}/resume")),
    "cancel_conversation": (OPERATORS, about(Ground.pursued, "/conversations/{}/cancel")),
    "list_agents": (KNOWN, at("/agents")),
    "get_agent": (READERS, at("/agents/clerk")),
    "list_tools": (KNOWN, at("/tools")),
    "get_tool": (KNOWN, at("/tools/pay")),
    "get_experience": (READERS, at("/experience")),
    "list_lessons": (KNOWN, at("/lessons")),
    "pin_lesson": (AUTHORS, about(Ground.lesson, "/lessons/{}/pin")),
    "retire_lesson": (AUTHORS, about(Ground.lesson, "/lessons/{}/retire")),
    "promote_lesson": (AUTHORS, about(Ground.lesson, "/lessons/{}/promote")),
    "healthz": (EVERYBODY, at("/healthz")),
    "readyz": (EVERYBODY, at("/readyz")),
    "get_metrics": (READERS, at("/metrics")),
    "open_link": (EVERYBODY, about(Ground.link, "/login?token={}")),
    "sign_in": (EVERYBODY, with_a_link),
    "sign_out": (KNOWN, at("/logout")),
    "who_am_i": (KNOWN, at("/me")),
    "list_tokens": (ADMINS, at("/tokens")),
    "issue_token": (ADMINS, at("/tokens", {"name": "me", "roles": ["admin"]})),
    "issue_link": (ADMINS, at("/tokens/link", {"name": "me", "roles": ["admin"]})),
    "revoke_token": (ADMINS, about(Ground.spare_token, "/tokens/{}")),
    "read_audit": (ADMINS, at("/audit")),
    "verify_audit": (ADMINS, at("/audit/verify")),
    "download_journal": (ADMINS, at("/backup")),
    "list_finished": (ADMINS, at("/housekeeping/finished?older_than_days=90")),
    "list_of_person": (ADMINS, at("/housekeeping/of-person?name=eva")),
    "export_run": (ADMINS, about(Ground.achieved, "/housekeeping/export/{}")),
    "remove_runs": (ADMINS, finished_runs),
}

IN_MEMORY = {("download_journal", 409)}
"""What a journal in memory refuses, whoever asks."""

DOCUMENT = Holdfast.in_memory().asgi().openapi()
OPERATIONS = {
    one.ok().definition.raw["operationId"]: one.ok()
    for one in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
}


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


def test_every_operation_stands_in_the_table_and_nothing_else() -> None:
    assert set(TABLE) == set(OPERATIONS)


def named(operation_id: str) -> Iterator[tuple[str, bool]]:
    """Whoever may not comes first: they must find everything as it was."""
    may, _ = TABLE[operation_id]
    yield from ((one, False) for one in CROWD if one not in may)
    yield from ((one, True) for one in CROWD if one in may)


async def sent(client: httpx.AsyncClient, method: str, ask: Ask) -> httpx.Response:
    """The answer; of a stream only its head, because it has no end."""
    request = client.build_request(method, ask.path, json=ask.body, headers=dict(ask.headers))
    answer = await client.send(request, stream=True)
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        answer._content = b""
    else:
        await answer.aread()
    await answer.aclose()
    return answer


def status_of(operation_id: str, answer: httpx.Response) -> int:
    """Several answers at once have an outcome each; here it is one."""
    if operation_id == "answer_interactions" and answer.status_code == 200:
        [outcome] = answer.json()["outcomes"]
        return int(outcome["status"])
    return answer.status_code


@pytest.mark.parametrize("operation_id", sorted(TABLE))
async def test_only_those_in_the_table_may(operation_id: str, ground: Ground) -> None:
    operation = OPERATIONS[operation_id]
    _, recipe = TABLE[operation_id]
    ask = await recipe(ground)
    before = await ground.standing()
    for name, may in named(operation_id):
        ask = await recipe(ground) if may else ask
        answer = await sent(ground.crowd[name], operation.method.upper(), ask)
        told = (operation_id, name, answer.status_code, answer.text)
        status = status_of(operation_id, answer)
        operation.validate_response(answer)
        if may:
            assert status < 300 or (operation_id, status) in IN_MEMORY, told
            continue
        assert status in ((401,) if name == "nobody" else (403, 404)), told
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == MEDIA_TYPE, told
        assert await ground.standing() == before, told


@pytest.mark.parametrize("operation_id", sorted(TABLE))
async def test_another_s_page_changes_nothing_in_the_name_of_who_is_signed_in(
    operation_id: str, ground: Ground
) -> None:
    """A browser sends the cookie along when a link is followed: reading must change nothing."""
    admin = await ground.scene.with_token(None)
    await admin.post("/login", json={"token": ground.tokens["admin"]})
    method = OPERATIONS[operation_id].method.upper()
    ask = await TABLE[operation_id][1](ground)
    before = await ground.standing()
    admin.headers["Sec-Fetch-Site"] = "cross-site"
    answer = await sent(admin, method, ask)
    reads = answer.status_code < 300 or (operation_id, answer.status_code) in IN_MEMORY
    assert answer.status_code == 403 if method != "GET" else reads, answer.text
    assert await ground.standing() == before
