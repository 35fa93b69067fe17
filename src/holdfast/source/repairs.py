"""What an author lets repairs of a plan do: a mode alone, or the whole policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.i18n.message import msg
from holdfast.model.plan import Plan
from holdfast.model.repair import (
    LONGEST_AUTOMATIC_WAIT,
    MOST_PATCHES,
    MOST_REQUESTS,
    MOST_TOKENS,
    RepairLimits,
    RepairMode,
    RepairPolicy,
)
from holdfast.source.locations import Finding, Path
from holdfast.source.nodes import Mapping, Node
from holdfast.source.numbers import range_problems
from holdfast.source.records import READERS, Keys
from holdfast.source.shape import ShapeReader

AUTOMATIC: Final = ("rename", "look", "lesson")
"""What `auto` may name."""

LIMITS: Final = Keys(RepairLimits)


def _read_limits(shape: ShapeReader, node: Node | None, path: Path, usual: Any) -> Any:
    return usual if node is None else LIMITS.read(shape, node, path)


POLICY: Final = Keys(RepairPolicy, {**READERS, RepairLimits: _read_limits})


def read_repair(shape: ShapeReader, node: Node | None, path: Path, usual: Any) -> Any:
    if node is None or isinstance(node, Mapping):
        return usual if node is None else POLICY.read(shape, node, path)
    return RepairPolicy(mode=shape.word(node, path, RepairMode, RepairMode.PROPOSE))


def repair_problems(plan: Plan, path: Path) -> Iterator[Finding]:
    policy, most = plan.repair, (*path, "most")
    for index, word in enumerate(policy.auto):
        if word not in AUTOMATIC:
            told = msg("auto may name {names}", names=", ".join(AUTOMATIC))
            yield Finding((*path, "auto", index), told)
    if policy.auto and policy.mode is not RepairMode.AUTO:
        yield Finding((*path, "auto"), msg("auto counts with mode: auto only"))
    yield from range_problems(policy.most.patches, 0, MOST_PATCHES, (*most, "patches"))
    yield from range_problems(policy.most.requests, 0, MOST_REQUESTS, (*most, "requests"))
    yield from range_problems(policy.most.tokens, 0, MOST_TOKENS, (*most, "tokens"))
    yield from range_problems(policy.most.wait, 0, LONGEST_AUTOMATIC_WAIT, (*most, "wait"))
