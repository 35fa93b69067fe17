"""The commands of an installation on PostgreSQL: its workers, and its schema."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import COMMON, OK, Settings, options_of
from holdfast.settings.sources import in_effect


def register(group: typer.Typer) -> None:
    shell.register(group, "worker", worker, options={**COMMON, **options_of("worker")})
    shell.register(group, "migrate", migrate, options={**COMMON, **options_of("migrate")})


def worker(
    settings: Settings,
    module: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:NAME]", help="Your Holdfast object; as --app."),
    ] = None,
    **flags: Any,
) -> int:
    """Drive the runs of a PostgreSQL database; any number of workers share the work.

    The database is the one that HOLDFAST_DATABASE names. Ctrl-C or SIGTERM lets what is in flight
    end and hands the runs to other workers.
    """
    import asyncio

    import uvloop

    from holdfast.cli.commands.serve import conversing, with_module
    from holdfast.cli.opening import open_app
    from holdfast.cli.terminal.plain import print_json_line
    from holdfast.cli.terminal.screen import say
    from holdfast.server.working import work

    settings = with_module(settings, module)
    sources = in_effect(flags)
    app = open_app(settings).app
    shell.write_logs_unless_done(settings)
    app.concurrency, app.grace = sources.value("concurrency"), sources.value("grace")
    health_host, health_port = sources.value("health_host"), sources.value("health_port")

    async def say_ready(port: int | None) -> None:
        import os

        if settings.as_json:
            print_json_line({"pid": os.getpid(), "health_port": port})
            return
        say(f"driving runs of {app.place}, up to {app.concurrency} at a time")
        if port is not None:
            say(f"  healthy: http://{health_host}:{port}/readyz")
        say("  Ctrl-C stops it")

    loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with conversing(app, sources), loop as runner:
        runner.run(
            work(
                app,
                host=health_host,
                health_port=health_port,
                on_ready=say_ready,
                on_stop=partial(shell.say_stopping, settings),
            )
        )
    return OK


async def migrate(settings: Settings, **flags: Any) -> int:
    """Bring a PostgreSQL database to this version's schema, or make it in an empty one.

    Run it once before servers and workers of a new version start. Migrations only go forward.
    """
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views.homes import migrated

    place, steps, schema = await migrated(in_effect(flags).value("database"))
    if settings.as_json:
        print_json({"database": place, "steps": steps, "schema": schema})
    elif steps:
        say(f"{place} is ready: schema {schema}")
    else:
        say(f"{place} was up to date: schema {schema}")
    return OK
