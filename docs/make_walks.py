"""Writes docs/walks: which modules four real calls pass (`python docs/make_walks.py`).

Each walk runs an application with a SQLite journal and records every call of a function of
`holdfast` between two points. The calls are merged into a tree by module: a node is a module with
the functions that were called in it, its children are the modules that it called, in the order of
the first call. What is resumed by the event loop starts at the root of the tree.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeAlias

import httpx

from holdfast import ConversationEngine, Holdfast
from holdfast.journal import writer
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

WALKS = Path(__file__).parent / "walks"
PACKAGE = "holdfast."
DOUBLES = "holdfast.testing."
"""The scripted model stands for a provider, which is no part of a walk."""


@dataclass
class Node:
    functions: dict[str, None] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)

    def lines(self, indent: str = "") -> list[str]:
        drawn = []
        for module, child in self.children.items():
            drawn.append(f"{indent}{module}: {', '.join(child.functions)}")
            drawn += child.lines(indent + "  ")
        return drawn

    def modules(self) -> set[str]:
        below = [child.modules() for child in self.children.values()]
        return set(self.children).union(*below)


class Trace:
    """Records the calls of `holdfast`'s functions between `start` and `stop`, in all threads that
    were made since this was."""

    def __init__(self) -> None:
        self.root = Node()
        self._on = False
        self._lock = threading.Lock()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def start(self) -> None:
        self._on = True

    def stop(self) -> None:
        self._on = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def close(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if self._on and event == "call" and _module(frame):
            with self._lock:
                self._record(frame)

    def _record(self, frame: FrameType | None) -> None:
        stack: list[tuple[str, str]] = []
        while frame is not None:
            if module := _module(frame):
                stack.append((module, _function(frame)))
            frame = frame.f_back
        node, before = self.root, ""
        for module, function in reversed(stack):
            if module != before:
                node = node.children.setdefault(module, Node())
            node.functions.setdefault(function)
            before = module


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    if not name.startswith(PACKAGE) or name.startswith(DOUBLES):
        return ""
    return str(name.removeprefix(PACKAGE))


def _function(frame: FrameType) -> str:
    """The function's name; of a lambda or a comprehension, the function that it stands in."""
    named = [one for one in frame.f_code.co_qualname.split(".") if not one.startswith("<")]
    return named[-1] if named else "<module>"


Story: TypeAlias = Callable[[Path, Trace], Awaitable[None]]

CALL = """\
plan_id: call
name: Call
main_task_id: "000"
tasks:
  - {task_id: "000", name: Call}
listeners:
  - {listener_id: L0, trigger_task_id: "000", trigger_condition: Running, listener_type: tool,
     tool: order, args: {model: ThinkPad}, success_output: {task_id: "000", status: Done}}
"""

FORM = """\
plan_id: order
name: Order
main_task_id: "000"
tasks:
  - {task_id: "000", name: Order}
listeners:
  - {listener_id: L0, trigger_task_id: "000", trigger_condition: Running, listener_type: tool,
     tool: order, fields: {model: {type: text, label: Model}},
     success_output: {task_id: "000", status: Done}}
"""

TASKS = [
    {"id": "a", "description": "first", "type": "step", "args": {"number": 0}},
    {"id": "b", "type": "step", "args": {"number": 1}, "dependencies": ["a"]},
    {"id": "c", "type": "step", "args": {"number": 2}, "dependencies": ["b"]},
]


async def tool_call(home: Path, trace: Trace) -> None:
    """A plan with one listener, from its start to its end: the tool is called once."""
    app = _with_order(Holdfast(home))
    app.load_plan_text(CALL)
    async with app:
        for traced in (False, True):
            with trace if traced else nullcontext():
                instance = await app.plans.start_plan_by_prompt("go", "call")
                await instance.wait_for_completion()


async def http_answer(home: Path, trace: Trace) -> None:
    """From the request to its response: a person fills in a plan's form by
    `POST /interactions/{id}/answer`."""
    app = _with_order(Holdfast(home))
    app.load_plan_text(FORM)
    served = app.asgi()
    async with app.lifespan():
        _, token = await served.state.services.tokens.issue("Will Zhang", "person", ["admin"])
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(served),
            base_url="http://127.0.0.1",
            headers={"Authorization": f"Bearer {token}"},
        )
        async with client:
            for traced in (False, True):
                instance = await app.plans.start_plan_by_prompt("go", "order")
                await instance.wait_until_settled()
                [question] = await app.inbox()
                path = f"/interactions/{question.question_id}/answer"
                with trace if traced else nullcontext():
                    answer = await client.post(path, json={"data": {"model": "ThinkPad"}})
                assert answer.status_code == 200, answer.text
                await instance.wait_for_completion()


async def agent_turn(home: Path, trace: Trace) -> None:
    """From a message to the end of the turn: the model calls a tool, a person approves the call,
    and the model answers."""
    app = Holdfast(home, model=ScriptedModel([call("pay", amount=5), "Paid."] * 2))

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        return {"paid": amount}

    app.agent("clerk", name="Clerk", tools=["pay"])
    async with app:
        session = await app.sessions.open("clerk")
        for traced in (False, True):
            with trace if traced else nullcontext():
                await app.sessions.say(session.id, "pay 5")
                await session.wait_until_settled()
                [question] = await app.inbox()
                await app.answer(question.question_id, option_id="approve")
                await session.wait_until_settled()


async def conversation_task(home: Path, trace: Trace) -> None:
    """From the return of a conversation's second task to the third one; the consumer receives
    the events between them."""

    class Model:
        async def decompose_goal(self, text: str) -> list[dict[str, Any]]:
            return TASKS

    app = Holdfast(home)

    @app.tool
    async def step(number: int) -> dict[str, Any]:
        if number == 1:
            trace.start()
        elif number == 2:
            trace.stop()
        return {"number": number}

    async with app:
        async for _ in ConversationEngine(llm=Model(), app=app).run("go"):
            pass


def _with_order(app: Holdfast) -> Holdfast:
    @app.tool
    async def order(model: str) -> dict[str, Any]:
        return {"model": model}

    return app


STORIES: dict[str, tuple[str, Story]] = {
    "tool-call": ("A plan's tool call", tool_call),
    "http-answer": ("An answer over HTTP", http_answer),
    "agent-turn": ("An agent's turn with an approval", agent_turn),
    "conversation-task": ("A task of a conversation", conversation_task),
}


def walked(story: Story) -> Node:
    """The calls of one story."""
    trace = Trace()
    try:
        with tempfile.TemporaryDirectory() as home:
            asyncio.run(story(Path(home), trace))
    finally:
        trace.close()
    return trace.root


def documents() -> dict[str, str]:
    """The pages, by file name."""
    # A commit that a slow disk delays would go through a thread.
    writer.SLOW_SECONDS = math.inf
    return {f"{name}.md": _page(title, story) for name, (title, story) in STORIES.items()}


def _page(title: str, story: Story) -> str:
    root, about = walked(story), " ".join((story.__doc__ or "").split())
    tree = "\n".join(root.lines())
    return f"# {title}\n\n{about}\n\nModules: {len(root.modules())}\n\n```text\n{tree}\n```\n"


def main(target: Path = WALKS) -> None:
    target.mkdir(exist_ok=True)
    for name, content in documents().items():
        (target / name).write_text(content, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
