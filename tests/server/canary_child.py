"""A server that tells whatever it can: `canary_child.py HOME NOTES MODEL_URL`.

Every logger writes everything to stderr, and a crash leaves its traces there. Its one tool
takes a code and babbles about it in each way a tool has; in the cellar it brings the
process down, in the attic it says so and hangs. NOTES gets a line with the digest of each code that
really arrived. Says its address and a token on the first line.
"""

from __future__ import annotations

import asyncio
import faulthandler
import hashlib
import logging
import os
import resource
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from holdfast import Holdfast
from holdfast.model.retry import RetryPolicy
from holdfast.server.serving import Serving, serve
from holdfast.server.settings import ServerSettings
from holdfast.work.models import ModelClient

LONGEST = 80
DOORS = ("front", "jammed", "cellar", "attic")

PLAN = """\
plan_id: {door}
name: Unlock a door
main_task_id: "001"
tasks:
  - {{task_id: "001", name: Unlock a door}}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: unlock
    args: {{door: {door}}}
    retry: {{attempts: 1}}
    success_output: {{task_id: "001", status: Done, context: {{said: "{{{{result}}}}"}}}}
"""
GIVEN_AT_THE_START = """
inputs: {code: {type: secret}}
"""
Code = Annotated[str, Field(max_length=LONGEST, json_schema_extra={"format": "password"})]

log = logging.getLogger("office")


class Doors:
    def __init__(self, notes: Path) -> None:
        self._notes = notes

    async def unlock(self, door: str, code: Code) -> dict[str, Any]:
        """Unlock a door."""
        with self._notes.open("a") as notes:
            notes.write(f"{hashlib.sha256(code.encode()).hexdigest()}\n")
        log.warning("somebody is at the %s door with %s", door, code)
        if door == "jammed":
            raise _jammed(code)
        if door == "cellar":
            os.abort()
        if door == "attic":
            sys.stdout.write("in the attic\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        return {"said": f"{door} opens with {code}", "code": code}


def _jammed(code: str) -> Exception:
    error = ValueError(f"{code} does not fit")
    error.__cause__ = KeyError(code)
    error.add_note(f"tried {code} twice")
    return error


async def main(home: Path, notes: Path, model_url: str) -> None:
    models = ModelClient(
        default_model="scripted", base_url=model_url, api_key="test", retry=RetryPolicy(attempts=1)
    )
    app = Holdfast(home, model=models)
    app.planner_agent.max_retry_count = 0
    app.tool(Doors(notes).unlock)
    app.agent("porter", tools=["unlock"])
    for door in DOORS:
        app.load_plan_text(PLAN.format(door=door))
    hall = PLAN.format(door="hall") + GIVEN_AT_THE_START
    app.load_plan_text(hall.replace("{door: hall}", '{door: hall, code: "{001.context.code}"}'))

    async def ready(serving: Serving) -> None:
        _, token = await serving.services.tokens.issue("Will Zhang", "person", ["admin"], None)
        sys.stdout.write(f"{serving.url} {token}\n")
        sys.stdout.flush()

    async with app:
        await serve(app, ServerSettings(port=0), ready, access_log=True)


if __name__ == "__main__":
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.basicConfig(level=1, stream=sys.stderr)
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
