"""What agents must satisfy: their names, their numbers, and whom they hand work to.

Work that is handed on in a circle could go round for ever, each turn with a model's bill,
so a circle is refused before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.core.approval import EVERY_TOOL
from holdfast.core.source.names import not_known, not_looking, only_looks
from holdfast.core.source.numbers import range_problems
from holdfast.core.source.places import Finding, Path
from holdfast.core.source.retry import retry_problems
from holdfast.core.source.soundness import asking_problems
from holdfast.model.agent import Agent
from holdfast.model.form import Form
from holdfast.model.interaction import InteractionType

MOST_ITERATIONS: Final = 1000
LEAST_CONTEXT: Final = 1000

_ID: Final = re.compile(r"[A-Za-z][\w-]{0,99}")

Placed: TypeAlias = tuple[Path, Agent]
"""An agent, and the path that leads to it in its file."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is besides the agents at hand; None where that is not known."""

    tools: Collection[str] | None = None
    read_only: Collection[str] | None = None
    agents: Collection[str] = ()


def agent_problems(placed: Sequence[Placed], known: Surroundings) -> Iterator[Finding]:
    """Every mistake, named by its path in the file."""
    yield from _id_problems(placed)
    agents = {agent.agent_id for _, agent in placed} | set(known.agents)
    for path, agent in placed:
        yield from _tool_problems(agent, path, known)
        yield from _names_problems(agent, path)
        for index, name in enumerate(agent.agents):
            yield from not_known("agent", name, agents, (*path, "agents", index))
        yield from _number_problems(agent, path)
        consent = InteractionType.TOOL_APPROVAL
        yield from asking_problems(agent.asking, consent, Form(), (*path, "asking"))
    yield from _circles(placed)


def _id_problems(placed: Sequence[Placed]) -> Iterator[Finding]:
    seen: set[str] = set()
    for path, agent in placed:
        if not _ID.fullmatch(agent.agent_id):
            message = "an agent_id begins with a letter and has letters, digits, _ and - only"
            yield Finding((*path, "agent_id"), f"{message}, at most 100")
        elif agent.agent_id in seen:
            yield Finding((*path, "agent_id"), f"the agent_id {agent.agent_id} is taken")
        seen.add(agent.agent_id)


def _tool_problems(agent: Agent, path: Path, known: Surroundings) -> Iterator[Finding]:
    for index, tool in enumerate(agent.tools):
        yield from not_known("tool", tool, known.tools, (*path, "tools", index))
    for index, tool in enumerate(agent.verification_tools):
        where: Path = (*path, "verification_tools", index)
        unknown = list(not_known("tool", tool, known.tools, where))
        yield from unknown
        looks = known.read_only is None or only_looks(tool, known.read_only)
        if not unknown and not looks:
            yield not_looking(tool, where)
    for tool in agent.approval:
        if tool != EVERY_TOOL and tool not in agent.agents:
            yield from not_known("tool", tool, known.tools, (*path, "approval", tool))


def _names_problems(agent: Agent, path: Path) -> Iterator[Finding]:
    for key in ("tools", "agents", "verification_tools"):
        seen: set[str] = set()
        for index, name in enumerate(getattr(agent, key)):
            if name in seen:
                yield Finding((*path, key, index), f"{name} stands in {key} twice")
            seen.add(name)


def _number_problems(agent: Agent, path: Path) -> Iterator[Finding]:
    iterations: Path = (*path, "max_iterations")
    yield from range_problems(agent.max_iterations, 1, MOST_ITERATIONS, iterations)
    if agent.context_limit < LEAST_CONTEXT:
        message = f"context_limit must be at least {LEAST_CONTEXT} characters"
        yield Finding((*path, "context_limit"), f"{message}, not {agent.context_limit}")
    yield from retry_problems(agent.retry, (*path, "retry"))


def _circles(placed: Sequence[Placed]) -> Iterator[Finding]:
    """Follows the work from agent to agent, and reports the hand-over that closes a circle."""
    by_id: dict[str, Placed] = {}
    for path, agent in placed:
        by_id.setdefault(agent.agent_id, (path, agent))
    followed: set[str] = set()
    for start in by_id:
        trail = {} if start in followed else {start: enumerate(by_id[start][1].agents)}
        while trail:
            giver = next(reversed(trail))
            for index, taker in trail[giver]:
                if taker in trail:
                    where = (*by_id[giver][0], "agents", index)
                    yield Finding(where, _circle(giver, taker, list(trail)))
                elif taker in by_id and taker not in followed:
                    trail[taker] = enumerate(by_id[taker][1].agents)
                    break
            else:
                followed.add(giver)
                del trail[giver]


def _circle(giver: str, taker: str, trail: list[str]) -> str:
    if giver == taker:
        return f"{giver} hands work to itself; take it off its agents"
    round_trip = " -> ".join([*trail[trail.index(taker) :], taker])
    return f"work would go round in a circle: {round_trip}; take {taker} off {giver}'s agents"
