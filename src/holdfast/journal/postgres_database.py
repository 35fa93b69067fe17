"""A PostgreSQL database as the journal's home: its connections, and what its failures mean.

Connections are taken from a small pool of our own. Before one is used it is asked, without a round
trip, whether the server has closed it meanwhile (on an idle connection the server says nothing but
that it ends): so a restart of the server costs those statements only that were under way. While the
server is away each use tries a new connection, and fails at once or after `CONNECT_SECONDS`.

No connection has a state of its own but prepared statements, and how long a transaction may be
idle, which is the same for all: so they may come from PgBouncer in transaction mode (from 1.21 on).
All integers are sent as bigint, for a statement is prepared
anew for every combination of types, and arrays in binary: as text each quotation mark of every
record would be escaped, which took six times as long.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

from holdfast.errors import HoldfastError, InternalError, JournalUnavailable, OperatorError
from holdfast.journal.port import NOT_OPEN
from holdfast.journal.rows import load_queries

try:
    import psycopg
    from psycopg import AsyncConnection, AsyncRawCursor
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.types.array import ListBinaryDumper
    from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper, Int8Dumper
except ImportError as error:
    raise OperatorError(
        f"a database in PostgreSQL needs packages that are not installed here ({error}): "
        "`pip install 'holdfast[postgres]'`"
    ) from error

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = AsyncConnection[Row]
DatabaseError: TypeAlias = psycopg.Error
"""Whatever a statement may raise; `explain` says what it means."""

CONNECTIONS: Final = 8
"""How many connections one process has at most, beside those that listen."""

CONNECT_SECONDS: Final = 3
STATEMENTS_KEPT: Final = 200

LATER: Final = "It goes on by itself once the database can be reached."
AT_START: Final = "See that the database is there and lets you in from here, and start again."
"""What to do about a database that is away, while it is in use and before."""

IDLE_SECONDS = 10.0
"""How long a transaction waits for its next statement. A process that was stopped in the middle of
one would keep what it has locked, and the horizon of sealing, for as long as it is stopped."""

_LIVELINESS: Final = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}
"""A server that has vanished without a word is noticed within seconds."""


def load_statements(name: str) -> Mapping[str, bytes]:
    """The queries of one file, as psycopg takes them."""
    return {key: text.encode() for key, text in load_queries(name).items()}


def place_of(url: str) -> str:
    """Where a database is, for messages: without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # its words would quote the password
        raise _unreadable() from None
    if _is_torn(url):
        raise _unreadable()
    host = parts.get("host") or "this machine"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"the database {parts.get('dbname') or parts.get('user') or 'postgres'} at {host}{port}"


def _is_torn(url: str) -> bool:
    """Whether a sign in a password ends it too soon, so that what is left names a place."""
    _, separator, rest = url.partition("://")
    user, at, place = rest.partition("@")
    return bool(separator and at) and ("/" in user or "@" in place.partition("?")[0])


def _unreadable() -> OperatorError:
    return OperatorError(
        "the address of the database cannot be read: it should be like "
        "postgresql://user:password@host:5432/name, with %2F, %40 and %25 for /, @ and % in a "
        "password"
    )


def session() -> bytes:
    """What we rely on, whatever an administrator has set for the database: statements of one
    transaction that see what was committed before each, numbers as they were written, and times
    that can be read (psycopg reads those of `ISO` only)."""
    settings = {
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS * 1000:.0f}",
        "default_transaction_isolation": "read committed",
        "extra_float_digits": "1",
        "datestyle": "ISO",
    }
    told = (f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    return f"SELECT {', '.join(told)}".encode()


async def connect(url: str, *, application_name: str = "holdfast", **options: Any) -> Connection:
    """A connection that commits by itself and prepares every statement."""
    given = conninfo_to_dict(url)
    settings = {key: value for key, value in _LIVELINESS.items() if key not in given}
    connection = await AsyncConnection.connect(
        make_conninfo(url, client_encoding="utf8", application_name=application_name, **settings),
        autocommit=True,
        prepare_threshold=0,
        cursor_factory=AsyncRawCursor,
        **options,
    )
    try:
        await connection.execute(session(), prepare=False)
    except BaseException:
        await connection.close()
        raise
    connection.prepared_max = STATEMENTS_KEPT
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(float, FloatBinaryDumper)
    connection.adapters.register_dumper(list, ListBinaryDumper)
    return connection


class Connections:
    """A pool: the connections that are idle, and the right to so many."""

    def __init__(self, url: str, most: int = CONNECTIONS) -> None:
        self.url = url
        self.place = place_of(url)
        self._most = most
        self._idle: list[Connection] = []
        self._rights: asyncio.Semaphore | None = None

    def open(self) -> None:
        self._rights = asyncio.Semaphore(self._most)

    async def close(self) -> None:
        self._rights = None
        while self._idle:
            await self._idle.pop().close()

    @property
    def is_open(self) -> bool:
        return self._rights is not None

    @asynccontextmanager
    async def one(self, remedy: str = LATER) -> AsyncIterator[Connection]:
        """A connection of one's own; its failures as Holdfast's errors, with this remedy where
        there is no better one."""
        if self._rights is None:
            raise JournalUnavailable(f"{self.place} {NOT_OPEN}")
        try:
            async with self._rights:
                connection = await self.take()
                try:
                    yield connection
                finally:
                    await self.put_back(connection)
        except psycopg.Error as error:
            raise explain(error, self.place, remedy) from error

    async def select(self, statement: bytes, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of one statement."""
        async with self.one() as connection:
            return await execute(connection, statement, parameters)

    async def take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if is_sound(connection):
                return connection
            await connection.close()
        return await connect(self.url)

    async def put_back(self, connection: Connection) -> None:
        """One that is in the middle of something is not used again."""
        idle = psycopg.pq.TransactionStatus.IDLE
        if self.is_open and connection.info.transaction_status == idle:
            self._idle.append(connection)
        else:
            with suppress(psycopg.Error):
                await connection.close()


def is_sound(connection: Connection) -> bool:
    """Whether a connection that is idle is still there: nothing has come in meanwhile."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN | select.POLLHUP)
    return not poll.poll(0)


async def execute(
    connection: Connection, statement: bytes, parameters: Sequence[Any] = ()
) -> list[Row]:
    cursor = await connection.execute(statement, parameters)
    return await cursor.fetchall() if cursor.description else []


def explain(error: Exception, place: str, remedy: str = LATER) -> HoldfastError:
    """What a failure of PostgreSQL or of the way to it means to the operator."""
    if not isinstance(error, psycopg.Error):
        return InternalError(f"{place} cannot take what was to be written: {error}")
    state = error.sqlstate or ""
    told = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if state.startswith(_OURS) and state not in _REMEDIES:
        return InternalError(f"{place} refused a statement of ours: {told}")
    if isinstance(error, psycopg.DataError) and not state:
        return InternalError(f"{place} cannot take what was to be written: {told}")
    state = state or next((one for words, one in _REFUSALS.items() if words in str(error)), "")
    return JournalUnavailable(
        f"{place} did not acknowledge ({told}). {_REMEDIES.get(state, remedy)}"
    )


_OURS: Final = ("21", "22", "23", "42", "0A")
"""Classes of errors that our statements cause, and no operator can mend."""

_POOLER: Final = (
    "A pooler stands between that mixes up prepared statements: it must be PgBouncer 1.21 or newer "
    "with max_prepared_statements above 0, or pool by sessions."
)

_REMEDIES: Final = {
    "26000": _POOLER,
    "42P05": _POOLER,
    "53100": "Free some disk space there; it goes on by itself.",
    "53300": "Let the server take more connections (max_connections), or put PgBouncer before it.",
    "25006": "It only reads: name the server that writes.",
    "28P01": "Give the right password.",
    "28000": "Let this user in there (pg_hba.conf).",
    "3D000": "Make the database first, with `createdb`.",
    "42501": "Give this user the right to it.",
    "3F000": "Let the search_path of this user name a schema that is there.",
    "55P03": "Where lock_timeout is set for this user, take it back.",
    "57014": "Where statement_timeout is set for this user, take it back.",
}


_REFUSALS: Final = {
    "too many clients": "53300",
    "remaining connection slots": "53300",
    "too many connections": "53300",
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    'role "': "28000",
    "permission denied for database": "42501",
    'database "': "3D000",
}
"""Of a connection that is refused libpq tells no code, only the words."""


def is_passing(error: Exception) -> bool:
    """Whether the same may succeed at once: a deadlock, whose transaction has left nothing."""
    return isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure)


async def roll_back(connection: Connection) -> None:
    """A connection that cannot is not used again."""
    with suppress(psycopg.Error):
        await connection.execute(b"ROLLBACK")
