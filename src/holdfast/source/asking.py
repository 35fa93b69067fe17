"""How people are asked, as authors write it.

An option's `handler` is kept in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping as Lookup
from typing import Final

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
from holdfast.source.shape import ShapeReader

ASKING_KEYS: Final = (
    "title",
    "message",
    "details",
    "type",
    "custom_type",
    "options",
    "required",
    "role",
    "timeout_seconds",
    "default_option_id",
    "reminders",
    "escalate",
)
ESCALATE_KEYS: Final = ("after", "role")
SHORT_KEYS: Final = {"default": "default_option_id"}

OPTION_KEYS: Final = (
    "option_id",
    "action",
    "label",
    "description",
    "default",
    "dangerous",
    "requires_input",
    "input_prompt",
    "metadata",
    "handler",
)
OPTION_SHORT_KEYS: Final = {"id": "option_id"}
OPTION_REQUIRED: Final = ("option_id", "action")
TYPES: Final = {each.value.lower(): each for each in InteractionType}
ACTIONS: Final = {
    "approve": InteractionAction.APPROVE_AND_EXECUTE,
    "retry": InteractionAction.RETRY_WITH_FEEDBACK,
    "reject": InteractionAction.REJECT_WITH_REASON,
    "terminate": InteractionAction.TERMINATE,
    "provide": InteractionAction.PROVIDE_INFO,
    "skip": InteractionAction.SKIP,
} | {each.value.lower(): each for each in InteractionAction}


def read_asking(shape: ShapeReader, node: Node | None, path: Path) -> Asking:
    """The asking at `node`, a mapping; nothing asked for is the usual one."""
    if node is None:
        return Asking()
    found = shape.entries(node, path, known=ASKING_KEYS, short=SHORT_KEYS)
    return asking_from(shape, found, path)


def asking_from(shape: ShapeReader, found: Lookup[str, Node], path: Path) -> Asking:
    """The asking among the entries of its owner, which may have other keys too."""
    after, role = _escalation(shape, found.get("escalate"), (*path, "escalate"))
    return Asking(
        title=shape.text(found.get("title"), (*path, "title")),
        message=shape.text(found.get("message"), (*path, "message")),
        details=shape.text(found.get("details"), (*path, "details")),
        type=shape.meaning(found.get("type"), (*path, "type"), TYPES, any_case=True),
        custom_type=shape.optional_text(found.get("custom_type"), (*path, "custom_type")),
        options=_options(shape, found.get("options"), (*path, "options")),
        required=shape.flag(found.get("required"), (*path, "required"), default=True),
        role=shape.optional_text(found.get("role"), (*path, "role")),
        timeout_seconds=shape.optional_number(
            found.get("timeout_seconds"), (*path, "timeout_seconds")
        ),
        default_option_id=shape.optional_text(
            found.get("default_option_id"), (*path, "default_option_id")
        ),
        reminders=shape.numbers(found.get("reminders"), (*path, "reminders")),
        escalate_after=after,
        escalate_to=role,
    )


def _escalation(
    shape: ShapeReader, node: Node | None, path: Path
) -> tuple[float | None, str | None]:
    if node is None:
        return None, None
    found = shape.entries(node, path, known=ESCALATE_KEYS, required=ESCALATE_KEYS)
    after = shape.optional_number(found.get("after"), (*path, "after"))
    return after, shape.optional_text(found.get("role"), (*path, "role"))


def _options(shape: ShapeReader, node: Node | None, path: Path) -> tuple[InteractionOption, ...]:
    return tuple(
        _option(shape, item, (*path, index)) for index, item in enumerate(shape.items(node, path))
    )


def _option(shape: ShapeReader, node: Node, path: Path) -> InteractionOption:
    found = shape.entries(
        node,
        path,
        known=OPTION_KEYS,
        required=OPTION_REQUIRED,
        short=OPTION_SHORT_KEYS,
    )
    option_id = shape.text(found.get("option_id"), (*path, "option_id"))
    action = shape.meaning(found.get("action"), (*path, "action"), ACTIONS, any_case=True)
    return InteractionOption(
        option_id=option_id,
        label=shape.text(found.get("label"), (*path, "label"), option_id),
        # A stand-in must not be an action that asks for more, as CUSTOM asks for a handler.
        action=action or InteractionAction.SKIP,
        description=shape.text(found.get("description"), (*path, "description")),
        is_default=shape.flag(found.get("default"), (*path, "default")),
        is_dangerous=shape.flag(found.get("dangerous"), (*path, "dangerous")),
        requires_input=shape.flag(found.get("requires_input"), (*path, "requires_input")),
        input_prompt=shape.text(found.get("input_prompt"), (*path, "input_prompt")),
        metadata=_metadata(shape, found, path),
    )


def _metadata(shape: ShapeReader, found: Lookup[str, Node], path: Path) -> dict[str, Json]:
    metadata = shape.json_object(found.get("metadata"), (*path, "metadata"))
    if "handler" in found:
        if "handler" in metadata:
            shape.note(
                found["handler"], msg("the handler stands in the metadata too; keep one of them")
            )
        metadata["handler"] = shape.text(found["handler"], (*path, "handler"))
    return metadata
