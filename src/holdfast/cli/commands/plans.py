"""Commands on plans: run one, check them, draw one, and the schemas of their files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, SetOption, Settings, WaitOption, problem_json

if TYPE_CHECKING:
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

    backend = backend_of(settings)
    found = await backend.plan(plan)
    given = read_values(pairs, values, found.inputs.fields, "--values")
    async with backend.opened():
        run_id = await backend.start(found.plan_id, prompt, given)
        driver = Driver(backend, settings)
        if wait:
            await driver.see_through(await backend.run(run_id), after=0)
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

    suffix = output is not None and output.suffix == ".svg"
    chosen = graph_format or (GraphFormat.SVG if suffix else GraphFormat.TEXT)
    plan_id, drawn = await _drawn(settings, name, svg=chosen is GraphFormat.SVG)
    if output is not None:
        output.write_text(drawn, encoding="utf-8")
    if settings.as_json:
        text = {"file": str(output)} if output else {"graph": drawn}
        print_json({"plan_id": plan_id, "format": chosen.value, **text})
    elif output is not None:
        say(f"{output} has the graph of {plan_id}")
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


async def _drawn(settings: Settings, name: str, *, svg: bool) -> tuple[str, str]:
    """The id of a plan, and the plan drawn by itself or with the status of a run's tasks."""
    from holdfast.cli.home_reader import reading
    from holdfast.cli.loading import is_plan_file
    from holdfast.cli.values import full_run_id
    from holdfast.drawing.graph import render_svg, render_text

    is_file = is_plan_file(name)
    if not is_file and (name.startswith(("inst_", "chat_", "conv_")) or name.isdecimal()):
        async with reading(settings) as reader:
            return await reader.graph(full_run_id(name), svg=svg)
    plan = _read_plan_file(Path(name)) if is_file else await _plan_of(settings, name)
    return plan.plan_id, (render_svg if svg else render_text)(plan)


async def _plan_of(settings: Settings, name: str) -> Plan:
    from holdfast.cli.opening import AnyEnvironment, backend_of
    from holdfast.errors import NotFound

    try:
        return await backend_of(settings, AnyEnvironment()).plan(name)
    except NotFound as error:
        raise NotFound(f"{error}; a run is named as inst_000001") from None


def _read_plan_file(file: Path) -> Plan:
    from holdfast.source.planfile import read_plan

    return read_plan(file.read_text(encoding="utf-8", errors="replace"), str(file))
