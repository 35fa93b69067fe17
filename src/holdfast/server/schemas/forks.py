"""Forks of instances as the API takes them."""

from __future__ import annotations

from pydantic import Field

from holdfast.server.schemas.runs import Given


class ForkGiven(Given):
    at: int = Field(
        strict=True,
        ge=1,
        description="The event of the instance's history that the new one goes on from.",
        examples=[12],
    )
