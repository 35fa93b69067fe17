"""Coordinators: what a goal's decomposition should know before it begins.

A coordinator is asked once per turn and answers with rules to keep, knowledge that bears on the
input, and the tools that tasks may use. `AppCoordinator` takes them from the application. Its
`tools` are everything that a task's type may name: tools, agents and plans, each with its kind.

A coordinator of one's own may return any object with these three, or a mapping; `Context.of`
makes it plain, because the context is journaled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from holdfast.errors import InvalidValue
from holdfast.forms.schemas import json_schema
from holdfast.language.strict import strict_json
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode
from holdfast.model.plan import Plan
from holdfast.model.values import Json, JsonObject
from holdfast.work.knowledge import Knowledge
from holdfast.work.model_wire import sound_text
from holdfast.work.tools import ToolRegistry, ToolSpec


@dataclass(frozen=True, slots=True)
class Context:
    """What a coordinator knows about an input: JSON objects or texts."""

    rules: tuple[Json, ...] = ()
    knowledge: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()

    @classmethod
    def of(cls, raw: object) -> Context:
        """Whatever a coordinator returned; what is no JSON in it becomes text."""
        return cls(*(_part(raw, name) for name in ("rules", "knowledge", "tools")))


class AppCoordinator:
    """Rules as given, tools as registered when asked, knowledge as found for the input."""

    def __init__(
        self,
        tools: ToolRegistry,
        rules: Sequence[str] = (),
        knowledge: Knowledge | None = None,
        agents: Callable[[], Iterable[Agent]] = tuple,
        plans: Callable[[], Iterable[Plan]] = tuple,
    ) -> None:
        self._tools = tools
        self._rules = (rules,) if isinstance(rules, str) else tuple(rules)
        self._knowledge = knowledge
        self._agents = agents
        self._plans = plans

    async def get_context_async(self, user_input: str) -> Context:
        return Context(self._rules, await self._found(user_input), tuple(self._offers()))

    async def _found(self, user_input: str) -> tuple[JsonObject, ...]:
        if self._knowledge is None:
            return ()
        passages = await asyncio.to_thread(self._knowledge.search, user_input)
        return tuple(asdict(passage) for passage in passages)

    def _offers(self) -> Iterator[JsonObject]:
        for spec in self._tools.specs():
            if not _disabled(spec):
                yield _offer("tool", spec.name, spec.description, strict_json(spec.parameters))
        for agent in self._agents():
            yield _offer("agent", agent.agent_id, agent.description or agent.name)
        for plan in self._plans():
            words = ". ".join(filter(None, (plan.name, plan.description)))
            yield _offer("plan", plan.plan_id, words, json_schema(plan.inputs))


def _disabled(spec: ToolSpec) -> bool:
    return spec.approval.mode is ApprovalMode.DISABLED and spec.approval.when is None


def _offer(
    kind: str, name: str, description: str, parameters: JsonObject | None = None
) -> JsonObject:
    offer: dict[str, Json] = {"kind": kind, "name": name, "description": description}
    return offer if parameters is None else {**offer, "parameters": parameters}


def _part(raw: object, name: str) -> tuple[Json, ...]:
    """One of the three; an error says which."""
    try:
        found = raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
        return _plain(found)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise InvalidValue(f"cannot be read ({said})", f"context.{name}") from error


def _plain(items: object) -> tuple[Json, ...]:
    if items is None:
        return ()
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        return (_plain_item(items),)
    return tuple(_plain_item(item) for item in items)


def _plain_item(item: object) -> Json:
    try:
        return strict_json(item)
    except InvalidValue:
        return sound_text(str(item))
