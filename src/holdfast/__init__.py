"""Plans that stop for people and go on afterwards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.instances import PlanInstance, TaskInstance
    from holdfast.model.plan import PlanInstanceStatus
    from holdfast.plans import PlanModule, PlannerAgent, RetrySituation
    from holdfast.work.driver import TaskDriver
    from holdfast.work.tools import CallInfo

__all__ = [
    "CallInfo",
    "Holdfast",
    "PlanInstance",
    "PlanInstanceStatus",
    "PlanModule",
    "PlannerAgent",
    "RetrySituation",
    "TaskDriver",
    "TaskInstance",
]

_HOMES = {
    "CallInfo": "holdfast.work.tools",
    "Holdfast": "holdfast.app",
    "PlanInstance": "holdfast.instances",
    "PlanInstanceStatus": "holdfast.model.plan",
    "PlanModule": "holdfast.plans",
    "PlannerAgent": "holdfast.plans",
    "RetrySituation": "holdfast.plans",
    "TaskDriver": "holdfast.work.driver",
    "TaskInstance": "holdfast.instances",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import holdfast` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
