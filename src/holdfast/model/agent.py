"""Agents as their authors declare them: who they are, and what they may call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from holdfast.model.approval import Rules
from holdfast.model.interaction import Asking
from holdfast.model.retry import RetryPolicy

ASK_PERSON: Final = "ask_person"
"""The tool by which an agent that `asks_people` does so."""


def helper_name(agent_id: str) -> str:
    """The tool that another agent looks like to the one that hands it work."""
    return f"ask_{agent_id}"


@dataclass(frozen=True, slots=True)
class Agent:
    """`agents` are other agents that it may hand work to; `verification_tools` only look.

    `approval` overrides what the tools themselves say, `asking` how consent is asked for;
    its role and times hold for what the agent asks otherwise, too.
    `context_limit` bounds, in characters, what the model is shown of the conversation.
    """

    agent_id: str
    name: str = ""
    system_context: str = ""
    model: str | None = None
    description: str = ""
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    verification_tools: tuple[str, ...] = ()
    approval: Rules = field(default_factory=dict)
    asking: Asking = Asking()
    asks_people: bool = False
    max_iterations: int = 20
    context_limit: int = 200_000
    retry: RetryPolicy = RetryPolicy()
