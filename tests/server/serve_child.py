"""A server in a process of its own: `serve_child.py HOME PORT`, to be killed and started again.

Says its token on the first line, once it takes requests. Its one plan is a chain of slow steps.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from chains import chain

from holdfast import Holdfast
from holdfast.server.serving import Serving, serve
from holdfast.server.settings import ServerSettings

STEPS = 12


async def touch() -> dict[str, bool]:
    await asyncio.sleep(0.02)
    return {"ok": True}


async def main(home: Path, port: int) -> None:
    app = Holdfast(home)
    app.tool(touch, idempotent=True)
    app.load_plan_text(chain(STEPS))

    async def ready(serving: Serving) -> None:
        _, token = await serving.services.tokens.issue("client", "service", ["operator"], None)
        sys.stdout.write(f"{token}\n")
        sys.stdout.flush()

    async with app:
        await serve(app, ServerSettings(port=port), ready)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
