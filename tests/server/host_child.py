"""An application with Holdfast mounted, as docs/http.md shows it: `host_child.py HOME PORT`.

Its own route `POST /begin` starts a run. Whatever the run's tool does is a line on stdout. While
the file `held` is in HOME, the tool does not return.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from holdfast import Holdfast

PLAN = """\
plan_id: errand
name: An errand
main_task_id: "001"
tasks: [{task_id: "001", name: An errand}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: run_errand
    success_output: {task_id: "001", status: Done}
"""

HOME = Path(sys.argv[1])
app = Holdfast(HOME)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@app.tool(idempotent=True)
async def run_errand() -> None:
    say("called")
    if (HOME / "held").exists():
        await asyncio.Event().wait()
    say("returned")


app.load_plan_text(PLAN)
web = FastAPI(lifespan=app.lifespan)
web.mount("/holdfast", app.asgi())


@web.post("/begin")
async def begin() -> str:
    return (await app.plans.start_plan_by_prompt("", "errand")).id


if __name__ == "__main__":
    uvicorn.run(web, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
