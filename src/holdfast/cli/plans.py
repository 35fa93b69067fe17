"""Commands on plans: run one, check them, draw one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, SetOption, Settings, WaitOption, problem_json

if TYPE_CHECKING:
    from holdfast.cli.opening import Opened
    from holdfast.core.plan.compiled import CompiledPlan
    from holdfast.core.plan.state import PlanState
    from holdfast.model.plan import Plan


class GraphFormat(StrEnum):
    SVG = "svg"
    TEXT = "text"


def register(group: typer.Typer) -> None:
    shell.register(group, "run", run)
    shell.register(group, "check", check)
    shell.register(group, "graph", graph)


async def run(
    settings: Settings,
    plan: Annotated[str, typer.Argument(help="A plan's id, or a YAML file.", metavar="PLAN")],
    prompt: Annotated[
        str, typer.Option("--prompt", help="What this run is for, in your own words.")
    ] = "",
    pairs: SetOption = None,
    values: Annotated[
        str | None,
        typer.Option("--values", metavar="JSON", help="The plan's inputs as a JSON object."),
    ] = None,
    wait: WaitOption = True,
) -> int:
    """Start a plan and watch it until it is done, fails, or waits for a person.

    In a terminal a question is asked right here, and the run goes on with the answer.
    """
    from holdfast.cli.driving import Driver
    from holdfast.cli.opening import open_app
    from holdfast.cli.values import read_values
    from holdfast.core.plan.decide import blank

    opened = open_app(settings)
    app, compiled = opened.app, _compiled(opened, plan)
    plan_id = compiled.plan.plan_id
    given = read_values(pairs, values, compiled.plan.inputs.fields, "--values")
    async with app:
        instance = await app.plans.start_plan_by_prompt(prompt, plan_id, values=given)
        driver = Driver(app, settings)
        if wait:
            await driver.see_through(blank(instance.id, compiled))
        return await driver.conclude(instance.id, None if wait else OK)


def check(
    settings: Settings,
    path: Annotated[Path, typer.Argument(help="A plan in YAML, or a directory of them.")],
) -> int:
    """Say everything that is wrong with a plan, each with file, line and column.

    Tools are checked against --tools or --app; without either, calls are not checked.
    """
    from holdfast.cli.checking import find_problems
    from holdfast.cli.screen import print_json, say

    problems, count = find_problems(settings, path)
    if settings.as_json:
        found = [problem_json(one) for one in problems]
        print_json({"ok": not problems, "plans": count, "problems": found})
    elif problems:
        say(*(str(one) for one in problems))
        say(f"{len(problems)} problem{'s' if len(problems) != 1 else ''}")
    else:
        say(f"{count} plan{'s' if count != 1 else ''}: no problems")
    return FAILED if problems else OK


async def graph(
    settings: Settings,
    name: Annotated[
        str, typer.Argument(metavar="PLAN|INSTANCE", help="A plan's id, a YAML file, or a run.")
    ],
    graph_format: Annotated[
        GraphFormat | None,
        typer.Option("--format", help="svg or text. Default: text, or what --output ends with."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the graph to a file."),
    ] = None,
) -> int:
    """Draw a plan, or a run with the status of its tasks."""
    from holdfast.cli.screen import print_json, say
    from holdfast.core.drawing.graph import render_svg, render_text

    plan, state = await _drawn(settings, name)
    suffix = output is not None and output.suffix == ".svg"
    chosen = graph_format or (GraphFormat.SVG if suffix else GraphFormat.TEXT)
    drawn = (render_svg if chosen is GraphFormat.SVG else render_text)(plan, state)
    if output is not None:
        output.write_text(drawn, encoding="utf-8")
    if settings.as_json:
        text = {"file": str(output)} if output else {"graph": drawn}
        print_json({"plan_id": plan.plan_id, "format": chosen.value, **text})
    elif output is not None:
        say(f"{output} has the graph of {plan.plan_id}")
    else:
        typer.echo(drawn.rstrip("\n"))
    return OK


def _is_file(name: str) -> bool:
    path = Path(name)
    return path.is_file() or (path.suffix in (".yaml", ".yml") and not path.is_dir())


def _compiled(opened: Opened, name: str) -> CompiledPlan:
    """The plan of that id; one in a file is read and checked first."""
    from holdfast.cli.loading import load_plan_file

    if not _is_file(name):
        return opened.plan(name)
    plan = load_plan_file(opened.app, Path(name))
    return opened.app.engine.library.current(plan.plan_id)


async def _drawn(settings: Settings, name: str) -> tuple[Plan, PlanState | None]:
    """A run's plan and state, or a plan by itself."""
    from holdfast.cli.opening import AnyEnvironment, full_run_id, open_app, reading
    from holdfast.errors import NotFound
    from holdfast.runtime.machines import as_plan

    if _is_file(name):
        return _read_plan_file(Path(name)), None
    if name.startswith(("inst_", "chat_", "conv_")) or name.isdecimal():
        async with reading(settings) as book:
            state = as_plan(await book.state(full_run_id(name)))
            return state.plan.plan, state
    try:
        return open_app(settings, AnyEnvironment()).plan(name).plan, None
    except NotFound as error:
        raise NotFound(f"{error}; a run is named as inst_000001") from None


def _read_plan_file(file: Path) -> Plan:
    from holdfast.core.source.planfile import read_plan

    return read_plan(file.read_text(encoding="utf-8", errors="replace"), str(file))
