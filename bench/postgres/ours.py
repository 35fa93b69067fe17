"""Holdfast: everything in one process, or deciding here and driving in worker processes.

`HOLDFAST_BENCH_WORKERS` says how many; they are `holdfast worker`, started and stopped with the
system, and what they take to start is not timed. Without it this process drives.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.postgres import application, trial
from holdfast.journal.port import QuestionQuery

WORKERS = "HOLDFAST_BENCH_WORKERS"
HOLDFAST = Path(sys.executable).with_name("holdfast")


class Ours:
    packages = ("holdfast",)

    async def open(self, url: str) -> None:
        os.environ["HOLDFAST_DATABASE"] = url
        count = int(os.environ.get(WORKERS, "0"))
        self.workers = [_worker() for _ in range(count)]
        for worker in self.workers:
            await asyncio.to_thread(_wait_ready, worker)
        self.app = application.made(drives=not count)
        self.questions: dict[str, str] = {}
        await self.app.__aenter__()
        if self.app.dispatcher is not None:
            await self.app.dispatcher.ready.wait()

    async def close(self) -> None:
        await self.app.__aexit__(None, None, None)
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.communicate()

    async def chain(self, length: int) -> trial.Run:
        async def run(name: str) -> int:
            instance = await self.app.plans.start_plan_by_prompt(name, f"chain_{length}")
            return int(await _result(instance))

        return run

    async def first(self, run: str) -> float:
        instance = await self.app.plans.start_plan_by_prompt(run, "first")
        return float(await _result(instance))

    async def pause(self, run: str) -> None:
        instance = await self.app.plans.start_plan_by_prompt(run, "paused")
        await instance.wait_until_settled()
        query = QuestionQuery(frozenset({"open"}), run_id=instance.id)
        [row] = await self.app.inbox(query)
        self.questions[run] = row.question_id

    async def answer(self, run: str) -> int:
        instance = await self.app.answer(self.questions[run], option_id="confirm")
        return int(await _result(instance))


async def _result(instance: Any) -> Any:
    await instance.wait_for_completion()
    return instance.get_main_task_instance().context["n"]


def _worker() -> subprocess.Popen[str]:
    command = [str(HOLDFAST), "worker", "bench.postgres.application:app"]
    return subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True)


def _wait_ready(worker: subprocess.Popen[str]) -> None:
    assert worker.stdout is not None
    json.loads(worker.stdout.readline())


if __name__ == "__main__":
    trial.main(Ours())
