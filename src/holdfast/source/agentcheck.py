"""What agents must satisfy: their names, their numbers, and whom they hand work to.

Work that is handed on in a circle could go round for ever, each turn with a model's bill,
so a circle is refused before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.core.approval import EVERY_TOOL
from holdfast.i18n.message import msg
from holdfast.model.agent import ASK_PERSON, Agent, helper_name
from holdfast.model.form import Form
from holdfast.model.interaction import InteractionType
from holdfast.source.locations import Finding, Path
from holdfast.source.names import meant_by, not_known, not_looking, only_looks
from holdfast.source.numbers import range_problems
from holdfast.source.retry import retry_problems
from holdfast.source.soundness import asking_problems

MOST_ITERATIONS: Final = 1000
LEAST_CONTEXT: Final = 1000

_ID: Final = re.compile(r"[A-Za-z][\w-]{0,99}")

Placed: TypeAlias = tuple[Path, Agent]
"""An agent, and the path that leads to it in its file."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is besides the agents at hand; None where that is not known.

    Of `others` it is known whom they hand work to; of `agents` no more than their names.
    """

    tools: Collection[str] | None = None
    read_only: Collection[str] | None = None
    agents: Collection[str] | None = ()
    others: Collection[Agent] = ()


def subject_to_approval(agent: Agent) -> tuple[str, ...]:
    """What a rule of approval may name: the agent's tools, those it hands work to, or all."""
    helpers = (helper_name(one) for one in agent.agents)
    return (*agent.tools, *agent.verification_tools, *agent.agents, *helpers, EVERY_TOOL)


def not_subject(agent: Agent, names: Iterable[str]) -> dict[str, str]:
    """Those of `names` that no rule of approval may name, each with what is wrong about it."""
    subjects = subject_to_approval(agent)
    return {
        one: _not_subject(agent.agent_id, one, subjects) for one in names if one not in subjects
    }


def _not_subject(agent: str, name: str, subjects: Collection[str]) -> str:
    if meant := meant_by(name, subjects):
        return msg(
            "{agent} has no tool or agent {name!r}; did you mean {meant!r}?",
            agent=agent,
            name=name,
            meant=meant,
        )
    return msg("{agent} has no tool or agent {name!r}", agent=agent, name=name)


def agent_problems(placed: Sequence[Placed], known: Surroundings) -> Iterator[Finding]:
    """Every mistake, named by its path in the file."""
    yield from _id_problems(placed, known.others)
    agents = _agents(placed, known)
    for path, agent in placed:
        yield from _tool_problems(agent, path, known)
        for name, message in not_subject(agent, agent.approval).items():
            yield Finding((*path, "approval", name), message)
        yield from _names_problems(agent, path)
        yield from _offer_problems(agent, path)
        for index, name in enumerate(agent.agents):
            yield from not_known("agent", name, agents, (*path, "agents", index))
        yield from _number_problems(agent, path)
        consent = InteractionType.TOOL_APPROVAL
        yield from asking_problems(agent.asking, consent, Form(), (*path, "asking"))
    yield from _circles(placed, known.others)


def _agents(placed: Sequence[Placed], known: Surroundings) -> set[str] | None:
    if known.agents is None:
        return None
    named = (agent.agent_id for agent in (*known.others, *(agent for _, agent in placed)))
    return {*named, *known.agents}


def _id_problems(placed: Sequence[Placed], others: Collection[Agent]) -> Iterator[Finding]:
    seen = {agent.agent_id for agent in others}
    for path, agent in placed:
        if not _ID.fullmatch(agent.agent_id):
            message = msg(
                "an agent_id begins with a letter and has letters, digits, _ and - only, at most "
                "100"
            )
            yield Finding((*path, "agent_id"), message)
        elif agent.agent_id in seen:
            yield Finding((*path, "agent_id"), msg("the agent_id {id} is taken", id=agent.agent_id))
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


def _names_problems(agent: Agent, path: Path) -> Iterator[Finding]:
    for key in ("tools", "agents", "verification_tools"):
        seen: set[str] = set()
        for index, name in enumerate(getattr(agent, key)):
            if name in seen:
                yield Finding(
                    (*path, key, index), msg("{name} stands in {key} twice", name=name, key=key)
                )
            seen.add(name)


def _offer_problems(agent: Agent, path: Path) -> Iterator[Finding]:
    """Whom it hands work to, and people, look like tools to its model: no two may look alike."""
    helpers = {helper_name(one): one for one in agent.agents}
    for index, tool in enumerate(agent.tools):
        where: Path = (*path, "tools", index)
        if tool in helpers:
            yield Finding(
                where,
                msg(
                    "{tool} is how {agent} is called; rename the tool",
                    tool=tool,
                    agent=helpers[tool],
                ),
            )
        elif agent.asks_people and tool == ASK_PERSON:
            yield Finding(where, msg("{tool} is how people are asked; rename the tool", tool=tool))
    if agent.asks_people and ASK_PERSON in helpers:
        person = helpers[ASK_PERSON]
        message = msg(
            "{tool} is how people are asked; rename the agent {agent}",
            tool=ASK_PERSON,
            agent=person,
        )
        yield Finding((*path, "agents", agent.agents.index(person)), message)


def _number_problems(agent: Agent, path: Path) -> Iterator[Finding]:
    iterations: Path = (*path, "max_iterations")
    yield from range_problems(agent.max_iterations, 1, MOST_ITERATIONS, iterations)
    if agent.context_limit < LEAST_CONTEXT:
        message = msg(
            "context_limit must be at least {least} characters, not {n}",
            least=LEAST_CONTEXT,
            n=agent.context_limit,
        )
        yield Finding((*path, "context_limit"), message)
    yield from retry_problems(agent.retry, (*path, "retry"))


def _circles(placed: Sequence[Placed], others: Collection[Agent]) -> Iterator[Finding]:
    """Follows the work from agent to agent, and reports the hand-over that closes a circle."""
    paths: dict[str, Path] = {}
    takers = {agent.agent_id: agent.agents for agent in others}
    for path, agent in placed:
        if paths.setdefault(agent.agent_id, path) == path:
            takers[agent.agent_id] = agent.agents
    followed: set[str] = set()
    for start in paths:
        trail = {} if start in followed else {start: iter(takers[start])}
        while trail:
            giver = next(reversed(trail))
            for taker in trail[giver]:
                if taker in trail:
                    names = list(trail)
                    yield from _circle(names[names.index(taker) :], paths, takers)
                elif taker in takers and taker not in followed:
                    trail[taker] = iter(takers[taker])
                    break
            else:
                followed.add(giver)
                del trail[giver]


def _circle(
    members: list[str], paths: Mapping[str, Path], takers: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """The finding stands at the last hand-over that the agents at hand have in the circle."""
    for index in reversed(range(len(members))):
        giver, taker = members[index], members[(index + 1) % len(members)]
        if giver in paths:
            where = (*paths[giver], "agents", takers[giver].index(taker))
            around = [*members[index + 1 :], *members[: index + 1]]
            yield Finding(where, _round_trip(giver, taker, [*around, taker]))
            return


def _round_trip(giver: str, taker: str, names: list[str]) -> str:
    if giver == taker:
        return msg("{agent} hands work to itself; take it off its agents", agent=giver)
    shown = " -> ".join(names)
    return msg(
        "work would go round in a circle: {path}; take {taker} off {giver}'s agents",
        path=shown,
        taker=taker,
        giver=giver,
    )
