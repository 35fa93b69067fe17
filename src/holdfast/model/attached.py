"""What commits beside a run's events: audit records, and small values kept by name."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.record import record


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
class AuditRecord:
    """What somebody did: `seen` is the digest of what was shown to them, `origin` where from."""

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
    """A deed in the chain: `digest` covers the deed, its number and `previous`."""

    number: int
    deed: AuditRecord
    previous: str
    digest: str


@record
class Attached:
    """What becomes true together with a command, whichever run it is for, or with none."""

    deeds: Sequence[AuditRecord] = ()
    kept: Sequence[ExpiringValue] = ()
    dropped: Sequence[tuple[str, str]] = ()


NOTHING = Attached()
