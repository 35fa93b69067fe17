"""How far a long command is: a line that is written over, where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Callable

from holdfast.cli.shell import Settings

EVERY = 50


def counted(settings: Settings) -> Callable[[str, int, int], None]:
    """Told what is counted, and how many of how many are done."""
    wanted = sys.stderr.isatty() and not settings.as_json
    last = [""]

    def shown(what: str, done: int, total: int) -> None:
        if not wanted or (done != total and done % EVERY):
            return
        if last[0] not in ("", what):
            sys.stderr.write("\n")
        last[0] = "" if done == total else what
        sys.stderr.write(f"\r{done:,} of {total:,} {what}{chr(10) if done == total else ''}")
        sys.stderr.flush()

    return shown
