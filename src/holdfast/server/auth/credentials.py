"""Credentials: the three secrets by which a caller is known, and how they are kept.

Each is shown once: a prefix, 37 random characters and a checksum of six, so that a slip of
the hand is told from a secret that is not good any more. At rest there is only its SHA-256,
which is also the name it is kept under: looking it up compares nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from base64 import urlsafe_b64encode
from binascii import crc32
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import InvalidValue
from holdfast.i18n.message import msg
from holdfast.model.rows import ExpiringValue
from holdfast.runtime.identity import CLOCK, LOCAL
from holdfast.server.auth.principal import GRANTED, Grants, Kind, Principal, kind_of

LONGEST_NAME: Final = 100
RESERVED: Final = (LOCAL, CLOCK)
"""Names that journals have for what is done without a principal."""

_BODY = 37
_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Form:
    """One of the three: `kind` is what it is kept as, `prefix` how its secret begins."""

    kind: str
    prefix: str
    id_prefix: str

    def new_secret(self) -> str:
        body = secrets.token_urlsafe(_BODY)[:_BODY]
        return f"{self.prefix}{body}{_checksum(self.prefix + body)}"

    def fits(self, secret: str) -> bool:
        """Whether this was ever one of ours, complete and without a slip."""
        rest = secret.removeprefix(self.prefix)
        whole = secret.startswith(self.prefix) and _SHAPE.fullmatch(rest) is not None
        return whole and secret.endswith(_checksum(secret[:-6]))


TOKEN: Final = Form("token", "hf_", "tok_")
LINK: Final = Form("link", "link_", "lnk_")
SESSION: Final = Form("session", "hfs_", "ses_")
FORMS: Final = (TOKEN, LINK, SESSION)


def _checksum(text: str) -> str:
    return urlsafe_b64encode(crc32(text.encode()).to_bytes(4, "big")).decode()[:6]


@dataclass(frozen=True, slots=True)
class Credential:
    """What is known of a credential; `parent` is the key of the token a session came from."""

    id: str
    form: str
    name: str
    who: str
    kind: Kind
    roles: frozenset[str]
    grants: Grants
    created_at: float
    created_by: str
    expires_at: float | None = None
    last_used_at: float | None = None
    parent: str | None = None

    def principal(self) -> Principal:
        return Principal(
            self.who, self.name, self.kind, self.roles, self.grants, self.id, self.expires_at
        )


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a credential is for."""

    name: str
    kind: Kind = "person"
    roles: frozenset[str] = frozenset()
    grants: Grants = field(default_factory=dict)


def csrf_token(session: str) -> str:
    """What the forms of a session carry; only who has the session's secret can tell it."""
    return hmac.new(session.encode(), b"holdfast csrf", hashlib.sha256).hexdigest()


def csrf_fits(session: str, given: str) -> bool:
    return hmac.compare_digest(
        csrf_token(session).encode(), given.encode(errors="backslashreplace")
    )


def new_id(form: Form) -> str:
    return form.id_prefix + secrets.token_hex(8)


def holder_of(
    name: str, kind: Kind, roles: Collection[str], grants: Mapping[str, Collection[str]]
) -> Holder:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidValue(
            msg("{least} to {most} visible characters are taken", least=1, most=LONGEST_NAME),
            "name",
        )
    if ":" in name or name in RESERVED:
        raise InvalidValue(
            msg("a name has no colon and is none of {names}", names=", ".join(RESERVED)), "name"
        )
    return Holder(
        name,
        kind,
        _as_roles(roles, "roles"),
        {_as_key(key): _as_roles(held, f"grants.{key}") for key, held in grants.items()},
    )


def _as_key(key: str) -> str:
    kind = kind_of(key)
    if kind is not None and kind not in GRANTED:
        raise InvalidValue(
            msg("what is granted is one of {kinds}", kinds=", ".join(GRANTED)), f"grants.{key}"
        )
    return key


def _as_roles(roles: Collection[str], where: str) -> frozenset[str]:
    if not all(role and len(role) <= LONGEST_NAME and role.isprintable() for role in roles):
        raise InvalidValue(msg("a role is a word of visible characters"), where)
    return frozenset(roles)


def who_is(holder: Holder) -> str:
    """All tokens of one name are one person, so that two of them are not four eyes."""
    return holder.name if holder.kind == "person" else f"service:{holder.name}"


def kept_as(one: Credential, key: str) -> ExpiringValue:
    body = {
        "id": one.id,
        "name": one.name,
        "who": one.who,
        "kind": one.kind,
        "roles": sorted(one.roles),
        "grants": listed(one.grants),
        "created_at": one.created_at,
        "created_by": one.created_by,
        "parent": one.parent,
    }
    text = json.dumps(body, ensure_ascii=False)
    return ExpiringValue(one.form, key, text, one.expires_at)


def credential_of(kept: ExpiringValue) -> Credential:
    body = json.loads(kept.body)
    return Credential(
        **{
            **body,
            "form": kept.kind,
            "roles": frozenset(body["roles"]),
            "grants": {key: frozenset(roles) for key, roles in body["grants"].items()},
            "expires_at": kept.expires_at,
        }
    )


def listed(grants: Grants) -> dict[str, list[str]]:
    return {key: sorted(roles) for key, roles in grants.items()}
