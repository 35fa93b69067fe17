"""Knowledge: local documents, and the passages in them that a question is about.

    knowledge = Knowledge("knowledge.sqlite3")
    report = knowledge.add_directory("handbook")
    for passage in knowledge.search("销售数据怎么分析"):
        print(passage.doc_id, passage.text)

The documents lie in SQLite with a full-text index (FTS5), in memory or in a file. How they are cut
into passages and what those are found by stands in `passages`. A title counts as part of its
document's first passage. Passages are ranked by BM25, and by name and place where that is equal.

The file can always be made again from the documents: whatever is wrong with it, the remedy is to
delete it. Everything here blocks; call it through `asyncio.to_thread`. Any thread may.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from holdfast.errors import CallerError, HoldfastError, OperatorError
from holdfast.language.strict import strict_text
from holdfast.work.model_wire import sound_text
from holdfast.work.passages import heading_of, index_terms, match_expression, pieces_of

LARGEST_DOCUMENT: Final = 1_000_000
LONGEST_NAME: Final = 1_000
MOST_PASSAGES: Final = 1_000
SUFFIXES: Final = (".md", ".txt")

_APPLICATION: Final = 1215261803
_VERSION: Final = 1
_SCHEMA: Final = f"""
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, title TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
  id INTEGER PRIMARY KEY,
  doc_id TEXT NOT NULL REFERENCES documents,
  place INTEGER NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (doc_id, place)
);
CREATE VIRTUAL TABLE passage_terms USING fts5 (terms, tokenize = 'unicode61 remove_diacritics 2');
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""
_FORGET: Final = (
    "DELETE FROM passage_terms WHERE rowid IN (SELECT id FROM passages WHERE doc_id = ?)",
    "DELETE FROM passages WHERE doc_id = ?",
    "DELETE FROM documents WHERE doc_id = ?",
)
_KEEP_DOCUMENT: Final = "INSERT INTO documents (doc_id, title) VALUES (?, ?)"
_KEEP_PASSAGE: Final = "INSERT INTO passages (doc_id, place, text) VALUES (?, ?, ?)"
_KEEP_TERMS: Final = "INSERT INTO passage_terms (rowid, terms) VALUES (?, ?)"
_SEARCH: Final = """
SELECT doc_id, title, text, -bm25(passage_terms) AS score
FROM passage_terms
JOIN passages ON passages.id = passage_terms.rowid
JOIN documents USING (doc_id)
WHERE passage_terms MATCH ?
ORDER BY score DESC, doc_id, place
LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document; the higher its score, the more it is about the question."""

    doc_id: str
    title: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not added, why, and what to do about it."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a directory: the documents that it gave, and the files that it did not."""

    doc_ids: tuple[str, ...]
    skipped: tuple[Skipped, ...]


class Knowledge:
    """Documents to search in; without `path` they live as long as this object."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._name = "the knowledge in memory" if path is None else str(path)
        self._lock = Lock()
        self._open: sqlite3.Connection | None = self._connect(":memory:" if path is None else path)

    def add(self, doc_id: str, text: str, title: str = "") -> None:
        """Keep a document, in place of the one that had this id."""
        document = _Document.checked(doc_id, text, title)
        with self._writing() as connection:
            document.keep(connection)

    def add_directory(self, path: str | Path, pattern: str = "**/*.md") -> Added:
        """Keep the Markdown and text files that fit `pattern`, all of them or, on an error, none.

        A document's id is its path from the directory's own name on, as `handbook/hr/leave.md`;
        its title is its first heading, else its file's name.
        """
        root = _directory(path)
        kept: list[str] = []
        skipped: list[Skipped] = []
        with self._writing() as connection:
            for file in _files(root, pattern):
                found = _read(root, file)
                if isinstance(found, Skipped):
                    skipped.append(found)
                else:
                    found.keep(connection)
                    kept.append(found.doc_id)
        return Added(tuple(dict.fromkeys(kept)), tuple(skipped))

    def remove(self, doc_id: str) -> bool:
        """Forget a document; False where there was none."""
        with self._writing() as connection:
            return _forget(connection, strict_text(doc_id, "doc_id", longest=LONGEST_NAME))

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """The passages that are most about `query`, best first; any text is a query."""
        if type(limit) is not int or not 1 <= limit <= MOST_PASSAGES:
            raise CallerError(f"limit must be a whole number from 1 to {MOST_PASSAGES:,}")
        wanted = match_expression(query)
        if not wanted:
            return []
        with self._connection() as connection:
            return [Passage(*row) for row in connection.execute(_SEARCH, (wanted, limit))]

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None

    def _connect(self, path: str | Path) -> sqlite3.Connection:
        with self._explained():
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        [[application]] = connection.execute("PRAGMA application_id")
        [[version]] = connection.execute("PRAGMA user_version")
        [[tables]] = connection.execute("SELECT count(*) FROM sqlite_schema")
        if application == 0 and tables == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        elif application != _APPLICATION:
            raise OperatorError(
                f"{self._name} is a database of something else; name another file for the knowledge"
            )
        elif version != _VERSION:
            raise OperatorError(
                f"{self._name} was written by another version of Holdfast ({version}, this one "
                f"reads {_VERSION}); delete it and add the documents again"
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            if self._open is None:
                raise CallerError(f"{self._name} is closed; open it again to use it")
            yield self._open

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have rolled back already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> HoldfastError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
        remedy = _REMEDIES.get(code, "look at its disk, or delete it and add the documents again")
        return OperatorError(f"{self._name} cannot be used ({error}): {remedy}")


_REMEDIES: Final = {
    sqlite3.SQLITE_BUSY: "another program is writing to it; try again when it is done",
    sqlite3.SQLITE_CANTOPEN: "create its directory, or make it writable for this user",
    sqlite3.SQLITE_ERROR: "Python's SQLite must come with FTS5; install one that does",
    sqlite3.SQLITE_NOTADB: "it is no database; name another file for the knowledge",
    sqlite3.SQLITE_FULL: "free some disk space",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable for this user",
}


@dataclass(frozen=True, slots=True)
class _Document:
    doc_id: str
    text: str
    title: str

    @classmethod
    def checked(cls, doc_id: str, text: str, title: str) -> _Document:
        if not strict_text(doc_id, "doc_id", longest=LONGEST_NAME):
            raise CallerError("a document needs an id that is not empty")
        what = f"document {doc_id!r}"
        strict_text(title, f"{what}, title", longest=LONGEST_NAME)
        if not strict_text(text, what, longest=LARGEST_DOCUMENT).strip():
            raise CallerError(f"{what} has no text; remove it, or add it when it has some")
        return cls(doc_id, text, title)

    def keep(self, connection: sqlite3.Connection) -> None:
        _forget(connection, self.doc_id)
        connection.execute(_KEEP_DOCUMENT, (self.doc_id, self.title))
        named = index_terms(self.title)
        for place, piece in enumerate(pieces_of(self.text)):
            row = connection.execute(_KEEP_PASSAGE, (self.doc_id, place, piece.text)).lastrowid
            terms = piece.terms if place else f"{named} {piece.terms}"
            connection.execute(_KEEP_TERMS, (row, terms))


def _forget(connection: sqlite3.Connection, doc_id: str) -> bool:
    counts = [connection.execute(statement, (doc_id,)).rowcount for statement in _FORGET]
    return counts[-1] > 0


def _directory(path: str | Path) -> Path:
    try:
        root = Path(path).resolve()
        if root.is_dir():
            return root
    except (OSError, ValueError, RuntimeError) as error:
        raise CallerError(f"{path} cannot be read ({error}); name another directory") from None
    raise CallerError(f"{path} is no directory; name one that has the documents in it")


def _files(root: Path, pattern: str) -> list[Path]:
    """In the order of their names, so that the same directory always gives the same index."""
    try:
        return sorted(path for path in root.glob(pattern) if not path.is_dir())
    except (ValueError, NotImplementedError) as error:
        raise CallerError(
            f"{pattern!r} is no pattern for files below {root} ({error}); try '**/*.md'"
        ) from None


def _read(root: Path, file: Path) -> _Document | Skipped:
    try:
        why = _unfit(root, file)
        return Skipped(_shown(file), why) if why else _document(root, file)
    except UnicodeDecodeError:
        return Skipped(_shown(file), "it is not UTF-8; save it as UTF-8")
    except (OSError, RuntimeError) as error:
        return Skipped(_shown(file), f"it cannot be read ({error}); look at its rights")
    except CallerError as error:
        return Skipped(_shown(file), str(error))


def _shown(file: Path) -> str:
    """A file's name may hold bytes that are no text."""
    return sound_text(str(file))


def _document(root: Path, file: Path) -> _Document:
    text = file.read_text(encoding="utf-8-sig")
    doc_id = file.resolve().relative_to(root.parent).as_posix()
    return _Document.checked(doc_id, text, (heading_of(text) or file.stem)[:LONGEST_NAME])


def _unfit(root: Path, file: Path) -> str:
    if file.suffix.lower() not in SUFFIXES:
        return "it is neither Markdown nor text; save it as .md or .txt"
    if not file.resolve(strict=True).is_relative_to(root):
        return "it lies outside the directory; copy it there, or add its own directory"
    if not file.is_file():
        return "it is no ordinary file; leave it out of the pattern"
    if file.stat().st_size > LARGEST_DOCUMENT:
        return f"it is larger than {LARGEST_DOCUMENT:,} bytes; split it"
    return ""
