"""What those who ask a model one thing need of `ModelClient`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.model.message import ModelReply, ToolOffer


class Thinker(Protocol):
    """The part of `ModelClient` that is needed here."""

    @property
    def default_model(self) -> Any: ...

    async def request(
        self,
        model: Any,
        *,
        system: str,
        messages: Sequence[Any],
        tools: Sequence[ToolOffer],
    ) -> ModelReply: ...
