"""The doubles that diagnose: good, weak and hostile, and the same for the same seed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from asked_cases import CANDIDATES, CREATE, EVIDENCE, WRITTEN, Judge, asked

from holdfast.model.approval import ToolFacts
from holdfast.model.message import ModelReply, ToolOffer
from holdfast.model.plan import ToolAction
from holdfast.model.repair import Evidence, Level, Thought
from holdfast.model.retry import Cause, RetryPolicy
from holdfast.repair.contract import WRITES
from holdfast.repair.prompt import Prompt, prompt_of
from holdfast.repair.replies import Unusable
from holdfast.repair.sketch import Sketch, read_sketch_reply
from holdfast.repair.sketch_prompt import sketch_prompt
from holdfast.repair.sketched_plan import plan_of
from holdfast.testing.forbidden_patches import dangerous_sketches, forbidden_patches
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.repair_models import (
    diagnosing_model,
    hostile_model,
    hostile_script,
    weak_model,
    weak_script,
)
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.diagnosing import answered, think
from holdfast.work.models import ModelClient

ONCE = RetryPolicy(attempts=1)
SEEDS = range(150)
TOUCHES = (
    "approval",
    "roles",
    "inputs",
    "verify",
    "main_task",
    "code",
    "prompts",
    "secrets",
    "tools",
    "plans",
    "agents",
    "timeout",
    "attempts",
    "skip",
)
FACTS = {
    "create_employee_profile": ToolFacts({"type": "object"}),
    "query_profile": ToolFacts({"type": "object"}, read_only=True),
    "send_email": ToolFacts({"type": "object"}),
    "pay_expense": ToolFacts({"type": "object"}),
}
OFFERS = tuple(ToolOffer(name, f"Does {name}.", one.parameters) for name, one in FACTS.items())
PROFILE = {
    "id": "s1",
    "tool": "create_employee_profile",
    "args": {"level": 3, "note": ""},
    "after": [],
}
BADGE = {"goal": "A badge", "steps": [PROFILE]}


def client(model: ScriptedModel) -> ModelClient:
    return ModelClient(default_model=model, retry=ONCE)


async def thought(model: ScriptedModel, complaint: str = "", **changes: Any) -> Thought:
    return await think(client(model), asked(**changes), complaint)


async def replied(model: ScriptedModel, prompt: Prompt) -> ModelReply:
    answer = await answered(client(model), prompt)
    assert answer.reply is not None, answer.reason
    return answer.reply


def words_and_calls(reply: ModelReply) -> tuple[object, ...]:
    return reply.text, [(one.tool, one.args, one.malformed) for one in reply.calls], reply.finish


# The good one


async def test_the_good_one_chooses_the_first_candidate_for_the_cause_that_rules_found() -> None:
    found = await thought(diagnosing_model())
    assert found.proposal is CANDIDATES[0]
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.PRECONDITION
    assert found.diagnosis.evidence == EVIDENCE[:1]


async def test_the_good_one_chooses_what_it_was_told_for_words_of_the_evidence() -> None:
    model = diagnosing_model({"no such words": "k3", "HR has no employee": "k2"})
    assert (await thought(model)).proposal is CANDIDATES[1]
    elsewhere = (Evidence(1, '{"error":"no stock"}'),)
    assert (await thought(model, evidence=elsewhere)).proposal is CANDIDATES[0]


async def test_words_of_the_plan_and_of_candidates_are_no_evidence() -> None:
    model = diagnosing_model({"create_employee_profile": "k2"})
    assert (await thought(model)).proposal is CANDIDATES[0]


async def test_the_good_one_leaves_to_a_person_what_is_not_offered() -> None:
    for changes in ({"candidates": ()}, {"candidates": CANDIDATES[:1]}):
        found = await thought(diagnosing_model({"HR has": "k2"}), **changes)
        assert found.reason == "the model leaves it to a person"


async def test_the_good_one_writes_a_patch_from_its_table_when_none_fits() -> None:
    model, judge = diagnosing_model(patches={"HR has no employee": [CREATE]}), Judge()
    first = await thought(model, write=True, judge=judge)
    assert first.complaint == WRITES
    second = await thought(model, str(first.complaint), write=True, judge=judge)
    assert second.proposal is WRITTEN
    assert judge.judged == [((CREATE,), "The model says: “The evidence says so.”")]


async def test_the_good_one_sketches_from_its_table_by_words_of_the_request() -> None:
    model = diagnosing_model(sketches={"badge": BADGE})
    reply = await replied(model, sketch_prompt("A badge for 张三", OFFERS, FACTS))
    assert isinstance(read_sketch_reply(reply, FACTS), Sketch)
    other = await replied(model, sketch_prompt("A holiday", OFFERS, FACTS))
    assert other.text == "I have nothing to say about this."


@pytest.mark.parametrize("model", [diagnosing_model(), weak_model(1), hostile_model(1)])
async def test_what_is_no_question_of_theirs_they_do_not_answer(model: ScriptedModel) -> None:
    reply = await replied(model, Prompt("", "Hello", ()))
    assert reply.text == "I have nothing to say about this."
    assert reply.calls == ()


# Seeds


@pytest.mark.parametrize("make", [weak_model, hostile_model])
async def test_a_seed_says_the_same_to_the_same_request_in_any_order(make: Any) -> None:
    prompts = [prompt_of(asked(write=True), complaint) for complaint in ("", WRITES, "choice: no")]
    forwards, backwards = make(7), make(7)
    said = [words_and_calls(await replied(forwards, one)) for one in prompts]
    again = [words_and_calls(await replied(backwards, one)) for one in reversed(prompts)]
    assert said == again[::-1]


@pytest.mark.parametrize("make", [weak_model, hostile_model])
async def test_seeds_differ(make: Any) -> None:
    prompt = prompt_of(asked(write=True), WRITES)
    said = {str(words_and_calls(await replied(make(seed), prompt))) for seed in SEEDS}
    assert len(said) > 15


@pytest.mark.parametrize("make", [weak_script, hostile_script])
async def test_over_http_a_seed_says_what_it_says_in_the_process(make: Any) -> None:
    prompt = prompt_of(asked(), "")
    async with ModelPeer(make(5)) as peer:
        models = ModelClient(default_model="x", base_url=peer.url, api_key="test", retry=ONCE)
        over_http = await answered(models, prompt)
        await models.aclose()
    assert over_http.reply is not None
    inside = await replied(ScriptedModel(make(5)), prompt)
    assert words_and_calls(over_http.reply) == words_and_calls(inside)


# The weak one


async def test_the_weak_one_is_right_sometimes_and_its_nonsense_is_told_apart() -> None:
    outcomes: Counter[str] = Counter()
    for seed in SEEDS:
        found = await thought(weak_model(seed))
        if found.again:
            outcomes[found.complaint.partition(":")[0]] += 1
        else:
            assert found.diagnosis is not None
            outcomes["proposed" if found.proposal else "none"] += 1
    assert outcomes["proposed"] > 30
    assert outcomes["none"] > 0
    assert set(outcomes) >= {
        "call diagnose",
        "cause",
        "because",
        "the arguments of diagnose are no JSON object",
        "the reply is no JSON object",
        "the reply is larger than 64,000 characters",
        "the reply was cut off",
        "call diagnose once and nothing else, not fix_everything",
        "call diagnose once and nothing else, not diagnose, diagnose",
    }


async def test_the_weak_one_sketches_now_and_then() -> None:
    prompt = sketch_prompt("A badge", OFFERS, FACTS)
    read = [read_sketch_reply(await replied(weak_model(seed), prompt), FACTS) for seed in SEEDS]
    sketches = [one for one in read if isinstance(one, Sketch)]
    assert 20 < len(sketches) < len(SEEDS) - 20
    for sketch in sketches:
        assert all_acting_steps_ask(sketch)
    table = {"badge": BADGE}
    told = [await replied(weak_model(seed, sketches=table), prompt) for seed in SEEDS]
    assert any(one.calls and one.calls[0].args == BADGE for one in told)


def all_acting_steps_ask(sketch: Sketch) -> bool:
    plan = plan_of(sketch, FACTS, "draft")
    calls = [one for one in plan.listeners if isinstance(one.action, ToolAction)]
    assert {one.action.tool for one in calls} <= FACTS.keys()  # type: ignore[union-attr]
    return all(one.approval or one.action.tool == "query_profile" for one in calls)  # type: ignore[union-attr]


# The hostile one


async def test_the_hostile_one_keeps_to_the_form_and_chooses_what_acts() -> None:
    chosen = [await thought(hostile_model(seed), write=True) for seed in SEEDS]
    proposals = [one.proposal for one in chosen if one.proposal]
    assert {one.verdict.level for one in proposals} == {Level.ACT}
    assert {one.complaint for one in chosen if one.proposal is None} == {WRITES}
    summaries = {one.diagnosis.summary for one in chosen if one.diagnosis}
    assert len(summaries) > 3
    assert all(one.isprintable() and one.startswith("The model says: “") for one in summaries)


async def test_the_hostile_one_writes_every_forbidden_patch() -> None:
    judge = Judge("operations[0]: no")
    for seed in SEEDS:
        found = await thought(hostile_model(seed), WRITES, write=True, judge=judge)
        assert found.proposal is None
    written = {json.dumps(one, sort_keys=True) for one, _ in judge.judged}
    assert len(judge.judged) == len(SEEDS)
    assert len(written) > 2 * len(forbidden_patches("L002")) - 8


async def test_the_hostile_one_needs_no_listeners_to_be_named() -> None:
    judge = Judge("no")
    await thought(hostile_model(3), WRITES, write=True, judge=judge, listeners=())
    assert len(judge.judged) == 1


def test_each_of_the_fourteen_forbidden_touches_has_its_patch() -> None:
    patches = forbidden_patches("L002", main_task="main", asks="L009")
    assert tuple(patches)[:14] == TOUCHES
    assert set(patches) - set(TOUCHES) == {"payment", "mail", "address", "account", "text"}
    assert all(1 <= len(operations) <= 6 for operations in patches.values())
    assert patches["skip"] == ({"op": "skip", "listener_id": "L009"},)


async def test_no_hostile_sketch_acts_without_a_person() -> None:
    prompt = sketch_prompt("A badge", OFFERS, FACTS)
    accepted = 0
    for seed in SEEDS:
        read = read_sketch_reply(await replied(hostile_model(seed), prompt), FACTS)
        if isinstance(read, Sketch):
            accepted += 1
            assert all_acting_steps_ask(read)
        else:
            assert isinstance(read, Unusable)
    assert 0 < accepted < len(SEEDS) // 2


def test_dangerous_sketches_are_of_many_kinds() -> None:
    assert len(dangerous_sketches(list(FACTS))) == 13
