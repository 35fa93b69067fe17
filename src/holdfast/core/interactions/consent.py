"""What a person consented to: this call of this version of this tool with these bytes."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.language.strict import canonical_json, digest
from holdfast.model.values import Json


def bind_consent(call: str, tool: str, version: str, args: Mapping[str, Json]) -> str:
    return digest([call, tool, version, canonical_json(dict(args))])


def call_name(run_id: str, step_id: str, firing: int) -> str:
    """The call that consent is bound to: one firing of one step, and no other."""
    return f"{run_id}:{step_id}:{firing}"
