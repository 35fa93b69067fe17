"""The commands of an installation on PostgreSQL: its workers, and its schema."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, Settings, optional


def register(group: typer.Typer) -> None:
    shell.register(group, "worker", worker)
    shell.register(group, "migrate", migrate)


def worker(
    settings: Settings,
    module: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:NAME]", help="Your Holdfast object; as --app."),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            envvar="HOLDFAST_CONCURRENCY",
            help="How many runs it drives at a time.",
        ),
    ] = 100,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="S",
            min=0.0,
            envvar="HOLDFAST_GRACE",
            help="How long calls under way may take to end when it is told to stop.",
        ),
    ] = 10.0,
    health_port: Annotated[
        int | None,
        optional(
            "--health-port",
            "PORT",
            "Answer /healthz and /readyz here; 0 takes a port that is free.",
            envvar="HOLDFAST_HEALTH_PORT",
        ),
    ] = None,
    health_host: Annotated[
        str,
        typer.Option(
            "--health-host", envvar="HOLDFAST_HEALTH_HOST", help="The address of the health port."
        ),
    ] = "127.0.0.1",
) -> int:
    """Drive the runs of a PostgreSQL database; any number of workers share the work.

    The database is the one that HOLDFAST_DATABASE names. Ctrl-C or SIGTERM lets what is in flight
    end and hands the runs to other workers.
    """
    import asyncio

    import uvloop

    from holdfast.cli.commands.serve import with_module
    from holdfast.cli.opening import open_app
    from holdfast.cli.terminal.plain import note, print_json_line
    from holdfast.cli.terminal.screen import say
    from holdfast.server.working import work

    settings = with_module(settings, module)
    app = open_app(settings).app
    app.concurrency, app.grace = concurrency, grace

    async def say_ready(port: int | None) -> None:
        import os

        if settings.as_json:
            print_json_line({"pid": os.getpid(), "health_port": port})
            return
        say(f"driving runs of {app.place}, up to {concurrency} at a time")
        if port is not None:
            say(f"  healthy: http://{health_host}:{port}/readyz")
        say("  Ctrl-C stops it")

    def say_stopping() -> None:
        if not settings.as_json:
            note("stopping: what is in flight ends first (Ctrl-C again leaves at once)")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(
            work(
                app,
                host=health_host,
                health_port=health_port,
                on_ready=say_ready,
                on_stop=say_stopping,
            )
        )
    return OK


async def migrate(
    settings: Settings,
    database: Annotated[
        str | None, optional("--database", "URL", "Default: the one of HOLDFAST_DATABASE.")
    ] = None,
) -> int:
    """Bring a PostgreSQL database to this version's schema, or make it in an empty one.

    Run it once before servers and workers of a new version start. Migrations only go forward.
    """
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views.homes import migrated

    place, steps, schema = await migrated(database)
    if settings.as_json:
        print_json({"database": place, "steps": steps, "schema": schema})
    elif steps:
        say(f"{place} is ready: schema {schema}")
    else:
        say(f"{place} was up to date: schema {schema}")
    return OK
