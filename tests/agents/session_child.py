"""Processes made to be killed: each line on stdin is a session to begin and the place to die in.

Everything is imported once; then each order forks a process of its own, which opens the real
journal, talks with the clerk, answers what is asked and goes on until the named fault point
kills it. One line per order tells how that process ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pydantic_ai.direct  # noqa: F401 - so that no order has to wait for it
from session_scenes import answering, begin, clerks_office

from holdfast.app import Holdfast
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.testing.faults import CountFaults, KillAt

REPORT = "report.json"


async def agree(app: Holdfast, request: InteractionRequest) -> None:
    """Consent to what is shown, and say what is missing."""
    if request.type is InteractionType.TOOL_APPROVAL:
        await app.answer(request.request_id, option_id="approve", by="will.zhang")
    else:
        await app.answer(request.request_id, data={"color": "red"}, by="will.zhang")


async def live(order: dict[str, Any]) -> None:
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    app, _ = clerks_office(Path(order["home"]), faults=faults)
    async with app:
        known = order.get("session")
        agent = order.get("agent", "clerk")
        session = await (app.sessions.session(known) if known else begin(app, agent_id=agent))
        if order.get("die") == "paused":
            await session.wait_until_settled(20)
            os.kill(os.getpid(), signal.SIGKILL)
        await answering(app, session, partial(agree, app))
    report = {"status": session.status, "reached": dict(counting.reached)}
    (Path(order["home"]) / REPORT).write_text(json.dumps(report))


def carry_out(order: dict[str, Any]) -> int:
    """The exit status of the process that carried it out, negative for the signal it died of."""
    child = os.fork()
    if child == 0:
        asyncio.run(live(order))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    for line in sys.stdin:
        print(carry_out(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
