"""Loading: the plans and agents that stand in files.

A mistake in one file must not keep people from the runs of the others, so such a file is
left out with a warning. Only who asks for what stands in it is told everything that is
wrong. What refers to something that was left out is left out as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.app import Holdfast
from holdfast.errors import PlanRejected, Problem
from holdfast.model.plan import Plan
from holdfast.source.planfile import load_plan, parse_plan


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files with mistakes: what is wrong in each, and in which file each name stands."""

    files: Mapping[Path, PlanRejected] = field(default_factory=dict)
    names: Mapping[str, Path] = field(default_factory=dict)

    def rejected(self, name: str) -> PlanRejected:
        return self.files[self.names[name]]

    def everything(self) -> PlanRejected:
        return PlanRejected([one for each in self.files.values() for one in each.problems])

    def warnings(self) -> Iterator[str]:
        for file, rejected in self.files.items():
            first, *others = rejected.problems
            more = f" (and {len(others)} more)" if others else ""
            yield f"{file} is left out: {first}{more}"


def yaml_files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.yaml"), *path.glob("*.yml")]) if path.is_dir() else [path]


def is_plan_file(name: str) -> bool:
    path = Path(name)
    return path.is_file() or (path.suffix in (".yaml", ".yml") and not path.is_dir())


def load_plan_file(app: Holdfast, file: Path) -> Plan:
    """One plan, or everything that is wrong with it."""
    plan = load_plan(_text(file), str(file), app.catalog())
    app.add_plan(plan)
    return plan


def load_plans(app: Holdfast, places: Sequence[Path]) -> LeftOut:
    files = [file for place in places for file in yaml_files(place)]
    names = {file: name for file in files if (name := _plan_id(file)) is not None}
    rejected: dict[Path, PlanRejected] = {}
    plans: list[Plan] = []
    known_before = -1
    while known_before != len(rejected):
        known_before = len(rejected)
        plans = list(_sound_plans(app, files, names, rejected))
    for plan in plans:
        app.add_plan(plan)
    return LeftOut(rejected, {names[file]: file for file in rejected if file in names})


def _sound_plans(
    app: Holdfast,
    files: Sequence[Path],
    names: Mapping[Path, str],
    rejected: dict[Path, PlanRejected],
) -> Iterator[Plan]:
    """The plans that may refer to each other; what is wrong with the others is noted."""
    remaining = [file for file in files if file not in rejected]
    catalog = app.catalog(also=[names[file] for file in remaining if file in names])
    for file in remaining:
        try:
            yield load_plan(_text(file), str(file), catalog)
        except PlanRejected as error:
            rejected[file] = error


def load_agents(app: Holdfast, places: Sequence[Path]) -> LeftOut:
    """Agents may hand work to those of other files, so what fails is tried again."""
    waiting = [file for place in places for file in yaml_files(place)]
    while True:
        rejected = _rejected_agents(app, waiting)
        if len(rejected) in (0, len(waiting)):
            return LeftOut(rejected)
        waiting = list(rejected)


def _rejected_agents(app: Holdfast, files: Sequence[Path]) -> dict[Path, PlanRejected]:
    rejected: dict[Path, PlanRejected] = {}
    for file in files:
        try:
            _text(file)
            app.load_agents(file)
        except PlanRejected as error:
            rejected[file] = error
    return rejected


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PlanRejected([Problem("this is not UTF-8 text", str(file), 1, 1)]) from None


def _plan_id(file: Path) -> str | None:
    parsed = parse_plan(file.read_text(encoding="utf-8", errors="replace"), str(file))
    return None if parsed.plan is None else parsed.plan.plan_id
