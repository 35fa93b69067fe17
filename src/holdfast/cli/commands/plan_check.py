"""Checking plans before they run: everything that is wrong, in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.cli.loading import load_agents, yaml_files
from holdfast.cli.opening import AnyEnvironment, agent_places, app_with_tools
from holdfast.cli.shell import Settings
from holdfast.errors import NotFound, PlanRejected, Problem
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan, parse_plan


def find_problems(settings: Settings, path: Path) -> tuple[list[Problem], int]:
    """The problems of one plan or of a directory's, and how many plans there are."""
    files = yaml_files(path)
    if not files:
        raise NotFound(f"{path} holds no plans: they end with .yaml or .yml")
    catalog = _catalog(settings, path)
    problems: list[Problem] = []
    for file in files:
        try:
            load_plan(file.read_text(encoding="utf-8"), str(file), catalog)
        except PlanRejected as rejected:
            problems += rejected.problems
        except UnicodeDecodeError:
            problems.append(Problem("this is not UTF-8 text", str(file), 1, 1))
    return problems, len(files)


def _catalog(settings: Settings, path: Path) -> Catalog:
    """What the plans may refer to; where no tool is known, calls cannot be judged."""
    app = app_with_tools(settings, AnyEnvironment())
    load_agents(app, agent_places(settings))
    neighbours = yaml_files(path if path.is_dir() else path.parent)
    plans = settings.sources.value("plans")
    known = [*neighbours, *(yaml_files(plans) if plans else ())]
    catalog = app.catalog(also=list(_plan_ids(known)))
    return catalog if catalog.tools else replace(catalog, tools=None)


def _plan_ids(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        parsed = parse_plan(text, str(file))
        if parsed.plan is not None:
            yield parsed.plan.plan_id
