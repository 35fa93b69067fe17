"""The server of a bench: PostgreSQL as the tests start it, with the disk waited for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench.child import ROOT

if TYPE_CHECKING:
    from postgresql_server import Server


def private_server(**settings: object) -> Server:
    """Not started yet; it ends with this process."""
    sys.path.append(str(ROOT / "tests"))
    from postgresql_server import Server

    return Server(**settings)


def migrated_database(server: Server) -> str:
    """The URL of a new database with Holdfast's schema."""
    from postgresql_server import migrated

    return server.create_database(migrated)
