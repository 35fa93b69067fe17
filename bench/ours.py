"""Holdfast itself, answering the same requests as the peers.

A chain is a plan of distinct tasks, each with one tool listener whose tool is an asynchronous,
idempotent function that returns a small object, so it is `chain` and `graph` at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import trial


class Ours:
    packages = ("holdfast",)

    async def open(self, home: Path) -> None:
        raise trial.Unsupported

    async def close(self) -> None:
        raise trial.Unsupported

    async def chain(self, length: int) -> trial.Run:
        raise trial.Unsupported

    async def graph(self, length: int) -> trial.Run:
        return await self.chain(length)

    async def pause(self, run: str) -> None:
        raise trial.Unsupported

    async def answer(self, run: str) -> int:
        raise trial.Unsupported

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        raise trial.Unsupported

    async def recover(self, runs: list[str]) -> int:
        raise trial.Unsupported

    async def durability(self) -> dict[str, Any]:
        raise trial.Unsupported


if __name__ == "__main__":
    trial.main(Ours())
