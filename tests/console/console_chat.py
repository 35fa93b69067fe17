"""The clerk that the console's tests talk to: it pays with consent, and says what it is told.

What it says is a script, so every test knows it; a reply that `holds` comes out only as far as
the test lets it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from console_plans import Office, an_office
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls

from holdfast.testing.model_script import Entry, Seen, call, fail, say
from holdfast.testing.scripted_model import ScriptedModel

CODE = 'Look:\n\n```python\nprint("<b>hi</b>")\n```\n\nThat is all.'
SCRIPT = (
    '<script>document.title = "stolen"</script><img src=x onerror="document.title=1">'
    "**bold** \u202etxt.exe\u202c\x07"
)


@dataclass
class Clerk:
    """Answers by what was said; `broken` makes the provider fail."""

    broken: bool = False
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, seen: Seen) -> Entry:
        if self.broken:
            return fail(400, "the provider is out of order")
        if seen.results:
            told = [json.dumps(one.content, ensure_ascii=False) for one in seen.results]
            return f"Done: {', '.join(told)}"
        match seen.asked.split():
            case ["pay", *amounts]:
                calls = [call("pay", to="Will Zhang", amount=int(one)) for one in amounts]
                return say("I will pay.", *calls)
            case ["code"]:
                return CODE
            case ["markup"]:
                return SCRIPT
            case ["wait"]:
                return call("hold_door")
        return f"You said: {seen.asked}"


class HeldModel(ScriptedModel):
    """Says the first half of a reply to `slowly …`, and the rest when it is let."""

    def __init__(self, clerk: Clerk) -> None:
        super().__init__(clerk)
        self._clerk = clerk

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        pieces = [one async for one in super()._stream(messages, info)]
        half = len(pieces) // 2
        for place, piece in enumerate(pieces):
            if place == half and "slowly" in "".join(map(str, pieces)):
                await self._clerk.held.wait()
            yield piece


class Bank(Office):
    """An office with a clerk, and what has really been paid."""

    clerk: Clerk
    paid: list[int]


def a_bank(*, model: bool = True, **options: Any) -> Bank:
    bank = an_office(**options)
    bank.__class__ = Bank
    assert isinstance(bank, Bank)
    bank.clerk, bank.paid = Clerk(), []

    @bank.tool(approval="require")
    async def pay(to: str, amount: int) -> dict[str, Any]:
        """Pay somebody."""
        bank.paid.append(amount)
        return {"paid": amount, "to": to}

    bank.agent(
        "clerk",
        name="Clerk",
        description="Pays bills, and asks before it does.",
        tools=["pay", "hold_door"],
    )
    if model:
        bank.models.default_model = HeldModel(bank.clerk)
    return bank
