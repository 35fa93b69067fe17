"""Commands on backups: take one of a home in use, and make a home of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, Settings

if TYPE_CHECKING:
    from holdfast.views.backups import Fetch, Made, Shown


def register(group: typer.Typer) -> None:
    shell.register(group, "backup", backup, distant=True)
    shell.register(group, "restore", restore)


async def backup(
    settings: Settings,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A directory that is not there yet.")
    ],
    with_key: Annotated[
        bool,
        typer.Option(
            "--with-key",
            help="Put the home's secret.key into the backup: who has it can then read every "
            "secret. Without it keep the key elsewhere: sealed secrets cannot be opened again.",
        ),
    ] = False,
) -> int:
    """Back up a home while it is in use, and verify the copy: every run is replayed.

    The copy is of one moment, and nothing that was acknowledged before is missing. It changes
    nothing and stops nothing. With --url the server sends the copy.
    """
    from holdfast.cli.terminal.counting import counted
    from holdfast.cli.terminal.plain import print_json
    from holdfast.views import backups

    if settings.server is not None:
        if with_key:
            raise typer.BadParameter("--with-key: a server does not send its key. Leave it out.")
        fetch, key, keyed = _from_server(settings), None, "left out"
    else:
        fetch, key, keyed = _from_home(settings, with_key)
    shown = counted(settings)
    made = await backups.make(fetch, target, key, keyed=keyed, shown=shown)
    if settings.as_json:
        from holdfast.views.integrity import to_json

        told = {"backup": str(made.place), **made.manifest}
        print_json({**told, "problems": to_json(made.report)["problems"]})
    else:
        _say(made)
    return OK if made.manifest["sound"] else FAILED


async def restore(
    settings: Settings,
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A directory that `holdfast backup` made.")
    ],
) -> int:
    """Make a home of a backup, and verify it: every run is replayed before the home is there.

    The home (--home) must not exist yet. Where anything is wrong nothing is changed. Stop the home
    that the backup is of before you serve this one: its runs would go on twice.
    """
    from holdfast.cli.terminal.counting import counted
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views import backups, homes

    home = backups.file_of(homes.place_of(settings.home)).parent
    manifest = await backups.restore(source, home, counted(settings))
    missing = manifest["sealed_secrets"] if manifest["key"] == "left out" else 0
    if settings.as_json:
        print_json({"home": str(home), **manifest, "needs_key": bool(missing)})
        return OK
    say(f"{home} is as it was at {manifest['made_at']}", *_counted(manifest))
    if missing:
        say(
            f"  {missing:,} sealed secrets need the key, which is not in the backup: put "
            f"secret.key into {home}, or set HOLDFAST_SECRET_KEY"
        )
    return OK


def _from_home(settings: Settings, with_key: bool) -> tuple[Fetch, Path | None, str]:
    from holdfast.cli.home_reader import journal_path
    from holdfast.views import backups

    database = backups.file_of(journal_path(settings))
    key = backups.key_of(database)
    if with_key and key is None and backups.key_is_variable():
        raise typer.BadParameter("--with-key: the key is in HOLDFAST_SECRET_KEY. Keep that safe.")
    keyed = "included" if key and with_key else "left out"
    if key is None and not backups.key_is_variable():
        keyed = "none"
    return backups.copied_from(database), key if with_key else None, keyed


def _from_server(settings: Settings) -> Fetch:
    from holdfast.cli.server_backend import connected

    async def fetch(target: Path, shown: Shown) -> None:
        assert settings.server is not None
        async with connected(settings.server) as client:
            await client.backup(target, lambda done, total: shown("bytes sent", done, total))

    return fetch


def _say(made: Made) -> None:
    from holdfast.cli.terminal.screen import say

    manifest = made.manifest
    verified = "verified" if manifest["sound"] else "as damaged as its home"
    say(f"{made.place}: {verified}", *_counted(manifest), f"  {_KEY[manifest['key']]}")
    for one in made.report.findings[:10]:
        say(f"  {one.what} {one.name}: {one.problem}")
    if not manifest["sound"]:
        say("  it cannot be restored: `holdfast doctor --integrity` tells what is damaged")


_KEY = {
    "included": "secret.key is in it: who has this backup can read every secret",
    "left out": "the key of its secrets is NOT in it: keep that key (secret.key, or "
    "HOLDFAST_SECRET_KEY) elsewhere, without it no secret can be opened",
    "none": "this home has no key yet, and no secrets",
}


def _counted(manifest: object) -> list[str]:
    assert isinstance(manifest, dict)
    told = ", ".join(f"{count:,} {what}" for what, count in manifest["counts"].items())
    head = manifest["audit_head"]
    return [f"  {told or 'nothing'}", *([f"  audit head: {head}"] if head else [])]
