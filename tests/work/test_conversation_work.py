"""What a conversation's own people return becomes plain, or is refused with its place."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from holdfast.errors import InvalidValue
from holdfast.language.strict import strict_json
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import SubTask
from holdfast.work.conversations import ConversationWorker

WORK = f.Work("conversation", "t1", 1, 1, 1, "key")


def worker(coordinator: Any = None, llm: Any = None, **executors: Any) -> ConversationWorker:
    return ConversationWorker(coordinator, llm, executors, frozenset(), lambda kind: "default")


class Llm:
    def __init__(self, made: Any) -> None:
        self.made = made

    async def decompose_goal(self, text: str) -> Any:
        return self.made


class Surroundings:
    def __init__(self, context: Any) -> None:
        self.context = context

    async def get_context_async(self, user_input: str) -> Any:
        return self.context


async def decomposed(*made: Any) -> c.Outcome:
    return await worker(llm=Llm(list(made))).perform(f.Decompose(WORK, "Go.", {}, (), ""))


async def refused(*made: Any) -> str:
    outcome = await decomposed(*made)
    assert isinstance(outcome, c.Undecomposed), outcome
    return outcome.reason


async def fetched(context: Any) -> c.Outcome:
    return await worker(Surroundings(context)).perform(f.FetchContext(WORK, "Go."))


def as_object(**fields: Any) -> Any:
    return SubTask(**fields)


EITHER = pytest.mark.parametrize("made", [as_object, dict], ids=["object", "dict"])


@EITHER
async def test_a_task_is_read_alike_as_an_object_and_as_a_dict(made: Callable[..., Any]) -> None:
    full = made(
        id="a",
        description="look",
        type="look",
        priority=3,
        dependencies=("b",),
        args={"n": (1, 2)},
    )
    bare = made(id="b", description=None, type=None, priority=None, dependencies=None, args=None)
    assert await decomposed(full, bare) == c.Decomposed(
        (SubTask("a", "look", "look", 3, ("b",), {"n": [1, 2]}), SubTask("b"))
    )


UNSOUND: list[tuple[str, Any, str]] = [
    ("description", 5, "task 'a': description must be text, not int"),
    ("type", ["look"], "task 'a': type must be text, not list"),
    ("priority", "high", "task 'a': priority must be a whole number, not str"),
    ("priority", 1.5, "task 'a': priority must be a whole number, not float"),
    ("priority", float("inf"), "task 'a': priority must be a whole number, not float"),
    ("priority", True, "task 'a': priority must be a whole number, not bool"),
    ("priority", 10**30, "an integer beyond 64 bits"),
    ("dependencies", "b", "task 'a': dependencies must be a list of ids, not str"),
    ("dependencies", {"b"}, "task 'a': dependencies must be a list of ids, not set"),
    ("dependencies", [None], "task 'a': dependencies must be ids of tasks"),
    ("dependencies", ["\ud800"], "lone surrogate"),
    ("description", "\ud800", "lone surrogate"),
    ("args", [1], "task 'a': args must be an object, not list"),
    ("args", {"x": object()}, "object is not JSON"),
    ("args", {1: "x"}, "$.args"),
]


@EITHER
@pytest.mark.parametrize(("name", "value", "reason"), UNSOUND)
async def test_a_task_that_is_unsound_is_refused_with_the_reason(
    made: Callable[..., Any], name: str, value: Any, reason: str
) -> None:
    assert reason in await refused(made(id="a", **{name: value}))


@EITHER
@pytest.mark.parametrize("task_id", [None, "", True, ["x"], {"x": 1}])
async def test_a_task_without_an_id_is_refused(made: Callable[..., Any], task_id: Any) -> None:
    assert "a task needs an id" in await refused(made(id=task_id))


async def test_numbers_are_ids_in_json_and_only_there() -> None:
    numbered = await decomposed({"id": 1}, {"id": 2.0, "dependencies": [1]})
    assert numbered == c.Decomposed((SubTask("1"), SubTask("2", dependencies=("1",))))
    assert "a task needs an id" in await refused(SubTask(1))  # type: ignore[arg-type]
    assert "dependencies must be ids" in await refused(
        SubTask("a", dependencies=(1,))  # type: ignore[arg-type]
    )


async def test_what_is_no_task_at_all_is_refused() -> None:
    assert await refused("look") == "a task is an object with an id, not str"
    assert "a task needs an id" in await refused({"description": "nameless"})


@pytest.mark.parametrize(
    "said",
    [
        '[{"id": "a"}]',
        '{"tasks": [{"id": "a"}]}',
        '```json\n[{"id": "a"}]\n```',
        'Here they are:\n\n```\n{"tasks": [{"id": "a"}]}\n```\nGood luck.',
    ],
)
async def test_a_decomposition_in_words_is_read_bare_or_fenced(said: str) -> None:
    made = await worker(llm=Llm(said)).perform(f.Decompose(WORK, "Go.", {}, (), ""))
    assert made == c.Decomposed((SubTask("a"),))


@pytest.mark.parametrize("said", ["first we shall", "[" * 100_000, '{"id": "a"}', "[NaN]"])
async def test_words_without_tasks_are_no_decomposition(said: str) -> None:
    made = await worker(llm=Llm(said)).perform(f.Decompose(WORK, "Go.", {}, (), ""))
    assert made == c.Undecomposed("the decomposition is text, but has no JSON list of tasks in it")


@dataclass
class Rule:
    name: str


async def test_a_context_of_foreign_things_is_made_plain() -> None:
    day = datetime.date(2024, 1, 1)
    made = await fetched({"rules": [Rule("be brief")], "knowledge": (day,), "tools": {"a": 1}})
    assert isinstance(made, c.Fetched)
    assert strict_json(made.rules) == ["Rule(name='be brief')"]
    assert (made.knowledge, made.tools) == (("2024-01-01",), ({"a": 1},))
    assert await fetched(None) == c.Fetched()


def broken() -> Iterator[str]:
    yield "one"
    raise OSError("the index is gone")


@pytest.mark.parametrize("part", ["rules", "knowledge", "tools"])
async def test_a_context_that_cannot_be_kept_says_which_part(part: str) -> None:
    with pytest.raises(InvalidValue, match=f"context.{part}: cannot be read .OSError: the index"):
        await fetched({part: broken()})
    with pytest.raises(InvalidValue, match=rf"context.{part}.*: .*1,000,000"):
        await fetched({part: ["x" * 600_000] * 2})


def empty(task: SubTask) -> Any:
    return next(iter(()))


async def test_a_blocking_function_that_runs_out_of_items_is_heard_of() -> None:
    task = SubTask("a", type="empty", route="callable")
    with pytest.raises(RuntimeError, match="empty raised StopIteration"):
        await worker(empty=empty).perform(f.RunTask(WORK, task, "Go.", {}, {}))


class Exhausted:
    def decompose_goal(self, text: str) -> Any:
        return next(iter(()))


async def test_so_is_a_blocking_model() -> None:
    with pytest.raises(RuntimeError, match="decompose_goal raised StopIteration"):
        await worker(llm=Exhausted()).perform(f.Decompose(WORK, "Go.", {}, (), ""))


async def test_what_is_offered_may_be_taken_apart() -> None:
    def take_apart(task: SubTask, context: Any, results: Any) -> str:
        cast(dict[str, Any], task.args)["rows"].clear()
        context["rules"].clear()
        results["t0"].clear()
        return "done"

    task = SubTask("t1", "Go.", "careless", args={"rows": [1]}, route="callable")
    effect = f.RunTask(WORK, task, "Go.", {"rules": ["no"]}, {"t0": [2]})
    whole = repr(effect)
    assert await worker(careless=take_apart).perform(effect) == c.Succeeded("done")
    assert repr(effect) == whole
