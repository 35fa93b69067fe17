"""Agents as JSON: how an agent is stored and named by its content.

As with plans, the keys are those of the YAML file, what has its usual value is left out, and
`agent_from_json` checks nothing: what was accepted once must load for ever.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from holdfast.core.approval import rule_from_json, rule_to_json
from holdfast.language.strict import digest
from holdfast.model.agent import Agent
from holdfast.model.values import JsonObject
from holdfast.source.asking import asking_from_json, asking_to_json
from holdfast.source.retry import retry_from_json, retry_to_json

_USUAL: Final = Agent("usual")


def agent_digest(agent: Agent) -> str:
    """The agent's name by content: SHA-256 of its canonical JSON, in hex."""
    return digest(agent_to_json(agent))


def agent_to_json(agent: Agent) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "name": agent.name,
        "system_context": agent.system_context,
        "description": agent.description,
        "tools": list(agent.tools),
        "agents": list(agent.agents),
        "verification_tools": list(agent.verification_tools),
        "approval": {tool: rule_to_json(rule) for tool, rule in agent.approval.items()},
        "asking": asking_to_json(agent.asking),
        "asks_people": agent.asks_people,
        "retry": retry_to_json(agent.retry),
    }
    said = {"agent_id": agent.agent_id} | {key: value for key, value in shape.items() if value}
    for key in ("model", "max_iterations", "context_limit"):
        if getattr(agent, key) != getattr(_USUAL, key):
            said[key] = getattr(agent, key)
    return said


def agent_from_json(raw: JsonObject) -> Agent:
    """The agent behind `agent_to_json`'s answer."""
    given: dict[str, Any] = {
        each.name: raw[each.name] for each in fields(Agent) if each.name in raw
    }
    for key in ("tools", "agents", "verification_tools"):
        given[key] = tuple(raw.get(key, ()))
    rules = raw.get("approval", {})
    given["approval"] = {tool: rule_from_json(rule) for tool, rule in rules.items()}
    given["asking"] = asking_from_json(raw.get("asking", {}))
    given["retry"] = retry_from_json(raw.get("retry"))
    return Agent(**given)
