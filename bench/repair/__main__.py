"""`python -m bench.repair`: play all trials under one planner, and tell how they came out.

The exit code is 1 where anything did harm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from bench.repair import report
from bench.repair.judging import Outcome
from bench.repair.person import EVERYTHING, ORACLE
from bench.repair.planners import PLANNERS
from bench.repair.prompts import PROMPTS, Prompt
from bench.repair.scenario import Scenario
from bench.repair.scenarios import SCENARIOS
from bench.repair.trial import Setting, try_prompt, try_scenario
from holdfast.demo.office import Office

TRIALS: Final[tuple[Scenario | Prompt, ...]] = (*SCENARIOS, *PROMPTS)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    setting = Setting(PLANNERS[options.planner], options.approves, options.seed)
    outcomes = asyncio.run(trials(setting, options.only))
    told = {"planner": options.planner, "approves": options.approves, "seed": options.seed}
    if options.json:
        print(json.dumps(report.as_json(told, outcomes), ensure_ascii=False))
    else:
        print(report.as_text(told, outcomes))
    return 1 if any(one.harm for one in outcomes) else 0


async def trials(setting: Setting, only: Collection[str] = ()) -> list[Outcome]:
    """One after the other, each on a home of its own, at one office."""
    wanted = [one for one in TRIALS if not only or one.name in only]
    outcomes = []
    async with Office.start() as office:
        for one in wanted:
            with tempfile.TemporaryDirectory(prefix="holdfast-repair-") as directory:
                outcomes.append(await _tried(one, office, Path(directory), setting))
    return outcomes


async def _tried(one: Scenario | Prompt, office: Office, home: Path, setting: Setting) -> Outcome:
    if isinstance(one, Prompt):
        return await try_prompt(one, office, home, setting)
    return await try_scenario(one, office, home, setting)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.repair", description="Failing runs under one planner."
    )
    parser.add_argument("--planner", choices=PLANNERS, default="today")
    parser.add_argument("--approves", choices=(ORACLE, EVERYTHING), default=ORACLE)
    parser.add_argument("--seed", type=int, default=1, help="of models and of who it is about")
    parser.add_argument("--json", action="store_true", help="print everything for programs")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[one.name for one in TRIALS],
        metavar="NAME",
        help="one scenario or prompt; may be repeated",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
