"""Commands on the audit: read who did what, and check that no entry was changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import EXIT_CODES, FAILED, OK, Settings

if TYPE_CHECKING:
    from holdfast.model.rows import AuditEntry

_DIGEST = re.compile("[0-9a-f]{64}")

app = typer.Typer(
    name="audit",
    help="Read who did what, when and from where, and check that none of it was changed."
    f"\n\n{EXIT_CODES}",
    short_help="Read who did what, when and from where, and check that none of it was changed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


async def list_entries(
    settings: Settings,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only what was done to this run.")
    ] = None,
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Only what this one did.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="How many, the newest last.")
    ] = 100,
) -> int:
    """List audit records: what was done, by whom, when and from where, the newest last."""
    from holdfast.cli.commands.audit_log import audit_log
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import print_table, say
    from holdfast.cli.values import full_run_id

    run_id = None if run is None else full_run_id(run)
    async with audit_log(settings) as reader:
        found = await reader.newest(limit, who, run_id)
    if settings.as_json:
        print_json([entry_json(one) for one in found])
    elif not found:
        say("nothing has been done here yet" if who is None and run is None else "no such record")
    else:
        print_table(TITLES, [_cells(one) for one in found])
    return OK


async def verify(
    settings: Settings,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="DIGEST",
            help="A head that you have noted: it must still be in the chain.",
        ),
    ] = None,
) -> int:
    """Check the audit chain: say its head and how many records it has, or the first broken entry.

    Note the head somewhere else: with --head it tells later whether any record up to then was
    changed or taken away.
    """
    from holdfast.cli.commands.audit_log import audit_log
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    if head is not None and not _DIGEST.fullmatch(head):
        raise typer.BadParameter(f"--head {head} is no digest: that has 64 of 0-9 and a-f.")
    async with audit_log(settings) as reader:
        verdict = await reader.verify(head)
    if settings.as_json:
        print_json(verdict.to_json())
    elif verdict.problem is not None:
        shell.complain("Audit", verdict.problem, as_json=False)
    else:
        records = f"{verdict.count} record{'s' if verdict.count != 1 else ''}"
        head = f"  head: {verdict.head}" if verdict.head else "  no head yet"
        say(f"{records}, none changed", head)
    return OK if verdict.problem is None else FAILED


shell.register(app, "list", list_entries, distant=True)
shell.register(app, "verify", verify, distant=True)

TITLES = ("number", "when", "who", "from", "did", "to", "run")


def entry_json(entry: AuditEntry) -> dict[str, Any]:
    import json

    from holdfast.language.instants import iso

    record = entry.record
    detail: Mapping[str, Any] = json.loads(record.detail or "{}")
    return {
        "number": entry.number,
        "at": iso(record.at),
        "who": record.who,
        "origin": record.origin,
        "action": record.action,
        "subject": record.subject,
        "run_id": record.run_id,
        "seen": record.seen,
        "detail": dict(detail),
        "previous": entry.previous,
        "digest": entry.digest,
    }


def _cells(entry: AuditEntry) -> tuple[str, ...]:
    from holdfast.views.stories.text import clock, visible

    record = entry.record
    what = (record.who, record.origin, record.action, record.subject, record.run_id)
    return (str(entry.number), clock(record.at, date=True), *(visible(one, 80) for one in what))
