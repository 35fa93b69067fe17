"""Commands on plans: run one, check them, draw one, and the schemas of their files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, SetOption, Settings, WaitOption, problem_json

if TYPE_CHECKING:
    from holdfast.core.plan.state import PlanState
    from holdfast.model.plan import Plan


class GraphFormat(StrEnum):
    SVG = "svg"
    TEXT = "text"


class FileKind(StrEnum):
    PLAN = "plan"
    TOOL = "tool"
    AGENT = "agent"


def register(group: typer.Typer) -> None:
    shell.register(group, "run", run, distant=True)
    shell.register(group, "check", check)
    shell.register(group, "graph", graph, distant=True)
    shell.register(group, "schema", schema)


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
    from holdfast.cli.driver import Driver
    from holdfast.cli.opening import backend_of
    from holdfast.cli.values import read_values
    from holdfast.core.plan.decide import blank

    backend = backend_of(settings)
    compiled = await backend.plan(plan)
    given = read_values(pairs, values, compiled.plan.inputs.fields, "--values")
    async with backend.entered():
        run_id = await backend.start(compiled, prompt, given)
        driver = Driver(backend, settings)
        if wait:
            await driver.see_through(blank(run_id, compiled))
        return await driver.conclude(run_id, None if wait else OK)


def check(
    settings: Settings,
    path: Annotated[Path, typer.Argument(help="A plan in YAML, or a directory of them.")],
) -> int:
    """Say everything that is wrong with a plan, each with file, line and column.

    Tools are checked against --tools or --app; without either, calls are not checked.
    """
    from holdfast.cli.commands.plan_check import find_problems
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

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
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.drawing.graph import render_svg, render_text

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


def schema(
    settings: Settings,
    kind: Annotated[
        FileKind | None,
        typer.Argument(metavar="[plan|tool|agent]", help="Which file. Default: all, by kind."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the schema to a file."),
    ] = None,
) -> int:
    """Print the JSON Schema of plan, tool or agent files, for an editor to check them by."""
    from holdfast.cli.terminal.plain import json_text, print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.source.schemas import agent_schema, plan_schema
    from holdfast.work.tool_schema import tool_schema

    makers = {
        FileKind.PLAN: plan_schema,
        FileKind.TOOL: tool_schema,
        FileKind.AGENT: agent_schema,
    }
    made = makers[kind]() if kind else {each.value: make() for each, make in makers.items()}
    if output is None:
        print_json(made)
        return OK
    output.write_text(json_text(made, indent=2) + "\n", encoding="utf-8")
    if settings.as_json:
        print_json({"file": str(output)})
    else:
        say(f"{output} has the schema of {kind.value if kind else 'plan, tool and agent'} files")
    return OK


async def _drawn(settings: Settings, name: str) -> tuple[Plan, PlanState | None]:
    """A run's plan and state, or a plan by itself."""
    from holdfast.cli.home_journal import full_run_id
    from holdfast.cli.home_reader import reading
    from holdfast.cli.loading import is_plan_file
    from holdfast.cli.opening import AnyEnvironment, backend_of
    from holdfast.errors import NotFound
    from holdfast.runtime.machines import as_plan

    if is_plan_file(name):
        return _read_plan_file(Path(name)), None
    if name.startswith(("inst_", "chat_", "conv_")) or name.isdecimal():
        async with reading(settings) as reader:
            state = as_plan(await reader.state(full_run_id(name)))
            return state.plan.plan, state
    backend = backend_of(settings, AnyEnvironment())
    try:
        return (await backend.plan(name)).plan, None
    except NotFound as error:
        raise NotFound(f"{error}; a run is named as inst_000001") from None


def _read_plan_file(file: Path) -> Plan:
    from holdfast.source.planfile import read_plan

    return read_plan(file.read_text(encoding="utf-8", errors="replace"), str(file))
