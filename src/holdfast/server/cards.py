"""Questions as JSON shows them: beside an author's words ours, in the reader's language.

What their programs go by (ids, actions, context, metadata) stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.i18n.spoken import asked, labelled
from holdfast.interactions.cards import consequence, request_to_wire
from holdfast.model.interaction import InteractionOption, InteractionRequest


def card(request: InteractionRequest, language: str = "en") -> dict[str, Any]:
    """A question as the wire has it, with what each of its options does."""
    wire = request_to_wire(request)
    said = {name: asked(wire[name], language) for name in ("title", "message", "details")}
    offered = zip(request.options, wire["options"], strict=True)
    options = [_offered(request, *one, language) for one in offered]
    return {**wire, **said, "options": options, **_form(wire, language)}


def _offered(
    request: InteractionRequest, option: InteractionOption, wire: Mapping[str, Any], language: str
) -> dict[str, Any]:
    said = {
        name: labelled(wire[name], language) for name in ("label", "description", "inputPrompt")
    }
    return {**wire, **said, "consequence": asked(consequence(request, option), language)}


def _form(wire: Mapping[str, Any], language: str) -> dict[str, Any]:
    if "form" not in wire:
        return {}
    return {"form": {name: _field(one, language) for name, one in wire["form"].items()}}


def _field(field: Mapping[str, Any], language: str) -> dict[str, Any]:
    said = {
        name: labelled(field[name], language) for name in ("label", "description") if name in field
    }
    return {**field, **said}
