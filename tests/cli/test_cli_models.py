"""Models behind the command line: a server named in the environment, and words as they come."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_scene import Command
from terminal import ENTER, Terminal

from holdfast.model.message import ToolReturned
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Script, call, fail, say

APPLICATION = """
from pathlib import Path

from holdfast import Holdfast

HERE = Path(__file__).parent


async def pay(amount: int) -> dict:
    with (HERE / "paid").open("a", encoding="utf-8") as log:
        log.write(f"{amount}\\n")
    return {"paid": amount}


def app():
    made = Holdfast(HERE / "kept")
    made.tool(pay, approval="require")
    made.agent("clerk", tools=["pay"])
    return made
"""

HESITANT = """
import asyncio
from pathlib import Path

from pydantic_ai.models.function import FunctionModel

from holdfast import Holdfast

HERE = Path(__file__).parent


async def speak(messages, info):
    for word in ("eins ", "zwei ", "drei"):
        yield word
        while not (HERE / f"heard {word.strip()}").exists():
            await asyncio.sleep(0.01)


def app():
    made = Holdfast(HERE / "kept", model=FunctionModel(stream_function=speak))
    made.agent("clerk")
    return made
"""

Peers = Callable[[Script], ModelPeer]


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def peer_of(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peers]:
    """Starts a model server, and names it in the environment as a user would."""
    peers: list[ModelPeer] = []
    with loop_in_a_thread() as loop:

        def start(script: Script) -> ModelPeer:
            peer = ModelPeer(script)
            asyncio.run_coroutine_threadsafe(peer.__aenter__(), loop).result(30)
            peers.append(peer)
            monkeypatch.setenv("HOLDFAST_MODEL", "openai:gpt-4o")
            monkeypatch.setenv("HOLDFAST_MODEL_BASE_URL", peer.url)
            monkeypatch.setenv("HOLDFAST_MODEL_API_KEY", "the-key")
            return peer

        yield start
        for peer in peers:
            asyncio.run_coroutine_threadsafe(peer.__aexit__(), loop).result(30)


def write_application(place: Path, text: str) -> str:
    (place / "till.py").write_text(text, encoding="utf-8")
    return "till:app"


def test_a_model_server_named_in_the_environment_answers(
    holdfast: Command, place: Path, peer_of: Peers
) -> None:
    peer = peer_of(["你好，张三"])
    (place / "agents.yaml").write_text("agent_id: guide\nname: Guide\n", encoding="utf-8")
    ending = holdfast("chat", "hello")
    assert (ending.code, ending.out) == (0, "你好，张三\n"), ending
    [request] = peer.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer the-key"
    assert isinstance(request.body, dict)
    assert (request.body["model"], request.body["stream"]) == ("gpt-4o", True)
    assert peer.seen[0].asked == "hello"


def test_a_call_that_the_server_wants_is_approved_and_runs_once(
    holdfast: Command, place: Path, peer_of: Peers
) -> None:
    peer = peer_of([say("Let me pay.", call("pay", amount=5)), "Paid."])
    common = ("--app", write_application(place, APPLICATION))
    asked = holdfast("chat", "pay", *common, "--json")
    assert (asked.code, len(peer.requests)) == (4, 1)
    assert [offer.name for offer in peer.seen[0].tools] == ["pay"]
    question = asked.events[-2]["data"]["requestId"]
    answered = holdfast("answer", question, "--option", "approve", "--yes", *common, "--json")
    assert (answered.code, answered.json["answer"]) == (0, "Paid.")
    assert (place / "paid").read_text() == "5\n"
    assert len(peer.requests) == 2
    last = peer.seen[1].messages[-1]
    assert isinstance(last, ToolReturned)
    assert '"paid"' in str(last.content)


def test_a_server_that_refuses_the_key_says_what_to_check(
    holdfast: Command, place: Path, peer_of: Peers
) -> None:
    peer = peer_of([fail(401, "who are you?"), "Now I know you."])
    (place / "agents.yaml").write_text("agent_id: guide\nname: Guide\n", encoding="utf-8")
    refused = holdfast("chat", "hello")
    assert refused.code == 3
    assert "check the key (HOLDFAST_MODEL_API_KEY" in refused.out.replace("\n  │ ", "")
    assert len(peer.requests) == 1
    assert "the-key" not in refused.out + refused.err
    again = holdfast("resume", "chat_000001")
    assert (again.code, len(peer.requests)) == (0, 2), again


def test_words_appear_at_the_terminal_while_the_model_is_still_speaking(place: Path) -> None:
    till = write_application(place, HESITANT)
    with Terminal("chat", "--app", till, cwd=place) as terminal:
        terminal.wait_for("you>")
        terminal.type("count" + ENTER)
        for word, later in (("eins", "zwei"), ("zwei", "drei"), ("drei", "you>")):
            terminal.wait_for(word)
            assert later not in terminal.screen.rpartition(word)[2]
            (place / f"heard {word}").touch()
        terminal.wait_for("you>")
        terminal.type("/quit" + ENTER)
        assert terminal.end() == 0
    assert terminal.screen.count("zwei") == 1
