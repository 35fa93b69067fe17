"""What does a conversation's work: its own coordinator, model and callables, or those of its
application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.app import Holdfast
from holdfast.work.conversations import (
    ConversationWorker,
    Coordinator,
    GoalDecomposer,
    TaskExecutor,
    offers_of,
)
from holdfast.work.coordinator import AppCoordinator
from holdfast.work.goals import GoalModel
from holdfast.work.knowledge import Knowledge


def worker_of(
    app: Holdfast | None,
    coordinator: Coordinator | None,
    llm: GoalDecomposer | None,
    executors: Mapping[str, TaskExecutor],
    once: frozenset[str],
) -> ConversationWorker:
    """An application that has a model stands in for the coordinator and the llm."""
    if app is not None and app.models.default_model is not None:
        coordinator, llm = coordinator or coordinator_of(app), llm or GoalModel(app.models)
    secrets = None if app is None else app.vault
    route, offers = partial(_route, app), offers_of(executors)
    return ConversationWorker(coordinator, llm, executors, once, route, secrets, offers)


def coordinator_of(
    app: Holdfast, rules: Sequence[str] = (), knowledge: Knowledge | None = None
) -> AppCoordinator:
    """Offers what the application has when it is asked: tools, agents and plans, and its rules
    and knowledge where no others are given."""
    definitions = app.engine.definitions
    return AppCoordinator(
        app.tools,
        rules or app.rules,
        knowledge or app.knowledge,
        agents=lambda: [definitions.agent(one).agent for one in definitions.agent_ids()],
        plans=lambda: [definitions.current(one).plan for one in definitions.plan_ids()],
    )


def _route(app: Holdfast | None, kind: str) -> str:
    """What a task's type names in the application."""
    if app is None:
        return "default"
    if kind in app.tools:
        return "tool"
    if kind in app.engine.definitions.agent_ids():
        return "agent"
    return "plan" if kind in app.engine.definitions.plan_ids() else "default"
