"""`python -m bench.postgres`: measure, print, and leave the figures in bench/results."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.child import PEERS_PYTHON, ROOT, Outcome, Session
from bench.postgres import raw
from bench.postgres.ours import WORKERS as WORKERS_VARIABLE
from bench.postgres.server import migrated_database, private_server
from bench.postgres.works import IN_PROCESS, MARKS, PEERS, PROBES, SYSTEMS, WORKERS, WORKS
from bench.report import machine

if TYPE_CHECKING:
    from postgresql_server import Server

RESULTS = ROOT / "bench" / "results"
ROUNDS, QUICK_ROUNDS = 5, 1
RAW_SECONDS = 1.0
PATIENCE = 180.0
MODULES = dict.fromkeys((IN_PROCESS, *WORKERS), "bench.postgres.ours")
MODULES |= {peer: f"bench.postgres.{peer}_peer" for peer in PEERS}

Figures = dict[str, dict[str, float | None]]


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    systems = [name for name in SYSTEMS if name in (options.systems or SYSTEMS)]
    if set(systems) & set(PEERS) and not PEERS_PYTHON.exists():
        print("bench: the peers have no environment yet; run: make bench-setup", file=sys.stderr)
        return 2
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    with private_server() as server:
        outcomes = _measure(server, systems, rounds)
        figures = _figures(systems, outcomes)
    text = _markdown(systems, figures, outcomes, rounds)
    if not options.systems:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "postgres.md").write_text(text)
        (RESULTS / "postgres.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures) if options.json else text)
    return 0


def _measure(server: Server, systems: list[str], rounds: int) -> dict[str, Outcome]:
    outcomes = {name: Outcome() for name in systems}
    urls = {
        name: migrated_database(server)
        if name in (IN_PROCESS, *WORKERS)
        else server.create_database()
        for name in systems
    }
    beside = server.create_database()
    for _ in range(rounds):
        for name in systems:
            commits = raw.commits_per_second(beside, RAW_SECONDS)
            if "raw" in outcomes:
                outcomes["raw"].hear({"figures": {"chain_100": commits, "chain_1000": commits}})
            if name != "raw":
                with _session(name, urls[name], outcomes[name]) as session:
                    for probe in PROBES:
                        if session.alive:
                            session.ask(probe, PATIENCE)
    return outcomes


KEY = b64encode(os.urandom(32)).decode()


@contextmanager
def _session(name: str, url: str, outcome: Outcome) -> Iterator[Session]:
    ours = name not in PEERS
    workers = {WORKERS_VARIABLE: str(WORKERS.get(name, 0)), "HOLDFAST_SECRET_KEY": KEY}
    process = subprocess.Popen(
        [
            sys.executable if ours else str(PEERS_PYTHON),
            "-W",
            "ignore",
            "-m",
            MODULES[name],
            json.dumps({"url": url}),
        ],
        cwd=ROOT,
        env={**os.environ, **(workers if ours else {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    session = Session(process, outcome)
    try:
        session.listen("start", PATIENCE)
        yield session
    finally:
        try:
            process.communicate(timeout=PATIENCE if session.alive else 1.0)
        finally:
            process.kill()
            process.communicate()


def _figures(systems: list[str], outcomes: dict[str, Outcome]) -> Figures:
    return {
        work.name: {
            system: round(statistics.median(samples), 2)
            if (samples := outcomes[system].samples.get(work.name))
            else None
            for system in systems
        }
        for work in WORKS
    }


def _markdown(
    systems: list[str], figures: Figures, outcomes: dict[str, Outcome], rounds: int
) -> str:
    lines = ["# Holdfast on PostgreSQL beside its peers", ""]
    lines += [_row(["work", "unit", *systems]), _row(["---"] * (len(systems) + 2))]
    for work in WORKS:
        cells = [_number(figures[work.name][system]) for system in systems]
        lines.append(_row([work.title, work.unit, *cells]))
    lines += ["", _row(["mark", "wanted", "reached", ""]), _row(["---"] * 4)]
    for mark in MARKS:
        if mark.system in systems and (reached := mark.reached(figures)) is not None:
            than, unit = (f" : {mark.peer}", "x") if mark.peer else ("", " ms")
            verdict = "" if mark.holds(reached) else "**missed**"
            told = [f"{mark.work} {mark.system}{than}", f"{mark.wanted:g}{unit}"]
            lines.append(_row([*told, f"{reached:.3g}{unit}", verdict]))
    commits = outcomes["raw"].samples.get("chain_100", []) if "raw" in outcomes else []
    lines += ["", f"Medians of {rounds} rounds.", ""]
    lines += [f"- {key}: {value}" for key, value in machine().items() if key != "sqlite"]
    if commits:
        spread = f"{min(commits):,.0f} to {max(commits):,.0f} in {len(commits)} samples"
        lines.append(f"- raw commits per second: {spread}")
    for name, outcome in outcomes.items():
        told = ", ".join(f"{key} {value}" for key, value in outcome.versions.items())
        lines += [f"- {name}: {told}"] if told else []
        lines += [f"  - {problem}" for problem in outcome.problems]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(figure: float | None) -> str:
    if figure is None:
        return "–"
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.postgres", description="Holdfast on PostgreSQL beside its peers."
    )
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, help=f"how many; {ROUNDS} unless said")
    parser.add_argument("--json", action="store_true", help="print {work: {system: figure}}")
    parser.add_argument("--systems", type=_systems, help="some of: " + ",".join(SYSTEMS))
    return parser


def _systems(text: str) -> list[str]:
    wanted = text.split(",")
    if unknown := set(wanted) - set(SYSTEMS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return wanted


if __name__ == "__main__":
    sys.exit(main())
