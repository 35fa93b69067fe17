"""One request for a plan: whatever becomes of it, there is a Drafting."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast.model.approval import ToolFacts
from holdfast.model.message import ToolOffer
from holdfast.model.retry import RetryPolicy
from holdfast.repair import drafting as judging
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.repair.sketch_prompt import sketch_prompt
from holdfast.repair.surroundings import Surroundings
from holdfast.source.check import Catalog
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Entry, Script, Turn, call, fail, garble, say, slow
from holdfast.testing.repair_models import hostile_script, weak_script
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.drafting import Drafting, draft
from holdfast.work.models import ModelClient

FACTS = {"send_email": ToolFacts({"type": "object"})}
OFFERS = (ToolOffer("send_email", "Sends a mail.", {"type": "object"}),)
HERE = Surroundings(Catalog({"send_email": {"type": "object"}}), FACTS)
SKETCH = {"goal": "A mail", "steps": [{"id": "s1", "tool": "send_email"}]}
ONCE = RetryPolicy(attempts=1)


def client(entry: Entry | None) -> ModelClient:
    model = None if entry is None else ScriptedModel([entry])
    return ModelClient(default_model=model, retry=ONCE)


async def drawn(entry: Entry | None, complaint: str = "", **more: Any) -> Drafting:
    return await draft(
        client(entry), "A mail", OFFERS, HERE, complaint, plan_id="drafted", now=0.0, **more
    )


async def test_a_sketch_becomes_a_draft() -> None:
    found = await drawn(call(SKETCH_PLAN, **SKETCH))
    assert found.draft is not None
    assert (found.draft.sketch.goal, found.draft.plan.plan_id) == ("A mail", "drafted")
    assert (found.reason, found.again, found.complaint) == ("", False, "")
    assert found.usage.input_tokens > 0


async def test_the_model_is_asked_once_and_as_the_prompt_says() -> None:
    model = ScriptedModel([call(SKETCH_PLAN, **SKETCH)])
    models = ModelClient(default_model=model, retry=ONCE)
    given = ("A mail", OFFERS, HERE, "steps: a list is needed")
    await draft(models, *given, plan_id="drafted", now=0.0)
    [seen] = model.seen
    prompt = sketch_prompt("A mail", OFFERS, FACTS, "steps: a list is needed")
    assert (seen.system, seen.asked) == (prompt.system, prompt.message)


@pytest.mark.parametrize(
    ("entry", "reason", "complaint"),
    [
        (
            call(SKETCH_PLAN, goal="A mail"),
            "the model's reply cannot be used: sketch: steps is missing",
            "sketch: steps is missing",
        ),
        (
            "",
            "the model's reply cannot be used: call sketch_plan: the reply has no JSON object "
            "for it",
            "call sketch_plan: the reply has no JSON object for it",
        ),
        (
            '{"steps": []}',
            "the model's reply cannot be used: sketch: goal is missing; steps: a plan has at "
            "least one step",
            "sketch: goal is missing; steps: a plan has at least one step",
        ),
        (
            "No tool of\nthese sends \u202eletters.",
            "The model says: “No tool of these sends ⟨202E⟩letters.”",
            "call sketch_plan: the reply has no JSON object for it",
        ),
        (
            Turn("And so on", finish="length"),
            "The model says: “And so on”",
            "the reply was cut off: be brief",
        ),
    ],
)
async def test_what_cannot_be_used_is_worth_another_request_that_says_why(
    entry: Entry, reason: str, complaint: str
) -> None:
    found = await drawn(entry)
    assert (found.draft, found.again) == (None, True)
    assert (found.reason, found.complaint) == (reason, complaint)
    assert found.usage.input_tokens > 0


async def test_long_words_are_cut_short() -> None:
    found = await drawn("no " * 100_000)
    assert len(found.reason) < 400
    assert found.reason.endswith("…”")


async def test_a_model_that_cannot_be_reached_is_not_worth_another_request() -> None:
    found = await drawn(fail(400, "no such model"))
    assert (found.draft, found.again) == (None, False)
    assert "no such model" in found.reason


async def test_a_request_takes_no_longer_than_it_may() -> None:
    found = await drawn(slow(30, "late"), limit=0.01)
    assert (found.reason, found.again) == ("the model took longer than 0.01 s", False)


async def test_without_a_model_that_is_the_reason() -> None:
    assert (await drawn(None)).reason.startswith("no model is named")


async def test_a_sketch_is_judged_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    find = judging.find_problems

    def noted(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return find(*given)

    monkeypatch.setattr(judging, "find_problems", noted)
    await drawn(call(SKETCH_PLAN, **SKETCH))
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("make", [weak_script, hostile_script])
async def test_over_real_http_no_reply_of_a_bad_model_makes_more_than_a_draft(make: Any) -> None:
    scripts: list[Script] = [make(seed) for seed in range(8)]
    for script in scripts:
        async with ModelPeer(script) as peer:
            models = ModelClient(
                default_model="scripted", base_url=peer.url, api_key="test", retry=ONCE
            )
            found = await draft(models, "A mail", OFFERS, HERE, plan_id="drafted", now=0.0)
            await models.aclose()
        if found.draft is None:
            assert found.reason
        else:
            calls = {one.tool for one in found.draft.sketch.steps}
            assert calls <= {"send_email"}
            assert all(one.approval for one in found.draft.plan.listeners[:-1])


async def test_a_garbled_call_is_told_as_what_it_is() -> None:
    found = await drawn(garble(say("", call(SKETCH_PLAN, **SKETCH))))
    assert found.draft is None
    assert found.reason
