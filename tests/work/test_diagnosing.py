"""One request to a model about a case: whatever becomes of it, there is a Thought."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from asked_cases import (
    CANDIDATES,
    CREATE,
    EVIDENCE,
    WRITTEN,
    Judge,
    asked,
    diagnosed,
    patched,
    said,
)

from holdfast.model.approval import ToolFacts
from holdfast.model.message import ModelReply, ToolOffer
from holdfast.model.repair import Proposal, Thought
from holdfast.model.retry import Cause, RetryPolicy
from holdfast.model.values import JsonObject
from holdfast.repair.contract import DIAGNOSE, WRITE_PATCH, WRITES
from holdfast.repair.prompt import prompt_of
from holdfast.repair.sketch import Sketch, read_sketch_reply
from holdfast.repair.sketch_prompt import sketch_prompt
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Entry, Script, Turn, call, fail, garble, say, slow
from holdfast.testing.repair_models import diagnosing_script, hostile_script, weak_script
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.diagnosing import LONGEST_REQUEST, answered, think
from holdfast.work.models import ModelClient

ONCE = RetryPolicy(attempts=1)


def client(*script: Entry) -> tuple[ModelClient, ScriptedModel]:
    model = ScriptedModel(script)
    return ModelClient(default_model=model, retry=ONCE), model


async def thought(
    entry: Entry, complaint: str = "", *, limit: float = LONGEST_REQUEST, **changes: Any
) -> Thought:
    return await think(client(entry)[0], asked(**changes), complaint, limit=limit)


def peer_client(peer: ModelPeer) -> ModelClient:
    return ModelClient(default_model="scripted", base_url=peer.url, api_key="test", retry=ONCE)


class Odd:
    """A model client that does what none should."""

    default_model = "odd"

    def __init__(self, outcome: BaseException | ModelReply) -> None:
        self.outcome = outcome

    async def request(self, *_: object, **__: object) -> ModelReply:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


# What a model says


async def test_a_model_chooses_a_candidate() -> None:
    found = await thought(call(DIAGNOSE, **diagnosed()))
    assert found.proposal is CANDIDATES[1]
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.PRECONDITION
    assert found.diagnosis.evidence == (EVIDENCE[1],)
    assert (found.reason, found.again, found.complaint) == ("", False, "")
    assert found.usage.input_tokens > 0
    assert found.usage.output_tokens > 0


async def test_the_model_is_asked_once_and_as_the_contract_says() -> None:
    models, model = client(call(DIAGNOSE, **diagnosed()))
    await think(models, asked(), "choice: there is no k9")
    [seen] = model.seen
    prompt = prompt_of(asked(), "choice: there is no k9")
    assert (seen.system, seen.asked) == (prompt.system, prompt.message)
    assert [one.name for one in seen.tools] == [DIAGNOSE]


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("wait", "the model would wait and change nothing"),
        ("person", "the model leaves it to a person"),
        ("none_fits", "the model finds that none of the candidates fits"),
    ],
)
async def test_a_choice_without_a_proposal_is_told(choice: str, reason: str) -> None:
    found = await thought(call(DIAGNOSE, **diagnosed(choice=choice)))
    assert found.diagnosis is not None
    assert found.proposal is None
    assert (found.reason, found.again) == (reason, False)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("", "call diagnose: the reply has no JSON object for it"),
        (
            call(DIAGNOSE, cause="argument"),
            "choice is missing: k1, k2, k3, wait, person, none_fits",
        ),
        (Turn("so", finish="length"), "the reply was cut off: be brief"),
        (
            call(DIAGNOSE, **diagnosed(because=["E7"], choice="k8")),
            "because: there is no E7; known: E1, E2; choice: there is no k8; known: k1, k2, k3, "
            "wait, person, none_fits",
        ),
    ],
)
async def test_a_reply_that_cannot_be_used_is_worth_another_request(
    entry: Entry, complaint: str
) -> None:
    found = await thought(entry)
    assert (found.diagnosis, found.proposal, found.again) == (None, None, True)
    assert found.complaint == complaint
    assert found.reason == f"the model's reply cannot be used: {complaint}"
    assert found.usage.input_tokens > 0


# Writing a patch


async def test_a_patch_is_written_in_the_request_after_none_fitted() -> None:
    judge = Judge()
    case = asked(write=True, judge=judge)
    models, model = client(
        call(DIAGNOSE, **diagnosed(choice="none_fits")), call(WRITE_PATCH, **patched(CREATE))
    )
    first = await think(models, case, "")
    assert first.diagnosis is not None
    assert (first.again, first.complaint, first.proposal) == (True, WRITES, None)
    second = await think(models, case, str(first.complaint))
    assert second.proposal is WRITTEN
    assert second.diagnosis is not None
    assert (second.again, second.reason) == (False, "")
    assert [[one.name for one in seen.tools] for seen in model.seen] == [
        [DIAGNOSE],
        [DIAGNOSE, WRITE_PATCH],
    ]
    assert judge.judged == [((CREATE,), "The model does not say why.")]


async def test_a_patch_that_is_refused_may_be_written_again_with_the_first_five_problems() -> None:
    judge = Judge(*(f"operations[{number}]: no" for number in range(7)))
    found = await thought(call(WRITE_PATCH, **patched(CREATE)), WRITES, write=True, judge=judge)
    assert (found.proposal, found.again) == (None, True)
    assert found.diagnosis is not None
    assert found.complaint.startswith(f"{WRITES}; operations[0]: no; operations[1]: no; ")
    assert found.complaint.endswith("operations[4]: no; and 2 more")


async def test_an_unusable_patch_may_be_written_again() -> None:
    found = await thought(call(WRITE_PATCH, operations=[]), WRITES, write=True)
    assert found.again
    assert found.complaint.startswith(f"{WRITES}; cause is missing")


async def test_none_fits_is_said_once() -> None:
    found = await thought(call(DIAGNOSE, **diagnosed(choice="none_fits")), WRITES, write=True)
    assert (found.again, found.proposal) == (False, None)


async def test_no_patch_is_taken_that_was_not_asked_for() -> None:
    judge = Judge()
    for complaint, write in (("", True), (WRITES, False)):
        entry = call(WRITE_PATCH, **patched(CREATE))
        found = await thought(entry, complaint, write=write, judge=judge)
        assert found.proposal is None
        assert "not write_patch" in found.complaint
    assert judge.judged == []


async def test_a_patch_is_judged_beside_the_loop() -> None:
    threads: list[int] = []

    def judge(operations: tuple[JsonObject, ...], reason: str) -> Proposal:
        threads.append(threading.get_ident())
        return WRITTEN

    found = await thought(call(WRITE_PATCH, **patched(CREATE)), WRITES, write=True, judge=judge)
    assert found.proposal is WRITTEN
    assert threads != [threading.get_ident()]


# What goes wrong


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (fail(503), "503"),
        (fail(429, retry_after=30), "429"),
        (fail(401), "check the key"),
        (fail(413), "shorten the conversation"),
        (garble(), "answered nonsense"),
        (Turn(finish="content_filter"), "the provider's filter stopped it"),
    ],
)
async def test_a_model_that_fails_leaves_a_reason_and_no_further_request(
    entry: Entry, words: str
) -> None:
    found = await thought(entry)
    assert words in found.reason
    assert (found.diagnosis, found.proposal, found.again, found.complaint) == (
        None,
        None,
        False,
        "",
    )
    assert found.usage.seconds > 0


async def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    found = await thought(slow(60, call(DIAGNOSE, **diagnosed())), limit=0.02)
    assert found.reason == "the model took longer than 0.02 s"
    assert not found.again
    assert 0 < found.usage.seconds < 30


async def test_where_no_model_is_named_it_is_told() -> None:
    found = await think(ModelClient(), asked(), "")
    assert found.reason == "no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o)"


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyError("y"), TimeoutError()])
async def test_a_mistake_of_the_client_is_logged_and_never_raised(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    found = await think(Odd(error), asked(), "")
    assert found.reason == f"the request failed: {type(error).__name__}; the log says where"
    assert [one.exc_info[1] for one in caplog.records if one.exc_info] == [error]


async def test_a_mistake_of_the_judge_is_logged_and_what_was_used_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def judge(operations: tuple[JsonObject, ...], reason: str) -> Proposal:
        raise LookupError("here")

    with caplog.at_level(logging.ERROR):
        found = await thought(call(WRITE_PATCH, **patched(CREATE)), WRITES, write=True, judge=judge)
    assert found.reason == "diagnosing failed: LookupError; the log says where"
    assert found.usage.input_tokens > 0
    assert "case c1 of run inst_000001" in caplog.text


async def test_whoever_waits_may_stop_waiting() -> None:
    waiting = asyncio.ensure_future(thought(slow(60, "")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_reply_of_a_megabyte_is_refused() -> None:
    found = await think(Odd(said("{" * 1_000_000)), asked(), "")
    assert found.complaint == "the reply is larger than 64,000 characters: be brief"


# Over HTTP


@pytest.mark.parametrize(
    "script",
    [
        diagnosing_script(),
        *(make(seed) for seed in range(12) for make in (weak_script, hostile_script)),
    ],
)
@pytest.mark.parametrize("complaint", ["", WRITES])
async def test_over_http_it_is_as_in_the_process(script: Script, complaint: str) -> None:
    case = asked(write=True)
    async with ModelPeer(script) as peer:
        models = peer_client(peer)
        over_http = await think(models, case, complaint)
        await models.aclose()
        [request] = peer.requests
    inside = await think(
        ModelClient(default_model=ScriptedModel(script), retry=ONCE), case, complaint
    )
    assert request.body["tools"][0]["function"]["name"] == DIAGNOSE
    assert without_its_source(over_http) == without_its_source(inside)


def without_its_source(found: Thought) -> tuple[object, ...]:
    """A model's name is not the same over HTTP, and neither are its seconds."""
    diagnosis = found.diagnosis
    known = (diagnosis.cause, diagnosis.summary, diagnosis.evidence) if diagnosis else None
    return known, found.proposal, found.reason, found.again, found.complaint


async def test_a_sketch_is_asked_for_over_http() -> None:
    tools = {"grant_access": ToolFacts({"type": "object"})}
    offers = (ToolOffer("grant_access", "Issues a badge.", {"type": "object"}),)
    sketch = {"goal": "A badge", "steps": [{"id": "s1", "tool": "grant_access"}]}
    async with ModelPeer(diagnosing_script(sketches={"badge": sketch})) as peer:
        models = peer_client(peer)
        answer = await answered(models, sketch_prompt("A badge for 张三", offers, tools))
        await models.aclose()
    assert answer.reply is not None
    assert answer.usage == answer.reply.usage
    read = read_sketch_reply(answer.reply, tools)
    assert isinstance(read, Sketch)
    assert read.goal == "A badge"


async def test_words_beside_a_call_change_nothing() -> None:
    found = await thought(say("I am sure of this.", call(DIAGNOSE, **diagnosed(choice="k1"))))
    assert found.proposal is CANDIDATES[0]
