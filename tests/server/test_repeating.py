"""Every operation that changes something, sent twice under one Idempotency-Key: done once.

The table says which deeds each operation leaves in the audit. They stand there before the first
answer is given, so what the second request adds would show. The requests are those of
`test_authority`, sent by somebody who may.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import httpx
import pytest
from chat_scene import forget
from hostile_scene import Ground, standing_ground
from test_authority import OPERATIONS, TABLE, Ask

from holdfast import Holdfast
from holdfast.server.middleware.idempotency import Requests
from holdfast.server.routing import UNSAFE

KEY = {"Idempotency-Key": "8e03978e-40d5-43e8-bc93"}

DEEDS: Final[Mapping[str, list[str]]] = {
    "register_plan": ["registered"],
    "check_plan": [],
    "draft_plan": [],
    "continue_plan": ["answered"],
    "resume_plan": ["resumed"],
    "start_instance": ["started"],
    "continue_instance": ["answered"],
    "resume_instance": ["resumed"],
    "skip_listener": ["skipped"],
    "mark_task_done": ["marked_done"],
    "edit_task_context": ["edited_context"],
    "rerun_from_listener": ["reran"],
    "cancel_instance": ["cancelled"],
    "propose_patch": ["proposed"],
    "fork_instance": ["forked"],
    "pin_lesson": ["pinned_lesson"],
    "retire_lesson": ["retired_lesson"],
    "promote_lesson": [],
    "cancel_run": ["cancelled"],
    "resume_run": ["resumed"],
    "answer_interaction": ["answered"],
    "answer_interactions": ["answered"],
    "keep_draft": [],
    "keep_secret": ["entered_secret"],
    "open_chat": ["started"],
    "send_message": ["said"],
    "cancel_chat": ["cancelled"],
    "resume_chat": ["resumed"],
    "remember_approval": ["granted"],
    "revoke_approval": ["revoked"],
    "start_turn": ["started", "said"],
    "respond_to_interaction": ["answered"],
    "start_conversation": ["started", "said"],
    "send_input": ["said"],
    "pause_conversation": ["paused"],
    "resume_conversation": ["resumed"],
    "cancel_conversation": ["cancelled"],
    "sign_in": ["signed_in"],
    "sign_out": [],
    "issue_token": ["issued_token"],
    "issue_link": ["issued_link"],
    "revoke_token": ["revoked_token"],
    "remove_runs": ["removed_runs"],
}

STREAMED: Final = "start_turn"
"""Told again from the journal, not byte for byte: what is only for eyes is not recorded."""

ANONYMOUS: Final = "sign_in"
"""Nobody is known yet whose key it could be; a link is good for one use whatever is said."""

SHOWN_ONCE: Final = frozenset({"issue_token", "issue_link", "revoke_token"})
"""Whoever lost the answer is told that it took effect, and looks."""

ENTERED_AGAIN: Final = "keep_secret"
"""The same value has the same reference: to enter it again is harmless, and a deed again."""


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


def test_every_operation_that_changes_something_stands_in_the_table() -> None:
    changing = {name for name, one in OPERATIONS.items() if one.method.upper() in UNSAFE}
    assert set(DEEDS) == changing


async def deeds(ground: Ground) -> list[str]:
    return [one.record.action for one in await ground.scene.app.journal.audit(0, 100_000)]


async def sent(ground: Ground, operation_id: str, ask: Ask) -> httpx.Response:
    """A stream is heard to its end."""
    method = OPERATIONS[operation_id].method.upper()
    return await ground.scene.admin.request(method, ask.path, json=ask.body, headers=KEY)


def places(stream: httpx.Response) -> list[str]:
    return [line for line in stream.text.splitlines() if line.startswith("id: ")]


@pytest.mark.parametrize("operation_id", sorted(DEEDS))
async def test_what_is_repeated_is_done_once_and_answered_the_same(
    operation_id: str, ground: Ground
) -> None:
    ask = await TABLE[operation_id][1](ground)
    before = await deeds(ground)
    first = await sent(ground, operation_id, ask)
    assert first.status_code < 300, first.text
    second = await sent(ground, operation_id, ask)
    assert (await deeds(ground))[len(before) :] == DEEDS[operation_id]
    if operation_id == ANONYMOUS:
        assert second.status_code == 401
        return
    assert second.status_code == first.status_code
    assert second.headers["idempotency-replayed"] == "true"
    if operation_id == STREAMED:
        assert places(second) == places(first) != []
    else:
        assert second.content == first.content


@pytest.mark.parametrize("operation_id", sorted(DEEDS.keys() - {ANONYMOUS}))
async def test_what_is_repeated_after_its_answer_was_lost_is_done_once(
    operation_id: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Requests, "_keep", forget)
    ask = await TABLE[operation_id][1](ground)
    before = await deeds(ground)
    first = await sent(ground, operation_id, ask)
    second = await sent(ground, operation_id, ask)
    expected = 409 if operation_id in SHOWN_ONCE else first.status_code
    assert second.status_code == expected, second.text
    times = 2 if operation_id == ENTERED_AGAIN else 1
    assert (await deeds(ground))[len(before) :] == DEEDS[operation_id] * times
