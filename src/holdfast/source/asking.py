"""How people are asked, as authors write it.

An option's `handler` is kept in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping as Lookup
from typing import Any, Final

from holdfast.i18n.message import msg
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.values import Json
from holdfast.source.locations import Path
from holdfast.source.nodes import Node
from holdfast.source.records import READERS, Keys
from holdfast.source.shape import ShapeReader

ESCALATE_KEYS: Final = ("after", "role")
_USUAL: Final = Asking()
TYPES: Final = {each.value.lower(): each for each in InteractionType}
ACTIONS: Final = {
    "approve": InteractionAction.APPROVE_AND_EXECUTE,
    "retry": InteractionAction.RETRY_WITH_FEEDBACK,
    "reject": InteractionAction.REJECT_WITH_REASON,
    "terminate": InteractionAction.TERMINATE,
    "provide": InteractionAction.PROVIDE_INFO,
    "skip": InteractionAction.SKIP,
} | {each.value.lower(): each for each in InteractionAction}


def read_asking(shape: ShapeReader, node: Node | None, path: Path, usual: Any = _USUAL) -> Asking:
    """The asking at `node`, a mapping; nothing asked for is the usual one."""
    if node is None:
        return _USUAL
    found = shape.entries(node, path, known=ASKING.known, short=ASKING.short)
    return asking_from(shape, found, path)


def asking_from(shape: ShapeReader, found: Lookup[str, Node], path: Path) -> Asking:
    """The asking among the entries of its owner, which may have other keys too."""
    after, role = _escalation(shape, found.get("escalate"), (*path, "escalate"))
    return ASKING.fill(shape, found, path, escalate_after=after, escalate_to=role)


def _escalation(
    shape: ShapeReader, node: Node | None, path: Path
) -> tuple[float | None, str | None]:
    if node is None:
        return None, None
    found = shape.entries(node, path, known=ESCALATE_KEYS, required=ESCALATE_KEYS)
    after = shape.number(found.get("after"), (*path, "after"))
    return after, shape.text(found.get("role"), (*path, "role"), None)


def _type(shape: ShapeReader, node: Node | None, path: Path, usual: None) -> InteractionType | None:
    return shape.meaning(node, path, TYPES, any_case=True)


def _action(shape: ShapeReader, node: Node | None, path: Path, usual: Any) -> InteractionAction:
    # A stand-in must not be an action that asks for more, as CUSTOM asks for a handler.
    return shape.meaning(node, path, ACTIONS, any_case=True) or InteractionAction.SKIP


def _options(
    shape: ShapeReader, node: Node | None, path: Path, usual: Any
) -> tuple[InteractionOption, ...]:
    return tuple(
        _option(shape, item, (*path, index)) for index, item in enumerate(shape.items(node, path))
    )


def _option(shape: ShapeReader, node: Node, path: Path) -> InteractionOption:
    found = shape.entries(
        node, path, known=OPTION.known, required=OPTION.required, short=OPTION.short
    )
    return OPTION.fill(shape, found, path, metadata=_metadata(shape, found, path))


def _metadata(shape: ShapeReader, found: Lookup[str, Node], path: Path) -> dict[str, Json]:
    metadata = shape.json_object(found.get("metadata"), (*path, "metadata"))
    if "handler" in found:
        if "handler" in metadata:
            shape.note(
                found["handler"], msg("the handler stands in the metadata too; keep one of them")
            )
        metadata["handler"] = shape.text(found["handler"], (*path, "handler"))
    return metadata


ASKING: Final = Keys(
    Asking,
    {**READERS, InteractionType | None: _type, tuple[InteractionOption, ...]: _options},
    without=("escalate_after", "escalate_to"),
    besides=("escalate",),
    short={"default": "default_option_id"},
)
OPTION: Final = Keys(
    InteractionOption,
    {**READERS, InteractionAction: _action},
    like={"label": "option_id"},
    besides=("handler",),
    short={"id": "option_id"},
)
