from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from holdfast.model.message import ModelSaid, ToolCall, ToolOffer, ToolReturned, UserSaid
from holdfast.model.retry import RetryPolicy
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import (
    Entry,
    Seen,
    call,
    call_badly,
    cut,
    fail,
    garble,
    rules,
    say,
    slow,
)
from holdfast.testing.scripted_model import RuleModel, ScriptedModel
from holdfast.work.models import ModelClient, ModelRefused, ModelUnavailable

ASK = {"model": "m", "messages": [{"role": "user", "content": "你好"}]}


def wire() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False)


async def post(peer: ModelPeer, body: dict[str, Any] | None = None) -> httpx.Response:
    async with wire() as client:
        return await client.post(f"{peer.url}/chat/completions", json=body or ASK)


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def patient(_: float) -> None:
    return None


async def talk(model: ScriptedModel, *said: Any, **options: Any) -> Any:
    client = ModelClient(sleep=patient, retry=options.pop("retry", RetryPolicy(attempts=4)))
    messages = said or (UserSaid("hello"),)
    return await client.request(model, system="Be brief.", messages=messages, tools=(), **options)


async def test_the_peer_answers_a_whole_completion() -> None:
    async with ModelPeer([say("Look.", call("find", name="张三"))]) as peer:
        answer = (await post(peer)).json()
    [choice] = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Look."
    [wanted] = choice["message"]["tool_calls"]
    assert wanted["function"] == {"name": "find", "arguments": '{"name": "张三"}'}
    assert answer["usage"]["total_tokens"] == 3


async def test_the_peer_streams_the_same_in_pieces() -> None:
    async with ModelPeer([say("Good day, 张三.", call("find", name="张三"))]) as peer:
        response = await post(peer, {**ASK, "stream": True})
    assert response.headers["content-type"] == "text/event-stream"
    chunks = events(response.text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Good day, 张三."
    written = [one["function"]["arguments"] for d in deltas for one in d.get("tool_calls", ())]
    assert json.loads("".join(written)) == {"name": "张三"}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["prompt_tokens"] == 1


async def test_the_peer_lists_its_models_and_knows_no_other_address() -> None:
    async with ModelPeer([], models=("small", "large")) as peer, wire() as client:
        listed = (await client.get(f"{peer.url}/models")).json()
        assert [model["id"] for model in listed["data"]] == ["small", "large"]
        assert (await client.get(f"{peer.url}/nowhere")).status_code == 404
        assert peer.connections == 1
    assert peer.seen == []


async def test_the_peer_keeps_requests_as_they_came_and_in_our_words() -> None:
    wanted = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}}
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [wanted]},
            {"role": "tool", "tool_call_id": "c1", "content": "7"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "a", "description": "d", "parameters": {}}}
        ],
    }
    async with ModelPeer(["ok"]) as peer:
        await post(peer, body)
    [request] = peer.requests
    assert (request.method, request.body) == ("POST", body)
    assert peer.seen == [
        Seen(
            1,
            "Be brief.",
            (
                UserSaid("go"),
                ModelSaid("", (ToolCall("c1", "a", {"x": 1}),)),
                ToolReturned("c1", "a", "7"),
            ),
            (ToolOffer("a", "d", {}),),
        )
    ]


async def test_the_peers_errors_have_status_reason_and_wait() -> None:
    async with ModelPeer([fail(429, "slow down", code="x", retry_after=2), garble("<p>")]) as peer:
        refused = await post(peer)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "2"
        assert refused.json()["error"]["message"] == "slow down"
        garbled = await post(peer)
        assert (garbled.status_code, garbled.text) == (200, "<p>")


async def test_the_peers_cuts_are_cuts() -> None:
    async with ModelPeer([cut("Good day, Will"), cut("Good day, Will")]) as peer:
        with pytest.raises(httpx.RemoteProtocolError):
            await post(peer)
        with pytest.raises(httpx.RemoteProtocolError):
            await post(peer, {**ASK, "stream": True})


async def test_a_quiet_cut_ends_in_good_form() -> None:
    async with ModelPeer([cut("Good day, Will", quietly=True)]) as peer:
        response = await post(peer, {**ASK, "stream": True})
    assert "Good da" in response.text
    assert 'finish_reason": "stop' not in response.text
    assert "[DONE]" not in response.text


async def test_the_peer_leaves_while_somebody_still_waits() -> None:
    async with ModelPeer([slow(600, "late")]) as peer:
        with pytest.raises(httpx.ReadTimeout):
            async with httpx.AsyncClient(trust_env=False, timeout=0.05) as client:
                await client.post(f"{peer.url}/chat/completions", json=ASK)
    with pytest.raises(RuntimeError, match="async with"):
        _ = peer.url


async def test_a_peer_whose_script_is_over_says_so() -> None:
    async with ModelPeer([]) as peer:
        refused = await post(peer)
    assert refused.status_code == 400
    assert "the script is over" in refused.text


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_scripted_model_says_its_turns_and_keeps_what_it_was_asked(streamed: bool) -> None:
    model = ScriptedModel(
        [
            say("Look.", call("find", name="张三"), call_badly("order", '{"item":')),
            lambda seen: f"{seen.asked}: {seen.results[0].content}",
        ]
    )
    on_text = (lambda _: None) if streamed else None
    first = await talk(model, UserSaid("who?"), on_text=on_text)
    assert first.text == "Look."
    assert first.calls == (
        ToolCall("call_1_1", "find", {"name": "张三"}),
        ToolCall("call_1_2", "order", {}, malformed='{"item":'),
    )
    told = (
        UserSaid("who?"),
        ModelSaid(first.text, first.calls),
        ToolReturned("call_1_1", "find", "WZ001"),
        ToolReturned("call_1_2", "order", "no JSON", failed=True),
    )
    second = await talk(model, *told, on_text=on_text)
    assert second.text == "who?: WZ001"
    assert model.seen[1] == Seen(2, "Be brief.", told, (), streamed)
    assert model.seen[1].result_of("find") == told[2]
    assert model.seen[0].result_of("find") is None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("fault", [fail(429), fail(500), garble(), cut("Good day, Will")])
async def test_a_scripted_model_fails_as_a_provider_does(fault: Entry, streamed: bool) -> None:
    on_text = (lambda _: None) if streamed else None
    model = ScriptedModel([fault, "fine"])
    assert (await talk(model, on_text=on_text)).text == "fine"
    assert len(model.seen) == 2
    with pytest.raises(ModelUnavailable):
        await talk(ScriptedModel([fault]), retry=RetryPolicy(attempts=1), on_text=on_text)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_scripted_model_may_say_nothing(streamed: bool) -> None:
    reply = await talk(ScriptedModel([""]), on_text=(lambda _: None) if streamed else None)
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


async def test_a_scripted_model_refuses_when_its_script_is_over() -> None:
    model = ScriptedModel(["one"])
    await talk(model)
    with pytest.raises(ModelRefused, match="the script is over: it has 1 turn"):
        await talk(model)


async def test_a_script_that_fails_says_so_on_either_side() -> None:
    def careless(seen: Seen) -> Entry:
        raise KeyError(seen.asked)

    with pytest.raises(ModelRefused, match="the script failed: KeyError") as refused:
        await talk(ScriptedModel(careless))
    assert refused.value.__cause__ is not None
    assert isinstance(refused.value.__cause__.__cause__, KeyError)
    async with ModelPeer(careless) as peer:
        assert "KeyError" in (await post(peer)).text


async def test_rules_answer_by_the_first_that_fits() -> None:
    model = RuleModel(
        [
            (lambda seen: bool(seen.results), lambda seen: f"It is {seen.results[-1].content}."),
            ("laptop", call("find_stock", item="laptop")),
            ("", "I know only laptops."),
        ]
    )
    wanted = (await talk(model, UserSaid("a laptop, please"))).calls
    assert wanted == (ToolCall("call_1_1", "find_stock", {"item": "laptop"}),)
    told = (UserSaid("a laptop"), ModelSaid("", wanted), ToolReturned("call_1_1", "find_stock", 7))
    assert (await talk(model, *told)).text == "It is 7."
    assert (await talk(model, UserSaid("tea"))).text == "I know only laptops."


async def test_no_rule_that_fits_is_a_refusal() -> None:
    with pytest.raises(ModelRefused, match="no rule of the script fits: 'tea'"):
        await talk(ScriptedModel(rules(("laptop", "yes"))), UserSaid("tea"))
