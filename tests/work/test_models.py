from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import httpx2
import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.usage import RequestUsage

from holdfast.errors import InternalError, PermanentError, TransientError
from holdfast.model.message import (
    Message,
    ModelReply,
    ModelSaid,
    ToolCall,
    ToolOffer,
    ToolReturned,
    UserSaid,
)
from holdfast.model.retry import RetryPolicy
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import (
    Entry,
    Script,
    call,
    call_badly,
    cut,
    fail,
    garble,
    say,
    slow,
)
from holdfast.work.model_wire import from_wire, to_parameters, to_wire
from holdfast.work.models import (
    ContextTooLong,
    ModelClient,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
    resolve_model,
)

HELLO = [UserSaid("hello")]
FIND = ToolOffer(
    "find_person",
    "Finds a person by name.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)


@dataclass
class Line:
    """A client and the peer it talks to, with waits that are noted instead of waited."""

    peer: ModelPeer
    client: ModelClient
    waits: list[float] = field(default_factory=list)

    async def ask(self, messages: list[Message] | None = None, **options: Any) -> ModelReply:
        return await self.client.request(
            options.pop("model", "scripted"),
            system=options.pop("system", ""),
            messages=messages or HELLO,
            tools=options.pop("tools", ()),
            **options,
        )


@pytest.fixture(autouse=True)
def _direct_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Any]]:
    opened: list[Line] = []

    async def to_peer(script: Script, **options: Any) -> Line:
        waits: list[float] = []

        async def noted(seconds: float) -> None:
            waits.append(seconds)

        peer = await ModelPeer(script).__aenter__()
        client = ModelClient(
            base_url=peer.url, api_key="test", sleep=noted, jitter=lambda: 0.5, **options
        )
        opened.append(Line(peer, client, waits))
        return opened[-1]

    yield to_peer
    for line in opened:
        await line.client.aclose()
        await line.peer.__aexit__()


async def test_a_question_goes_out_with_system_and_tools_and_the_answer_comes_back(
    connect: Any,
) -> None:
    line = await connect(["Good day, Will Zhang."])
    reply = await line.ask(system="Be brief.", tools=[FIND])
    assert (reply.text, reply.calls, reply.finish) == ("Good day, Will Zhang.", (), "stop")
    assert reply.model == "scripted"
    [request] = line.peer.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer test"
    assert request.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    [offered] = request.body["tools"]
    assert offered["function"]["name"] == "find_person"
    assert offered["function"]["description"] == "Finds a person by name."
    assert offered["function"]["parameters"]["required"] == ["name"]


async def test_a_model_may_leave_required_arguments_out(connect: Any) -> None:
    line = await connect(["yes"])
    await line.ask(tools=[FIND])
    [offered] = line.peer.requests[0].body["tools"]
    assert "strict" not in offered["function"]


async def test_nothing_is_said_where_there_is_no_system_text_and_no_tool(connect: Any) -> None:
    line = await connect(["yes"])
    await line.ask()
    body = line.peer.requests[0].body
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "tools" not in body


@pytest.mark.parametrize("streamed", [False, True])
async def test_parallel_calls_arrive_with_their_ids_and_arguments(
    connect: Any, streamed: bool
) -> None:
    turn = say(
        "Both at once.", call("find_person", name="张三"), call("find_stock", items=[1, 2.5])
    )
    line = await connect([turn])
    reply = await line.ask(on_text=(lambda _: None) if streamed else None)
    assert reply.text == "Both at once."
    assert reply.finish == "tool_call"
    assert reply.calls == (
        ToolCall("call_1_1", "find_person", {"name": "张三"}),
        ToolCall("call_1_2", "find_stock", {"items": [1, 2.5]}),
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "written",
    ['{"name": "Wi', "[1]", '"text"', '{"n": NaN}', '{"n": 1e999}', '{"s": "\\ud800"}', "[" * 5000],
)
async def test_arguments_that_are_no_strict_object_are_kept_as_they_were_written(
    connect: Any, streamed: bool, written: str
) -> None:
    line = await connect([call_badly("find_person", written)])
    reply = await line.ask(on_text=(lambda _: None) if streamed else None)
    assert reply.calls == (ToolCall("call_1_1", "find_person", {}, malformed=written),)


@pytest.mark.parametrize("streamed", [False, True])
async def test_no_arguments_at_all_are_an_empty_object(connect: Any, streamed: bool) -> None:
    line = await connect([say("", call_badly("now", ""), call_badly("now", "{}"))])
    reply = await line.ask(on_text=(lambda _: None) if streamed else None)
    assert [(wanted.args, wanted.malformed) for wanted in reply.calls] == [({}, None), ({}, None)]


async def test_the_whole_conversation_goes_back_as_it_was(connect: Any) -> None:
    calls = (ToolCall("c1", "find_person", {"name": "张三"}), ToolCall("c2", "find_stock", {}))
    told: list[Message] = [
        UserSaid("Order a laptop for 张三"),
        ModelSaid("Let me look.", calls),
        ToolReturned("c1", "find_person", "WZ001"),
        ToolReturned("c2", "find_stock", "7"),
        UserSaid("and hurry"),
        ModelSaid("Ordered."),
        UserSaid("Thanks"),
    ]
    line = await connect(["You are welcome."])
    await line.ask(told)
    assert line.peer.seen[0].messages == tuple(told)


def test_what_is_sent_shares_nothing_with_the_conversation() -> None:
    call = ToolCall("c1", "order", {"rows": [1]})
    told = [ModelSaid("", (call,)), ToolReturned("c1", "order", {"ids": [7]})]
    offer = ToolOffer("order", "", {"properties": {"rows": {}}})
    whole = repr((told, offer))
    response, request = to_wire(told)
    response.parts[0].args["rows"].clear()  # type: ignore[union-attr, index]
    request.parts[0].content["ids"].clear()  # type: ignore[union-attr, index]
    [sent] = to_parameters("", [offer]).function_tools
    sent.parameters_json_schema["properties"].clear()
    assert repr((told, offer)) == whole


async def test_results_follow_their_calls_in_order_and_before_what_people_say(
    connect: Any,
) -> None:
    calls = (ToolCall("c1", "a", {}), ToolCall("c2", "b", {}), ToolCall("c3", "c", {}))
    line = await connect(["ok"])
    await line.ask(
        [
            UserSaid("go"),
            ModelSaid("", calls),
            ToolReturned("c3", "c", {"stock": ["七", None]}),
            UserSaid("well?"),
            ToolReturned("c1", "a", "no such person", failed=True),
        ]
    )
    sent = line.peer.requests[0].body["messages"][2:]
    assert [message.get("tool_call_id") for message in sent] == ["c1", "c2", "c3", None]
    assert sent[0]["content"] == '{"error":"no such person"}'
    assert "not carried out" in sent[1]["content"]
    assert sent[2]["content"] == '{"stock":["七",null]}'
    assert sent[3] == {"role": "user", "content": "well?"}


async def test_a_malformed_call_goes_back_as_something_a_provider_accepts(connect: Any) -> None:
    line = await connect(["again"])
    broken = ToolCall("c1", "a", {}, malformed='{"x":')
    refusal = ToolReturned("c1", "a", "write JSON", failed=True)
    await line.ask([UserSaid("go"), ModelSaid("", (broken,)), refusal])
    [sent] = line.peer.requests[0].body["messages"][1]["tool_calls"]
    assert sent["function"]["arguments"] == '{"INVALID_JSON":"{\\"x\\":"}'


def test_a_result_without_its_call_is_a_mistake_of_ours() -> None:
    with pytest.raises(InternalError, match="c9"):
        to_wire([UserSaid("go"), ModelSaid("", ()), ToolReturned("c9", "a", 1)])


def test_call_ids_that_a_server_uses_again_are_made_distinct() -> None:
    parts = [ToolCallPart("a", {}, "call_0"), ToolCallPart("b", {}, "call_0")]
    reply = from_wire(ModelResponse(parts=parts), taken=["call_0", "call_0.2"])
    assert [wanted.call_id for wanted in reply.calls] == ["call_0.3", "call_0.4"]


def test_half_a_character_does_not_reach_the_journal() -> None:
    reply = from_wire(ModelResponse(parts=[TextPart("ok \ud83d"), TextPart(" 张三 🙂")]))
    assert reply.text == "ok \ufffd 张三 🙂"


async def test_streamed_pieces_add_up_to_the_text(connect: Any) -> None:
    text = "张三的电脑已经订好了，周五送到。 It comes on Friday. 🙂"
    line = await connect([text])
    pieces: list[str] = []
    reply = await line.ask(on_text=pieces.append)
    assert len(pieces) > 3
    assert "".join(pieces) == reply.text == text
    assert line.peer.requests[0].body["stream"] is True


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_hundred_kilobytes_pass_in_both_directions(connect: Any, streamed: bool) -> None:
    long = "张三 needs a laptop. " * 5_000
    line = await connect([lambda seen: seen.asked[::-1]])
    reply = await line.ask([UserSaid(long)], on_text=(lambda _: None) if streamed else None)
    assert reply.text == long[::-1]


@pytest.mark.parametrize("streamed", [False, True])
async def test_usage_is_what_the_provider_counted_and_the_price_of_an_own_server_unknown(
    connect: Any, streamed: bool
) -> None:
    line = await connect([say("12345678901234", call("a"))])
    reply = await line.ask(
        [UserSaid("a"), ModelSaid("b"), UserSaid("c")],
        model="gpt-4o",
        on_text=(lambda _: None) if streamed else None,
    )
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 3)
    assert reply.usage.cost is None
    assert reply.usage.seconds > 0


def test_a_known_price_is_told_without_asking_anybody() -> None:
    response = ModelResponse(
        parts=[TextPart("hi")],
        usage=RequestUsage(input_tokens=1_000_000, output_tokens=0),
        model_name="gpt-4o",
        provider_name="openai",
    )
    assert from_wire(response).usage.cost == pytest.approx(2.5)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "fault",
    [
        fail(429),
        fail(408),
        fail(500),
        fail(502),
        fail(503),
        garble(),
        garble('{"choices": "none"}'),
        garble('{"choices": []}'),
        garble("null"),
        cut("Good day, Will Zhang"),
        cut(call("find_person", name="Will Zhang")),
    ],
)
async def test_what_may_pass_is_tried_again(connect: Any, fault: Entry, streamed: bool) -> None:
    line = await connect([fault, fault, "at last"])
    reply = await line.ask(on_text=(lambda _: None) if streamed else None)
    assert reply.text == "at last"
    assert len(line.peer.requests) == 3
    assert line.waits == [1.0, 2.0]


@pytest.mark.parametrize("entry", ["Good day, Will Zhang", call("find_person", name="Will")])
async def test_a_stream_that_ends_without_saying_so_is_no_answer(connect: Any, entry: Any) -> None:
    line = await connect([cut(entry, quietly=True), "whole"])
    reply = await line.ask(on_text=lambda _: None)
    assert (reply.text, reply.calls) == ("whole", ())


async def test_pieces_of_a_broken_stream_are_taken_back(connect: Any) -> None:
    line = await connect([cut("Good day, Will"), fail(500), "Good evening"])
    shown: list[str] = []
    taken_back: list[str] = []

    def clear() -> None:
        taken_back.append("".join(shown))
        shown.clear()

    reply = await line.ask(on_text=shown.append, on_restart=clear)
    assert taken_back == ["Good da"]
    assert "".join(shown) == reply.text == "Good evening"


async def test_a_storm_ends_after_the_agreed_attempts(connect: Any) -> None:
    line = await connect([fail(429, "slow down")] * 9)
    with pytest.raises(ModelUnavailable, match=r"'scripted': 429: slow down \(after 4 attempts\)"):
        await line.ask()
    assert len(line.peer.requests) == 4
    assert line.waits == [1.0, 2.0, 4.0]
    assert issubclass(ModelUnavailable, TransientError)


async def test_the_number_of_attempts_is_the_callers_choice(connect: Any) -> None:
    line = await connect([fail(503)] * 9, retry=RetryPolicy(attempts=1))
    with pytest.raises(ModelUnavailable):
        await line.ask()
    assert len(line.peer.requests) == 1


async def test_a_provider_says_how_long_to_wait_up_to_a_bound(connect: Any) -> None:
    line = await connect(
        [fail(429, retry_after=7), fail(503, retry_after=3600), "now"],
        retry=RetryPolicy(attempts=4, initial=1.0, jitter=0.0),
        longest_wait=20.0,
    )
    assert (await line.ask()).text == "now"
    assert line.waits == [7.0, 20.0]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "kind", "remedy"),
    [
        (fail(400, "bad schema"), ModelRefused, "refused: 400: bad schema; the same request"),
        (fail(401, "wrong key"), ModelRefused, "check the key"),
        (fail(403, "not yours"), ModelRefused, "check the key"),
        (fail(404, "no such model"), ModelRefused, "check the model's name"),
        (fail(402, "no credit"), ModelRefused, "quota"),
        (fail(429, "broke", code="insufficient_quota"), ModelRefused, "quota"),
        (fail(418, "a teapot"), ModelRefused, "a teapot"),
        (fail(400, "long", code="context_length_exceeded"), ContextTooLong, "shorten"),
        (fail(413, "too large"), ContextTooLong, "shorten"),
    ],
)
async def test_what_cannot_pass_is_not_tried_again_and_says_what_to_do(
    connect: Any, fault: Entry, kind: type[ModelRefused], remedy: str, streamed: bool
) -> None:
    line = await connect([fault, "never"])
    with pytest.raises(kind, match=remedy):
        await line.ask(on_text=(lambda _: None) if streamed else None)
    assert len(line.peer.requests) == 1
    assert line.waits == []
    assert issubclass(kind, PermanentError)


async def test_a_long_complaint_is_shortened(connect: Any) -> None:
    line = await connect([fail(400, "x" * 5_000)])
    with pytest.raises(ModelRefused) as refused:
        await line.ask()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("streamed", [False, True])
async def test_each_attempt_has_its_own_time_and_no_more(connect: Any, streamed: bool) -> None:
    line = await connect([slow(600, "late"), slow(600, "late"), "in time"], timeout=1.0)
    reply = await line.ask(on_text=(lambda _: None) if streamed else None)
    assert reply.text == "in time"
    assert len(line.waits) == 2


async def test_a_model_that_never_answers_is_unavailable(connect: Any) -> None:
    line = await connect([slow(600, "late")] * 4, timeout=0.05)
    with pytest.raises(ModelUnavailable, match=r"timed out after 0\.05 seconds"):
        await line.ask()
    assert len(line.waits) == 3


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    waits: list[float] = []

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        client = ModelClient(base_url=url, sleep=noted)
        with pytest.raises(ModelUnavailable, match="after 4 attempts"):
            await client.request("m", system="", messages=HELLO, tools=[])
        await client.aclose()
    assert len(waits) == 3


async def test_a_request_can_be_cancelled_while_the_model_thinks(connect: Any) -> None:
    line = await connect([slow(600, "late")])
    asking = asyncio.create_task(line.ask(on_text=lambda _: None))
    await asyncio.wait_for(line.peer.asked.wait(), timeout=60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_filtered_answer_is_a_refusal_not_an_empty_answer() -> None:
    async def filtered(*_: object) -> ModelResponse:
        details = {"refusal": "I cannot help with that"}
        return ModelResponse(parts=[], finish_reason="content_filter", provider_details=details)

    with pytest.raises(ModelRefused, match="I cannot help with that"):
        await ModelClient().request(FunctionModel(filtered), system="", messages=HELLO, tools=[])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ReadError("gone"), ModelUnavailable),
        (httpx2.RemoteProtocolError("gone"), ModelUnavailable),
        (UnexpectedModelBehavior("what?"), ModelUnavailable),
        (ContentFilterError("filtered"), ModelRefused),
        (UserError("no such setting"), ModelRefused),
        (ModelHTTPError(529, "m"), ModelUnavailable),
        (ModelHTTPError(401, "m", {"error": {"message": "who?"}}), ModelRefused),
    ],
)
async def test_every_adapters_errors_end_as_one_of_two(error: Exception, kind: Any) -> None:
    async def failing(*_: object) -> ModelResponse:
        raise error

    client = ModelClient(retry=RetryPolicy(attempts=1))
    with pytest.raises(kind, match="failing") as raised:
        await client.request(FunctionModel(failing), system="", messages=HELLO, tools=[])
    assert raised.value.__cause__ is error


class Obstinate(FunctionModel):
    unsupported_settings = frozenset({"max_retries"})


async def test_a_model_is_not_asked_for_what_it_cannot_promise() -> None:
    asked: list[Any] = []

    async def answer(_: object, info: AgentInfo) -> ModelResponse:
        asked.append(info.model_settings)
        return ModelResponse(parts=[TextPart("ok")])

    for model in (FunctionModel(answer), Obstinate(answer)):
        await ModelClient(timeout=5).request(model, system="", messages=HELLO, tools=[])
    assert asked == [{"request_timeout": 5, "max_retries": 0}, {"request_timeout": 5}]


async def test_an_answer_cut_short_by_its_length_says_so(connect: Any) -> None:
    line = await connect([replace(say("Once upon a"), finish="length")])
    assert (await line.ask()).finish == "length"


async def test_a_listener_that_fails_is_not_taken_for_a_model_that_does(connect: Any) -> None:
    def careless(text: str) -> None:
        raise ValueError("no screen")

    line = await connect(["Good day", "never"])
    with pytest.raises(ValueError, match="no screen"):
        await line.ask(on_text=careless)
    assert len(line.peer.requests) == 1


async def test_mistakes_of_ours_are_not_taken_for_the_models() -> None:
    async def broken(*_: object) -> ModelResponse:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ModelClient().request(FunctionModel(broken), system="", messages=HELLO, tools=[])


async def test_the_connection_is_kept_between_requests(connect: Any) -> None:
    line = await connect(["one", "two"])
    assert [(await line.ask()).text for _ in range(2)] == ["one", "two"]
    assert line.peer.connections == 1


def test_a_provider_is_found_by_name_and_its_key_may_be_given() -> None:
    model = resolve_model("openai:gpt-4o", api_key="test")
    assert isinstance(model, OpenAIResponsesModel)
    assert model.model_name == "gpt-4o"
    assert model.client.api_key == "test"


@pytest.mark.parametrize(
    ("name", "sent"),
    [("openai:gpt-4o", "gpt-4o"), ("qwen2.5:7b", "qwen2.5:7b"), ("gpt-4o", "gpt-4o")],
)
def test_with_a_base_url_every_name_is_that_servers(
    name: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "meant for somebody else")
    model = resolve_model(name, base_url="http://127.0.0.1:9/v1")
    assert model.model_name == sent
    assert model.provider is not None
    assert model.provider.client.api_key != "meant for somebody else"


@pytest.mark.parametrize(
    ("name", "base_url", "says"),
    [
        ("nobody:model", None, "provider:model"),
        ("gpt-4o", None, "provider:model"),
        ("openai:gpt-4o", None, "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", None, r"pip install 'pydantic-ai-slim\[anthropic\]'"),
        ("m", "127.0.0.1:8000", "HOLDFAST_MODEL_BASE_URL"),
    ],
)
def test_what_is_missing_to_reach_a_model_is_said(
    name: str, base_url: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    # As if the package were not installed, whether it is or not.
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelNotConfigured, match=says) as refused:
        resolve_model(name, base_url)
    assert repr(base_url or name) in str(refused.value)


def test_an_unknown_provider_with_a_key_is_not_known_either() -> None:
    with pytest.raises(ModelNotConfigured, match="'nobody:model'"):
        resolve_model("nobody:model", api_key="test")


async def test_the_environment_names_model_server_and_key() -> None:
    async with ModelPeer(["yes"]) as peer:
        client = ModelClient.from_environment(
            {
                "HOLDFAST_MODEL": "openai:scripted",
                "HOLDFAST_MODEL_BASE_URL": peer.url,
                "HOLDFAST_MODEL_API_KEY": "test",
            }
        )
        assert client.default_model is not None
        await client.request(client.default_model, system="", messages=HELLO, tools=[])
        await client.aclose()
        assert peer.requests[0].headers["authorization"] == "Bearer test"
        assert peer.requests[0].body["model"] == "scripted"


def test_nothing_set_means_no_default_model() -> None:
    assert ModelClient.from_environment({"HOLDFAST_MODEL": ""}).default_model is None


def test_importing_the_client_does_not_import_the_providers() -> None:
    heavy = "import sys, holdfast.work.models; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
