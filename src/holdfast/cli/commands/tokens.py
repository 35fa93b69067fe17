"""Commands on tokens: make one, list them, revoke one, make a link that signs a person in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import EXIT_CODES, OK, Settings, optional

if TYPE_CHECKING:
    from holdfast.server.auth.principal import Kind

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

app = typer.Typer(
    name="token",
    help=f"Make, list and revoke what programs and people prove themselves with.\n\n{EXIT_CODES}",
    short_help="Make, list and revoke what programs and people prove themselves with.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RoleOption = Annotated[
    list[str] | None,
    optional(
        "--role",
        "NAME",
        "viewer, operator, approver, author, admin, or one that is asked for. Repeatable.",
    ),
]
GrantOption = Annotated[
    list[str] | None,
    optional(
        "--grant",
        "PLAN=ROLE",
        "A role for one plan or agent alone, as hr_*=operator, or for tool:pay. Repeatable.",
    ),
]


async def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom it is for.")],
    roles: RoleOption = None,
    grants: GrantOption = None,
    service: Annotated[
        bool, typer.Option("--service", help="It is for a program, which can approve nothing.")
    ] = False,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="From now, as 30d or 12h. Default: never."),
    ] = None,
) -> int:
    """Make a token. It is shown this once and never again."""
    from holdfast.cli.commands.credentials import Wanted, token_store
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    if not roles and not grants:
        raise typer.BadParameter("a token without --role or --grant could do nothing.")
    kind: Kind = "service" if service else "person"
    seconds = None if expires is None else read_duration(expires)
    async with token_store(settings, to_write=True) as keys:
        wanted = Wanted(name, roles or [], read_grants(grants), kind)
        made = await keys.create(wanted, seconds)
    if settings.as_json:
        print_json(_dated(made))
        return OK
    say(f"{made['id']} for {_spelled(made)}", f"  {made['token']}")
    say("  keep it now: it is not shown again; HOLDFAST_TOKEN takes it, or --token-file")
    return OK


async def list_tokens(settings: Settings) -> int:
    """List tokens, links and sign-ins that are still good, the oldest first."""
    from holdfast.cli.commands.credentials import token_store
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import print_table, say
    from holdfast.views.stories.text import clock, visible

    async with token_store(settings) as keys:
        found = await keys.all()
    if settings.as_json:
        print_json([_dated(one) for one in found])
    elif not found:
        say("no tokens yet: make one with `holdfast token create NAME --role ROLE`")
    else:
        moments = [
            tuple(clock(one[key], date=True) if one[key] else "" for key in _TIMES) for one in found
        ]
        print_table(
            ("token", "for", "kind", "roles", "made", "last used", "until"),
            [
                (one["id"], visible(one["name"]), _form(one), visible(_roles(one)), *at)
                for one, at in zip(found, moments, strict=True)
            ],
        )
    return OK


_FORMS = {"link": "link", "session": "sign-in"}
_TIMES = ("created_at", "last_used_at", "expires_at")


async def revoke(
    settings: Settings,
    token: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `token list` has it.")],
) -> int:
    """Revoke a token: it signs in no more, nor does a sign-in that came of it."""
    from holdfast.cli.commands.credentials import token_store
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    async with token_store(settings, to_write=True) as keys:
        await keys.revoke(token)
    if settings.as_json:
        print_json({"id": token, "revoked": True})
    else:
        say(f"{token} is revoked")
    return OK


async def link(
    settings: Settings,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Whom it signs in.")
    ] = "owner",
    roles: RoleOption = None,
    grants: GrantOption = None,
) -> int:
    """Make a link that signs one person in, once, within 15 minutes; an admin unless said."""
    from holdfast.cli.commands.credentials import Wanted, token_store
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    async with token_store(settings, to_write=True) as keys:
        held = roles or ([] if grants else ["admin"])
        made = await keys.link(Wanted(name, held, read_grants(grants)))
    if settings.as_json:
        print_json(_dated(made))
    elif made["link"].startswith("/"):
        say("at the server's address, once and within 15 minutes:", f"  {made['link']}")
    else:
        say("to sign in, once and within 15 minutes:", f"  {made['link']}")
    return OK


shell.register(app, "create", create, distant=True)
shell.register(app, "list", list_tokens, distant=True)
shell.register(app, "revoke", revoke, distant=True)
shell.register(app, "link", link, distant=True)


def read_duration(text: str, option: str = "--expires", least: int = 1) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip().lower(), re.ASCII)
    if found is None or int(found[1]) < least:
        raise typer.BadParameter(f"{option} takes a time as 30d, 12h or 90m, not {text!r}.")
    return float(int(found[1]) * SECONDS[found[2]])


def read_grants(pairs: list[str] | None) -> dict[str, list[str]]:
    """`hr_*=operator`, several for one plan too."""
    grants: dict[str, list[str]] = {}
    for pair in pairs or ():
        plan, _, role = pair.rpartition("=")
        if not plan or not role:
            raise typer.BadParameter(f"--grant takes PLAN=ROLE, not {pair!r}.")
        grants.setdefault(plan, []).append(role)
    return grants


def _spelled(made: Mapping[str, Any]) -> str:
    who = "the service " if made["kind"] == "service" else ""
    return f"{who}{made['name']} ({_roles(made)})"


def _roles(one: Mapping[str, Any]) -> str:
    granted = (f"{plan}: {', '.join(roles)}" for plan, roles in one["grants"].items())
    return "; ".join(filter(None, [", ".join(one["roles"]), *granted]))


def _dated(one: Mapping[str, Any]) -> dict[str, Any]:
    from holdfast.language.instants import iso

    return {**one, **{name: iso(one[name]) if one[name] else None for name in _TIMES}}


def _form(one: Mapping[str, Any]) -> str:
    """A token is for a person or a service; a link and a sign-in are always for a person."""
    return str(one["kind"] if one["form"] == "token" else _FORMS[one["form"]])
