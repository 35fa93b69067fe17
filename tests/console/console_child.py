"""A server with the console in a process of its own: `console_child.py HOME PORT held|open`.

Says the secret of a link on its first line, once it takes requests. While it is `held`, the
tool that the plan `hold` calls never returns; one that is `open` finds that call in its journal
and carries it out. It also has the plan of `HOME/travel.yaml`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from console_plans import HOLD

from holdfast import Holdfast
from holdfast.console import install
from holdfast.server.serving import Serving, serve
from holdfast.server.settings import ServerSettings


async def main(home: Path, port: int, held: bool) -> None:
    app = Holdfast(home, max_retry_count=0)

    @app.tool(idempotent=True)
    async def hold_door() -> dict[str, Any]:
        if held:
            await asyncio.Event().wait()
        return {"success": True}

    for text in (HOLD, (home / "travel.yaml").read_text("utf-8")):
        app.load_plan_text(text)

    async def ready(serving: Serving) -> None:
        _, secret = await serving.services.tokens.new_link("Will Zhang")
        sys.stdout.write(f"{secret}\n")
        sys.stdout.flush()

    async with app:
        await serve(app, ServerSettings(port=port), ready, install=install)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "held"))
