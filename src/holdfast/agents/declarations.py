"""Agents as an application declares them: in Python, in files, in a directory of files.

One set of rules holds for all of them (`source.agentcheck`). In Python an agent may name
tools and agents that are declared after it, so these are judged as far as they are known, again
when a tool joins, and for good when a session is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.core.approval import EVERY_TOOL, read_rule
from holdfast.errors import AuthorError, InvalidValue, PlanRejected, Problem
from holdfast.i18n.message import joined, msg
from holdfast.language.strict import strict_json, strict_text
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalRule
from holdfast.model.interaction import Asking
from holdfast.model.retry import RetryPolicy
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.source.agentcheck import Surroundings, agent_problems
from holdfast.source.asking import read_asking
from holdfast.source.locations import Locations, to_problem
from holdfast.source.shape import ShapeReader
from holdfast.work.tools import ToolRegistry, ToolSpec

_LISTS: Final = ("tools", "agents", "verification_tools")
_TEXTS: Final = ("agent_id", "name", "system_context", "description", "model")
_KINDS: Final[Mapping[str, type]] = {
    "asks_people": bool,
    "max_iterations": int,
    "context_limit": int,
    "retry": RetryPolicy,
    "asking": Asking,
}
_LONGEST_TEXT: Final = 1_000_000


class Declarations:
    def __init__(self, library: DefinitionRegistry, tools: ToolRegistry) -> None:
        self._library = library
        self._tools = tools

    def declare(self, agent_id: str, approval: object, declared: Mapping[str, Any]) -> Agent:
        """An agent declared in Python, or AuthorError with all that is wrong with it."""
        problems: list[str] = []
        given = _given(agent_id, approval, declared, problems)
        problems += _misfits(given)
        if not problems:
            problems = list(self._problems(Agent(**given), self._tools.specs()))
        if problems:
            raise AuthorError(joined("\n", (_of_agent(agent_id, one) for one in problems)))
        agent = Agent(**given)
        self._library.add_agent(agent)
        return agent

    def check_tool(self, joining: ToolSpec) -> None:
        """Refuse a tool that an agent, declared before it, may not have as it is."""
        others = (one for one in self._tools.specs() if one.name != joining.name)
        specs = (*others, joining)
        for agent in self._agents():
            if joining.name in agent.verification_tools:
                for problem in self._problems(agent, specs):
                    raise AuthorError(_of_agent(agent.agent_id, problem))

    def load(self, root: Path) -> list[Agent]:
        """The agents of a file or of a directory's; none is loaded if any is wrong.

        The files are read first, so that each may name the agents of all others.
        """
        files = sorted([*root.glob("*.yaml"), *root.glob("*.yml")]) if root.is_dir() else [root]
        texts = {file: _text(file) for file in files}
        read = self._each(texts, dict.fromkeys(files))
        agents = [agent for of_file in read.values() for agent in of_file]
        kept = self._agents(besides={agent.agent_id for agent in agents})
        others = {
            file: [*kept, *(one for other in files if other != file for one in read[other])]
            for file in files
        }
        self._each(texts, others)
        for agent in agents:
            self._library.add_agent(agent)
        return agents

    def _each(
        self, texts: Mapping[Path, str], others: Mapping[Path, Sequence[Agent] | None]
    ) -> dict[Path, tuple[Agent, ...]]:
        """Every file's agents, or all files' problems; without others no names are judged."""
        from holdfast.source.agentfile import load_agents

        read: dict[Path, tuple[Agent, ...]] = {}
        problems: list[Problem] = []
        specs = self._tools.specs()
        for file, text in texts.items():
            outside = others[file]
            try:
                read[file] = load_agents(
                    text,
                    str(file),
                    tools=[spec.name for spec in specs],
                    read_only=[spec.name for spec in specs if spec.read_only],
                    agents=None if outside is None else (),
                    others=outside or (),
                )
            except PlanRejected as rejected:
                problems += rejected.problems
        if problems:
            raise PlanRejected(problems)
        return read

    def _agents(self, besides: frozenset[str] | set[str] = frozenset()) -> list[Agent]:
        library = self._library
        return [library.agent(one).agent for one in library.agent_ids() if one not in besides]

    def _problems(self, agent: Agent, specs: Sequence[ToolSpec]) -> Iterator[str]:
        tools = {spec.name for spec in specs}
        looking = {spec.name for spec in specs if spec.read_only}
        unknown = {one for one in agent.verification_tools if one not in tools}
        others = self._agents(besides={agent.agent_id})
        known = Surroundings(read_only=looking | unknown, agents=None, others=others)
        for finding in agent_problems([((), agent)], known):
            yield to_problem(finding, "", None).message


def _given(
    agent_id: str, approval: object, declared: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    """What was declared, in the shape that an agent has; `problems` gathers what has none."""
    rules = dict(_rules(approval, problems))
    given = {"agent_id": agent_id, **declared, "approval": rules}
    for key in _LISTS:
        if isinstance(given.get(key), list | set | frozenset):
            given[key] = tuple(given[key])
    if isinstance(given.get("asking"), Mapping):
        given["asking"] = _asking(given["asking"], problems)
    return given


def _rules(approval: object, problems: list[str]) -> Iterator[tuple[str, ApprovalRule]]:
    by_tool = isinstance(approval, Mapping) and not _is_rule(approval)
    rules = approval if isinstance(approval, Mapping) and by_tool else {EVERY_TOOL: approval}
    for tool, raw in rules.items() if approval is not None else ():
        try:
            yield tool, read_rule(raw)
        except AuthorError as refused:
            problems.append(f"approval of {tool}: {refused}")


def _is_rule(raw: Mapping[str, object]) -> bool:
    return bool(raw.keys() & {"mode", "when", "require_when", "otherwise"})


def _asking(raw: Mapping[str, Any], problems: list[str]) -> Asking:
    """How people are asked, in the words of agent files: JSON is YAML too."""
    try:
        text = json.dumps(strict_json(dict(raw)))
    except InvalidValue as refused:
        problems.append(f"asking: {refused}")
        return Asking()
    from holdfast.source.yaml import read_document

    document = read_document(text, "asking", "how people are asked")
    shape = ShapeReader("asking", Locations(text), list(document.problems), whole="asking")
    asking = read_asking(shape, document.root, ("asking",))
    problems += [f"asking: {one.message}" for one in shape.problems]
    return asking


def _misfits(given: Mapping[str, Any]) -> Iterator[str]:
    """Values of kinds that an agent file could not have said."""
    for key in _TEXTS:
        if key in given and (key, given[key]) != ("model", None):
            yield from _text_misfits(key, given[key])
    for key in _LISTS:
        value = given.get(key, ())
        if not isinstance(value, tuple) or not all(isinstance(one, str) for one in value):
            yield f"{key} must be a list of names"
    for key, kind in _KINDS.items():
        value = given.get(key)
        if key in given and (
            not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        ):
            yield f"{key} must be of {kind.__name__}, not {type(value).__name__}"


def _text_misfits(key: str, value: object) -> Iterator[str]:
    try:
        strict_text(value, key, longest=_LONGEST_TEXT)
    except InvalidValue as refused:
        yield str(refused)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PlanRejected([Problem(msg("this is not UTF-8 text"), str(file), 1, 1)]) from None


def _of_agent(agent_id: str, problem: str) -> str:
    return msg("agent {agent!r}: {problem}", agent=agent_id, problem=problem)
