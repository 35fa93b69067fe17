"""Agent files: YAML text in, agents out, or every problem at once with its location.

A file has one agent at its top, or `agents`: a list, or a mapping by id. As with plans,
reading never stops at the first mistake, and what could not be read is not judged again.
See `agentcheck` for what agents must satisfy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.core.approval import EVERY_TOOL, read_rule
from holdfast.errors import AuthorError, PlanRejected
from holdfast.i18n.message import msg
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalRule
from holdfast.model.interaction import Asking
from holdfast.model.retry import RetryPolicy
from holdfast.source.agentcheck import Placed, Surroundings, agent_problems
from holdfast.source.asking import read_asking
from holdfast.source.locations import Locations, Path, reported
from holdfast.source.nodes import Mapping, Node, Scalar
from holdfast.source.records import READERS, Keys
from holdfast.source.retry import read_retry
from holdfast.source.shape import ShapeReader
from holdfast.source.yaml import read_document

AGENT: Final = Keys(
    Agent,
    {**READERS, Asking: read_asking, RetryPolicy: read_retry},
    short={"id": "agent_id", "system": "system_context"},
)
_ONE_RULE: Final = frozenset({"mode", "require_when"})


def load_agents(
    text: str,
    file: str = "<agents>",
    *,
    tools: Collection[str] | None = None,
    read_only: Collection[str] | None = None,
    agents: Collection[str] | None = (),
    others: Collection[Agent] = (),
) -> tuple[Agent, ...]:
    """The agents in `text`, or PlanRejected with the problems in the file's order.

    `agents` and `others` are those outside the file, which the ones in it may hand work to.
    """
    document = read_document(text, file, msg("an agent"))
    shape = ShapeReader(file, Locations(text), list(document.problems), whole=msg("the agent"))
    placed = [] if document.root is None else list(_AgentReader(shape).agents(document.root))
    known = Surroundings(tools, read_only, agents, others)
    problems = [*shape.problems, *shape.judged(agent_problems(placed, known))]
    if problems:
        raise PlanRejected(reported(problems))
    return tuple(agent for _, agent in placed)


@dataclass(slots=True)
class _AgentReader:
    shape: ShapeReader

    def agents(self, root: Node) -> Iterator[Placed]:
        self.shape.locations.record((), root)
        if _is_one_agent(root):
            yield (), self.agent(root, ())
            return
        many = self.shape.entries(root, (), known=("agents",))["agents"]
        if isinstance(many, Mapping):
            for key, value in many.entries:
                yield ("agents", key.text), self.agent(value, ("agents", key.text), key)
            return
        for index, item in enumerate(self.shape.items(many, ("agents",))):
            yield ("agents", index), self.agent(item, ("agents", index))

    def agent(self, node: Node, path: Path, key: Scalar | None = None) -> Agent:
        required = AGENT.required if key is None else ()
        found = self.shape.entries(
            node, path, known=AGENT.known, required=required, short=AGENT.short
        )
        return AGENT.fill(
            self.shape,
            found,
            path,
            agent_id=self.agent_id(found, path, key),
            approval=dict(self.rules(found.get("approval"), (*path, "approval"))),
        )

    def agent_id(self, found: dict[str, Node], path: Path, key: Scalar | None) -> str:
        path = (*path, "agent_id")
        own = self.shape.text(found.get("agent_id"), path)
        if key is None:
            return own
        if "agent_id" not in found:
            self.shape.locations.record(path, key)
        elif own != key.text and path not in self.shape.broken:
            message = msg(
                "this agent stands under {key!r} already; leave its agent_id out", key=key.text
            )
            self.shape.wrong(found["agent_id"], path, message)
        return key.text

    def rules(self, node: Node | None, path: Path) -> Iterator[tuple[str, ApprovalRule]]:
        """One rule for every tool, or rules by tool."""
        if node is None:
            return
        if not isinstance(node, Mapping) or any(key.text in _ONE_RULE for key, _ in node.entries):
            yield from self.rule(EVERY_TOOL, node, path)
            return
        for key, value in node.entries:
            yield from self.rule(key.text, value, (*path, key.text))

    def rule(self, tool: str, node: Node, path: Path) -> Iterator[tuple[str, ApprovalRule]]:
        try:
            rule = read_rule(self.shape.json(node, path))
        except AuthorError as error:
            if path not in self.shape.broken:
                self.shape.wrong(node, path, str(error).partition("\n")[0])
        else:
            yield tool, rule


def _is_one_agent(root: Node) -> bool:
    """An agent has the key `agents` too, for those that it hands work to."""
    keys = {key.text for key, _ in root.entries} if isinstance(root, Mapping) else set()
    return "agents" not in keys or not keys.isdisjoint({"agent_id", "id"})
