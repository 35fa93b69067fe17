"""Questions as JSON shows them: beside an author's words ours, in the reader's language.

What their programs go by (ids, actions, context, metadata) stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.i18n.catalogue import said
from holdfast.interactions.cards import consequence, request_to_wire
from holdfast.model.interaction import InteractionOption, InteractionRequest


def card(request: InteractionRequest, language: str = "en") -> dict[str, Any]:
    """A question as the wire has it, with what each of its options does."""
    wire = request_to_wire(request)
    told = {name: said(wire[name], language) for name in ("title", "message", "details")}
    offered = zip(request.options, wire["options"], strict=True)
    options = [_offered(request, *one, language) for one in offered]
    return {**wire, **told, "options": options, **_form(wire, language)}


def _offered(
    request: InteractionRequest, option: InteractionOption, wire: Mapping[str, Any], language: str
) -> dict[str, Any]:
    told = {name: said(wire[name], language) for name in ("label", "description", "inputPrompt")}
    return {**wire, **told, "consequence": said(consequence(request, option), language)}


def _form(wire: Mapping[str, Any], language: str) -> dict[str, Any]:
    if "form" not in wire:
        return {}
    return {"form": {name: _field(one, language) for name, one in wire["form"].items()}}


def _field(field: Mapping[str, Any], language: str) -> dict[str, Any]:
    told = {name: said(field[name], language) for name in ("label", "description") if name in field}
    return {**field, **told}
