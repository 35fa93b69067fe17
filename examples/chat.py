"""A chat with a clerk who pays invoices, and asks before every payment.

    python examples/chat.py

It needs no key: without HOLDFAST_MODEL a scripted model plays the clerk. In a terminal you decide
about the payment; elsewhere it is approved, so that the example runs to its end.
"""
# ruff: noqa: T201

from __future__ import annotations

import asyncio
import os
import sys

from holdfast import AgentEventType, AgentExecutionEvent, Holdfast
from holdfast.testing.model_script import call, say
from holdfast.testing.scripted_model import RuleModel

SCRIPT = RuleModel(
    [
        (lambda seen: bool(seen.results) and seen.results[0].failed, "Then I pay nothing."),
        (lambda seen: bool(seen.results), "Paid 42 to Will Zhang."),
        ("", say("One moment.", call("pay", to="Will Zhang", amount=42))),
    ]
)

app = Holdfast.in_memory(model=os.environ.get("HOLDFAST_MODEL") or SCRIPT)


@app.tool(approval="require")
async def pay(to: str, amount: int) -> dict[str, int]:
    """Pay an amount to somebody."""
    return {"paid": amount}


app.agent("clerk", name="Clerk", system_context="You pay invoices.", tools=["pay"])


async def main() -> None:
    async with app:
        session = await app.sessions.open("clerk")
        print("You: Please pay 42 to Will Zhang.")
        await app.sessions.say(session.id, "Please pay 42 to Will Zhang.")
        async for event in app.sessions.subscribe(session.id):
            await follow(event)


async def follow(event: AgentExecutionEvent) -> None:
    match event.type:
        case AgentEventType.ACTING:
            print(f"Clerk: {event.data['text']}")
        case AgentEventType.INTERACTION:
            option_id, words = await decide(event)
            await app.answer(event.data["requestId"], option_id=option_id, feedback=words)
        case AgentEventType.COMPLETED:
            print(f"Clerk: {event.data['answer']}")
        case AgentEventType.ERROR:
            print(event.data["message"], file=sys.stderr)


async def decide(event: AgentExecutionEvent) -> tuple[str, str | None]:
    """The option, and the reason where it is refused."""
    print(f"{event.data['title']} {event.data['context']['args']}")
    if not sys.stdin.isatty():
        print("(approved, because nobody is at the terminal)")
        return "approve", None
    words = await asyncio.to_thread(input, "Enter to approve, or say why not: ")
    return ("reject", words) if words.strip() else ("approve", None)


if __name__ == "__main__":
    asyncio.run(main())
