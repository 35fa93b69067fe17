"""Who did what is written down with what they did: together, once, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from scenes import PURE, chain, plan

from holdfast.app import Holdfast
from holdfast.core.run.state import RunState
from holdfast.errors import (
    AlreadyAnswered,
    InvalidAnswer,
    InvalidValue,
    JournalUnavailable,
    NameTaken,
    NotFound,
    VersionConflict,
)
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, Attached, AuditEntry, ExpiringValue, verify
from holdfast.language.strict import digest
from holdfast.model import commands as c
from holdfast.model.fork import Fork
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.retry import Failure, FailureKind, Retry
from holdfast.model.rows import request_of
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.audit import audit_record_of, request_digest
from holdfast.runtime.identity import Claim, Identity, acting, current

pytestmark = pytest.mark.own_store  # its journal is watched, in memory

WILL = Identity("will.zhang", origin="127.0.0.1", via="t1")

ASKS = """
plan_id: asks
name: Asks
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Which one?
    form: {model: {type: text, label: Model}}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: order
    success_output: {task_id: "001", status: Done}
"""


class Watched(MemoryJournal):
    """Keeps every append that was made, and fails those it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[Append] = []
        self.trouble: list[Exception] = []
        self.after = False

    async def append(self, append: Append) -> int:
        trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None and not self.after:
            raise trouble
        version = await super().append(append)
        self.appends.append(append)
        if trouble is not None:
            raise trouble
        return version


@pytest.fixture
def journal() -> Watched:
    return Watched()


@pytest.fixture
async def app(journal: Watched) -> AsyncIterator[Holdfast]:
    app = Holdfast(journal=journal)
    app.tool(order, name="order")
    app.add_plan(plan(ASKS))
    async with app:
        yield app


ordered: list[Identity | None] = []


async def order() -> dict[str, str]:
    ordered.append(current())
    return {"order": "1"}


async def asked(app: Holdfast) -> tuple[PlanInstance, str]:
    """A run that waits for its answer, started by nobody in particular."""
    instance = await app.plans.start_plan_by_prompt("", "asks")
    await instance.wait_until_settled(20)
    [question] = await app.inbox()
    return instance, question.question_id


async def answer(app: Holdfast, question_id: str, model: str = "X1", claim: str = "") -> None:
    who = Identity(WILL.who, WILL.origin, WILL.via, Claim(claim, "print") if claim else None)
    with acting(who):
        await app.answer(question_id, data={"model": model}, by=who.who)


async def deeds(app: Holdfast) -> list[str]:
    entries: list[AuditEntry] = await app.journal.audit()
    assert verify(entries) is None
    return [entry.record.action for entry in entries]


async def claimed(app: Holdfast, key: str) -> dict[str, Any] | None:
    kept = await app.journal.kept("request", key, app.engine.clock.now())
    return None if kept is None else json.loads(kept.body)


REQUEST = InteractionRequest("q1", "r", InteractionType.CUSTOM, "Well?")
LOST = c.ReportOutcome("s", 1, 1, c.Failed(Failure(FailureKind.PERMANENT, "no")))


@pytest.mark.parametrize(
    ("command", "action", "subject", "detail"),
    [
        (c.StartRun("p"), "started", "p", {}),
        (c.StartFork(Fork("inst_000001", 7, "p")), "forked", "inst_000001", {"at": 7}),
        (c.StartSession("a"), "started", "a", {}),
        (c.OpenConversation(), "started", "", {}),
        (c.Say("hello", "will"), "said", "", {}),
        (c.Converse("hello"), "said", "", {}),
        (c.Ask(REQUEST), "asked", "q1", {}),
        (c.Propose("rm", {}, "c1", "will"), "proposed", "rm", {"call_id": "c1"}),
        (c.RememberApproval("rm", "v1", "will"), "granted", "rm", {"version": "v1"}),
        (c.RevokeApproval("g1", "will"), "revoked", "g1", {}),
        (c.Skip("L1", "will", "late"), "skipped", "L1", {"reason": digest("late")}),
        (c.MarkDone("002", "will"), "marked_done", "002", {}),
        (c.EditContext("002", {}, "will"), "edited_context", "002", {}),
        (c.RerunFrom("L1", "will"), "reran", "L1", {}),
        (c.Cancel("will", "late"), "cancelled", "", {"reason": digest("late")}),
        (c.Abort("late"), "cancelled", "", {"reason": digest("late")}),
        (c.Resume("will"), "resumed", "", {}),
        (c.Unhold(), "resumed", "", {}),
        (c.Hold(), "paused", "", {}),
        (c.StartOver(), "started_over", "", {}),
        (c.RestoreSnapshot({}), "restored", "", {}),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str | dict) else "",
)
def test_every_command_of_a_person_is_a_deed(
    command: c.Command, action: str, subject: str, detail: dict[str, str]
) -> None:
    deed = audit_record_of(WILL, command, RunState("inst_000001"), 7.5)
    assert deed is not None
    assert (deed.at, deed.who, deed.origin, deed.run_id) == (
        7.5,
        "will.zhang",
        "127.0.0.1",
        "inst_000001",
    )
    assert (deed.action, deed.subject, deed.seen) == (action, subject, "")
    assert json.loads(deed.detail) == {**detail, "via": "t1"}


@pytest.mark.parametrize(
    "command",
    [
        c.KeepDraft("q1", "will"),
        c.Advance(),
        c.StartStep("s"),
        LOST,
        c.Advise("L1", 1, Retry(1)),
        c.HearChild("x", 1, "s", 1, "done"),
        c.Tick(),
        c.Recover(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_the_engine_says_is_nobodys_deed(command: c.Command) -> None:
    assert audit_record_of(WILL, command, RunState("inst_000001"), 7.5) is None


async def test_an_answer_is_written_down_with_what_was_seen(app: Holdfast) -> None:
    instance, question_id = await asked(app)
    row = await app.journal.question(question_id)
    assert row is not None
    await answer(app, question_id)
    [entry] = await app.journal.audit()
    assert entry.record.action == "answered"
    assert (entry.record.subject, entry.record.run_id) == (question_id, instance.id)
    assert entry.record.seen == request_digest(request_of(row))
    assert len(entry.record.seen) == 64
    assert verify([entry]) is None


async def test_deed_and_claim_are_in_the_append_of_the_answer(
    app: Holdfast, journal: Watched
) -> None:
    instance, question_id = await asked(app)
    await answer(app, question_id, claim="k1")
    [append] = [one for one in journal.appends if one.attached.audit]
    assert "QuestionAnswered" in [kind.partition("@")[0] for _, _, kind, _ in append.records]
    [kept] = append.attached.claimed
    assert (kept.kind, kept.key) == ("request", "k1")
    body = await claimed(app, "k1")
    assert body is not None
    assert (body["fingerprint"], body["run_id"]) == ("print", instance.id)
    assert append.expected < body["version"] <= append.expected + len(append.records)
    assert kept.expires_at == pytest.approx(app.engine.clock.now() + 24 * 3600, abs=60)


async def test_a_claim_commits_with_the_birth_of_its_run(app: Holdfast, journal: Watched) -> None:
    with acting(Identity("will.zhang", claim=Claim("k1", "print"))):
        instance = await app.plans.start_plan_by_prompt("", "asks")
    [first] = [one for one in journal.appends if one.run_id == instance.id and one.expected == 0]
    assert [kept.key for kept in first.attached.claimed] == ["k1"]
    assert [deed.action for deed in first.attached.audit] == ["started"]
    body = await claimed(app, "k1")
    assert body is not None
    assert body["run_id"] == instance.id


async def test_without_anybody_acting_nothing_is_written(app: Holdfast, journal: Watched) -> None:
    instance, question_id = await asked(app)
    await app.answer(question_id, data={"model": "X1"})
    await instance.wait_for_completion(20)
    assert await app.journal.audit() == []
    assert not any(append.attached.kept for append in journal.appends)


async def test_a_refused_command_attaches_nothing(app: Holdfast) -> None:
    instance, question_id = await asked(app)
    with acting(Identity("will.zhang", claim=Claim("k1", "print"))):
        with pytest.raises(InvalidAnswer):
            await app.answer(question_id, data={"wrong": 1})
        with pytest.raises(NotFound):
            await app.engine.submit(
                instance.id,
                c.Skip("L404", "will.zhang"),
                attached=Attached(kept=[ExpiringValue("x", "y", "{}")]),
            )
    assert await deeds(app) == []
    assert await claimed(app, "k1") is None
    assert await app.journal.kept("x", "y", 0.0) is None


async def test_the_same_answer_again_is_no_second_deed_but_keeps_its_claim(
    app: Holdfast,
) -> None:
    instance, question_id = await asked(app)
    await answer(app, question_id, claim="k1")
    await instance.wait_for_completion(20)
    version = (await app.engine.state(instance.id)).version
    await answer(app, question_id, claim="k2")
    assert await deeds(app) == ["answered"]
    body = await claimed(app, "k2")
    assert body is not None
    assert body["version"] == version == (await app.engine.state(instance.id)).version
    with pytest.raises(AlreadyAnswered):
        await answer(app, question_id, model="another", claim="k3")
    assert await claimed(app, "k3") is None


async def test_a_draft_keeps_its_claim_and_is_no_deed(app: Holdfast) -> None:
    _, question_id = await asked(app)
    with acting(Identity("will.zhang", claim=Claim("k1", "print"))):
        await app.keep_draft(question_id, {"model": "X"}, by="will.zhang")
    assert await deeds(app) == []
    assert await claimed(app, "k1") is not None


async def test_what_the_caller_attaches_commits_with_the_command(
    app: Holdfast, journal: Watched
) -> None:
    instance, _ = await asked(app)
    secret = ExpiringValue("secret", "s", "ciphertext")
    await app.engine.submit(instance.id, c.Cancel("will.zhang"), attached=Attached(kept=[secret]))
    [append] = [one for one in journal.appends if one.attached.kept]
    assert append.records
    assert await app.journal.kept("secret", "s", 0.0) == secret


async def test_an_answer_to_pure_work_does_not_wait_for_company(
    app: Holdfast, journal: Watched
) -> None:
    """What somebody has said is on disk when they are told so, whatever else could wait."""
    app.add_plan(chain("pure", [PURE] * 50))
    with acting(WILL):
        instance = await app.plans.start_plan_by_prompt("", "pure")
        await app.engine.submit(instance.id, c.Cancel("will.zhang"))
        assert await deeds(app) == ["started", "cancelled"]


async def test_a_conflict_decides_again_and_writes_one_deed(
    app: Holdfast, journal: Watched
) -> None:
    instance, question_id = await asked(app)
    journal.trouble = [VersionConflict("somebody was faster"), VersionConflict("and again")]
    await answer(app, question_id, claim="k1")
    await instance.wait_for_completion(20)
    assert await deeds(app) == ["answered"]
    assert await claimed(app, "k1") is not None


async def test_an_append_that_fails_leaves_neither_deed_nor_claim(
    app: Holdfast, journal: Watched
) -> None:
    _, question_id = await asked(app)
    journal.trouble = [JournalUnavailable("the disk is full")]
    with pytest.raises(JournalUnavailable):
        await answer(app, question_id, claim="k1")
    assert await deeds(app) == []
    assert await claimed(app, "k1") is None
    await answer(app, question_id, claim="k1")
    assert await deeds(app) == ["answered"]


async def test_what_was_refused_and_happened_after_all_is_one_deed(
    app: Holdfast, journal: Watched
) -> None:
    _, question_id = await asked(app)
    journal.after, journal.trouble = True, [JournalUnavailable("the connection was lost")]
    with pytest.raises(JournalUnavailable):
        await answer(app, question_id, claim="k1")
    assert await deeds(app) == ["answered"]
    assert await claimed(app, "k1") is not None
    with pytest.raises(NameTaken):
        await answer(app, question_id, claim="k1")
    await answer(app, question_id, claim="k2")
    assert await deeds(app) == ["answered"]


async def test_a_run_acts_for_nobody_whoever_set_it_off(app: Holdfast) -> None:
    instance, question_id = await asked(app)
    ordered.clear()
    await answer(app, question_id)
    assert await instance.wait_for_completion(20) == "done"
    assert ordered == [None]


async def test_each_request_has_its_own_deed_though_they_share_an_append(
    app: Holdfast, journal: Watched
) -> None:
    instance, question_id = await asked(app)

    async def builder(who: str) -> None:
        with acting(Identity(who, claim=Claim(who, "print"))):
            await app.keep_draft(question_id, {"model": who}, by=who)

    people = [f"person{n}" for n in range(10)]
    await asyncio.gather(*map(builder, people), edit_as(app, instance.id, "boss"))
    for who in people:
        assert await claimed(app, who) is not None
    [entry] = await app.journal.audit()
    assert (entry.record.who, entry.record.action) == ("boss", "edited_context")


async def edit_as(app: Holdfast, run_id: str, who: str) -> None:
    with acting(Identity(who)):
        await app.edit_context(run_id, "001", {"seen": True}, by=who)


async def test_who_watches_all_runs_hears_of_every_commit(app: Holdfast, journal: Watched) -> None:
    heard: list[int] = []

    def broken() -> None:
        raise RuntimeError("a bug in an onlooker")

    unwatch: Callable[[], None] = app.engine.hub.watch_all(lambda: heard.append(len(heard)))
    app.engine.hub.watch_all(broken)
    instance, question_id = await asked(app)
    assert len(heard) >= len(journal.appends) > 0
    unwatch()
    before = len(heard)
    await answer(app, question_id)
    await instance.wait_for_completion(20)
    assert len(heard) == before


@pytest.mark.parametrize("nobody", [Identity("\ud800"), Identity("will", origin="\udfff")])
async def test_one_whose_name_cannot_be_written_down_does_nothing(
    app: Holdfast, journal: Watched, nobody: Identity
) -> None:
    before = len(journal.appends)
    with pytest.raises(InvalidValue), acting(nobody):
        await app.plans.start_plan_by_prompt("", "asks")
    assert len(journal.appends) == before
    assert await app.runs() == []


async def test_the_books_are_there_after_a_restart(tmp_path: Path) -> None:
    async with furnished(tmp_path) as app:
        _, question_id = await asked(app)
        await answer(app, question_id, claim="k1")
        first = await app.journal.audit()
    async with furnished(tmp_path) as app:
        assert await app.journal.audit() == first
        assert await claimed(app, "k1") is not None
        with acting(WILL):
            await app.plans.start_plan_by_prompt("", "asks")
        assert await deeds(app) == ["answered", "started"]


def furnished(home: Path) -> Holdfast:
    app = Holdfast(home)
    app.tool(order, name="order")
    app.add_plan(plan(ASKS))
    return app
