"""The processes that begin a conversation, and those that die in it (see `conversation_child`)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import warm


class Mortals:
    """The processes that begin anew, and those that will die."""

    def __init__(self) -> None:
        child = str(Path(__file__).parent / "conversation_child.py")
        pipe = subprocess.PIPE
        self.process = warm.Popen([sys.executable, child], stdin=pipe, stdout=pipe, text=True)

    async def order(self, home: Path, **order: object) -> int:
        return await asyncio.to_thread(self.order_now, home, **order)

    def order_now(self, home: Path, **order: object) -> int:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        home.mkdir(exist_ok=True)
        print(json.dumps({"home": str(home), **order}), file=stdin, flush=True)
        return int(stdout.readline())
