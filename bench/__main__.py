"""`python -m bench`: measure, print, and leave the report in bench/results.

After all works the budget of a step is counted (`budget.py`). A look at single works (`--only`)
prints and leaves the last report as it is.
"""

from __future__ import annotations

import argparse
import json
import sys

from bench import budget, plot, report, schedule
from bench.child import PEERS_PYTHON, ROOT
from bench.works import SYSTEMS, WORKS, chosen

RESULTS = ROOT / "bench" / "results"


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    systems = [name for name in SYSTEMS if name in (options.systems or SYSTEMS)]
    if set(systems) - {"holdfast", "raw"} and not PEERS_PYTHON.exists():
        print("bench: the peers have no environment yet; run: make bench-setup", file=sys.stderr)
        return 2
    works = chosen(quick=options.quick, only=options.only or [])
    RESULTS.mkdir(exist_ok=True)
    pace = schedule.QUICK if options.quick else schedule.FULL
    outcomes, raws = schedule.measure(works, systems, pace, RESULTS)
    figures = schedule.figures(works, systems, outcomes, raws)
    text = report.markdown(works, systems, figures, outcomes, raws)
    counts = {} if options.quick or options.only else budget.measured()
    text += "\n" + budget.markdown(counts) if counts else ""
    if not options.only:
        (RESULTS / "report.json").write_text(report.as_json(figures, outcomes, raws, counts))
        (RESULTS / "report.md").write_text(text)
        (RESULTS / "plot.svg").write_text(plot.draw(works, figures))
    print(json.dumps(figures) if options.json else text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Holdfast beside its peers."
    )
    parser.add_argument(
        "--quick", action="store_true", help="the main figures, in three minutes at most"
    )
    parser.add_argument("--json", action="store_true", help="print {work: {system: figure}}")
    names = [work.name for work in WORKS]
    parser.add_argument(
        "--only", action="append", choices=names, metavar="WORK", help="one work; may be repeated"
    )
    parser.add_argument("--systems", type=_systems, help="some of: " + ",".join(SYSTEMS))
    return parser


def _systems(text: str) -> list[str]:
    wanted = text.split(",")
    if unknown := set(wanted) - set(SYSTEMS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return wanted


if __name__ == "__main__":
    sys.exit(main())
