"""What commits beside a run's events: rows of runs and questions, audit records, kept values.

A row is a small projection of a run's events, so that a list reads no journal; a query asks for a
page of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.i18n.journaled import beside, restored
from holdfast.model.interaction import InteractionRequest
from holdfast.model.record import adapter, record


@record
class RunRow:
    """What lists and recovery need to know of a run without reading its journal.

    `active` says that the run has work to go on with by itself, so that a
    restart must load it; `wake_at` is its next timer. `summary` is small JSON
    for people's lists (progress, waiting, retries).

    Who a run is (`kind`, `name`, `definition`, `root_id`, `parent_id`,
    `created_at`) is settled at its birth; a later row renews the rest only.
    """

    run_id: str
    kind: str
    name: str
    definition: str
    status: str
    active: bool
    wake_at: float | None
    root_id: str
    parent_id: str | None
    created_at: float
    updated_at: float
    title: str = ""
    summary: str = "{}"


DAMAGED_RUN = "damaged: `holdfast doctor --integrity` tells more"
"""The title of a run whose row cannot be read; its events may be whole."""


@record
class QuestionRow:
    """A question as inboxes list it; `body` is the request as JSON, with its messages."""

    question_id: str
    run_id: str
    root_id: str
    status: str
    type: str
    title: str
    role: str | None
    opened_at: float
    deadline: float | None
    closed_at: float | None
    body: str


_FOUR_EYES: Final = "four_eyes"


def question_body(request: InteractionRequest, *, four_eyes: bool) -> str:
    """The request as JSON, and whether it was asked under four eyes."""
    to_json = adapter(InteractionRequest).serializer.to_json
    body = beside(to_json(request, exclude_defaults=True).decode(), request)
    return f'{body[:-1]},"{_FOUR_EYES}":true}}' if four_eyes else body


def request_of(row: QuestionRow) -> InteractionRequest:
    found: InteractionRequest = adapter(InteractionRequest).validator.validate_json(row.body)
    return restored(found, row.body)  # type: ignore[no-any-return]


def asked_under_four_eyes(row: QuestionRow) -> bool:
    # A body may be long, and few have the word in them.
    return _FOUR_EYES in row.body and _FOUR_EYES in json.loads(row.body)


@record
class RunQuery:
    """A page of runs, newest first; `before` is the run id that ended the last page."""

    status: frozenset[str] | None = None
    name: str | None = None
    kind: str | None = None
    parent_id: str | None = None
    roots_only: bool = False
    before: str | None = None
    limit: int = 100


@record
class QuestionQuery:
    """Questions that fit everything given; `role` means exactly that role.

    The oldest come first, or with `newest` the newest.

    `due_before` leaves those without a deadline out. `after` is the question id that ended
    the last page.
    """

    status: frozenset[str] | None = None
    root_id: str | None = None
    run_id: str | None = None
    role: str | None = None
    due_before: float | None = None
    after: str | None = None
    newest: bool = False
    limit: int = 100


ANY_RUN = RunQuery()
ANY_QUESTION = QuestionQuery()


@record
class ExpiringValue:
    """Something small that is kept by name: a token, a secret's ciphertext, a request served.

    `body` is JSON and opaque here. What has expired counts as gone.
    """

    kind: str
    key: str
    body: str
    expires_at: float | None = None


@record
class Removal:
    """A finished tree of runs that is to go, the root first, each at the version that it was read
    at; and what is kept for it by name."""

    versions: Mapping[str, int]
    dropped: Sequence[tuple[str, str]] = ()


@record
class AuditRecord:
    """What a person did: `seen` is the digest of what was shown to them, `origin` where from."""

    at: float
    who: str
    action: str
    subject: str = ""
    run_id: str = ""
    seen: str = ""
    origin: str = ""
    detail: str = "{}"


@record
class AuditEntry:
    """A record in the audit chain: `digest` covers it, its number and `previous`."""

    number: int
    record: AuditRecord
    previous: str
    digest: str


@record
class Attached:
    """What becomes true together with a command, whichever run it is for, or with none.

    What is `claimed` is kept only if nothing is kept under its name yet, or it has expired by `at`;
    what is `spent` is dropped only if it is there and has not. Where one of them is not so, or one
    name stands there twice, nothing of it all becomes true (`NameTaken`, `NameGone`).
    """

    audit: Sequence[AuditRecord] = ()
    kept: Sequence[ExpiringValue] = ()
    dropped: Sequence[tuple[str, str]] = ()
    claimed: Sequence[ExpiringValue] = ()
    spent: Sequence[tuple[str, str]] = ()
    at: float = 0.0


NOTHING = Attached()
