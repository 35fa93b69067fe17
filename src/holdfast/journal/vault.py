"""The vault: what people type into secret fields, for the calls of their run only.

A value becomes a *reference*, and only that is recorded, shown and told to models. The reference
is a keyed digest of the question, the field and the value: the same value again is the same answer
again, and without the key values cannot be tried out. The value itself is kept encrypted
(AES-256-GCM), in the transaction of the answer it belongs to; the ciphertext is bound to its
reference and its root run, so one that is put elsewhere does not open.

A value may be *entered* ahead of its answer. Until then it is kept for the person who entered it,
apart from what belongs to answers: several people may enter the same, and to enter it again takes
nothing away from an answer that is on its way.

The key is `HOLDFAST_SECRET_KEY` (32 bytes in base64), or the file `secret.key` in the home, made
when it is first needed and readable by its owner only. All who share a journal must have the same
key, so there it comes from the variable only, and the journal remembers which it was begun with. A
journal in memory has a key that ends with it. A copy of the database without the key gives away no
secrets.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from holdfast.errors import InvalidAnswer, OperatorError
from holdfast.forms.secrets import is_reference, reference_of
from holdfast.forms.validation import overlong
from holdfast.forms.values import Refusal, clean, is_empty
from holdfast.i18n.message import msg
from holdfast.journal.home import sync_directory
from holdfast.journal.port import ExpiringValue, Journal
from holdfast.journal.shared import SharedJournal
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.record import record
from holdfast.model.values import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KIND: Final = "secret"
ENTERED: Final = "entered_secret"
KEY_VARIABLE: Final = "HOLDFAST_SECRET_KEY"
KEY_FILE: Final = "secret.key"

_SECRET: Final = FieldType.SECRET
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_REMEDY: Final = "it must be 32 bytes in base64, as `openssl rand -base64 32` prints them"
_NOT_OURS: Final = msg("this secret was not entered here, or too long ago: enter it again")


class Clock(Protocol):
    def now(self) -> float: ...


@record
class SecretScope:
    """The question and the root run that a secret is for; a start's is the run that it begins."""

    question_id: str
    root_id: str
    by: str = ""


@record
class Sealed:
    """Data with references in place of secrets, and what must be kept along with it."""

    data: dict[str, Json]
    kept: tuple[ExpiringValue, ...] = ()


class Vault:
    def __init__(self, journal: Journal, key: bytes | Callable[[], bytes], clock: Clock) -> None:
        self._journal = journal
        self._given_key = key
        self._clock = clock

    async def confirm(self) -> None:
        """Refuse to share a journal that was begun with another key, or to share one without."""
        if self._journal.shared:
            shared = cast(SharedJournal, self._journal)
            await shared.confirm_key(self.derived("which key this is").hex())

    def derived(self, purpose: str) -> bytes:
        """A key of its own for one purpose."""
        return hmac.digest(self._key, purpose.encode(), hashlib.sha256)

    def reference(self, question_id: str, field: str, value: str) -> str:
        words = canonical_json([question_id, field, value])
        return reference_of(hmac.digest(self._references, words.encode(), hashlib.sha256))

    def seal(
        self, question_id: str, field: str, root_id: str, value: str
    ) -> tuple[str, ExpiringValue]:
        """The reference, and the ciphertext that is yet to be kept."""
        reference = self.reference(question_id, field, value)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, value.encode(), _bound(reference, root_id))
        body = {
            "root_id": root_id,
            "question_id": question_id,
            "field": field,
            "sealed": b64encode(sealed).decode(),
        }
        return reference, ExpiringValue(KIND, reference, json.dumps(body))

    def enter(
        self, scope: SecretScope, field: str, value: str, until: float
    ) -> tuple[str, ExpiringValue]:
        """As `seal`, for an answer that the same person is yet to give."""
        reference, kept = self.seal(scope.question_id, field, scope.root_id, value)
        return reference, replace(
            kept, kind=ENTERED, key=_entered_key(reference, scope.by), expires_at=until
        )

    async def open(self, references: Iterable[str], root_id: str) -> dict[str, str]:
        """The values behind those references that belong to this root run."""
        opened = {}
        for reference in references:
            kept = await self._kept(reference)
            body = {} if kept is None else json.loads(kept.body)
            if body.get("root_id") == root_id:
                opened[reference] = self._opened(reference, body)
        return opened

    async def open_for_run(self, references: Iterable[str], run_id: str) -> dict[str, str]:
        """As `open`, for any run below the root run."""
        row = await self._journal.run(run_id)
        return {} if row is None else await self.open(references, row.root_id)

    async def take(self, form: Form, data: Mapping[str, Json], scope: SecretScope) -> Sealed:
        """Seal what is raw in the form's secret fields, and make lasting what was sealed before;
        InvalidAnswer with a message for each that does not fit its field."""
        taken, kept, errors = dict(data), [], overlong(form, data)
        for field in _secrets_given(form, data):
            if field.name in errors:
                continue
            try:
                reference, one = await self._taken(field, data[field.name], scope)
                taken[field.name] = reference
                kept.append(one)
            except Refusal as refusal:
                errors[field.name] = str(refusal)
        if errors:
            raise InvalidAnswer(msg("the answer does not fit the form"), errors)
        return Sealed(taken, tuple(kept))

    def refer(self, form: Form, data: Mapping[str, Json], scope: SecretScope) -> dict[str, Json]:
        """Data as it would have been recorded, to be compared with what was."""
        referred = dict(data)
        for field in _secrets_given(form, data):
            value = data[field.name]
            if isinstance(value, str) and not is_reference(value):
                referred[field.name] = self.reference(scope.question_id, field.name, value)
        return referred

    async def _taken(
        self, field: Field, value: Json, scope: SecretScope
    ) -> tuple[str, ExpiringValue]:
        if is_reference(value):
            return value, await self._entered(value, field.name, scope)
        text = str(clean(field, value))
        return self.seal(scope.question_id, field.name, scope.root_id, text)

    async def _entered(self, reference: str, field: str, scope: SecretScope) -> ExpiringValue:
        key, now = _entered_key(reference, scope.by), self._clock.now()
        kept = await self._journal.kept(ENTERED, key, now)
        body = {} if kept is None else json.loads(kept.body)
        here = (body.get("question_id"), body.get("field")) == (scope.question_id, field)
        if kept is None or not here:
            raise Refusal(_NOT_OURS)
        return ExpiringValue(KIND, reference, kept.body)

    async def _kept(self, reference: str) -> ExpiringValue | None:
        return await self._journal.kept(KIND, reference, self._clock.now())

    def _opened(self, reference: str, body: Mapping[str, Any]) -> str:
        from cryptography.exceptions import InvalidTag

        sealed = b64decode(body["sealed"])
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            bound = _bound(reference, body["root_id"])
            return self._cipher.decrypt(nonce, ciphertext, bound).decode()
        except InvalidTag:
            raise OperatorError(
                msg(
                    "the secret that was entered for {name} cannot be opened with this "
                    "installation's key: put back the {file} (or {variable}) that it was sealed "
                    "with, or have it entered anew",
                    name=body["field"],
                    file=KEY_FILE,
                    variable=KEY_VARIABLE,
                )
            ) from None

    @cached_property
    def _key(self) -> bytes:
        return self._given_key if isinstance(self._given_key, bytes) else self._given_key()

    @cached_property
    def _references(self) -> bytes:
        return self.derived("references to secrets")

    @cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.derived("values of secrets"))


async def sealed_answer(
    vault: Vault, form: Form, data: Mapping[str, Json], scope: SecretScope, status: str
) -> Sealed:
    """Data as an answer may carry it. One that comes after another is only compared with it."""
    if not form.fields:
        return Sealed(dict(data))
    if status == "open":
        return await vault.take(form, data, scope)
    return Sealed(vault.refer(form, data, scope))


def _bound(reference: str, root_id: str) -> bytes:
    return f"{reference} {root_id}".encode()


def _entered_key(reference: str, by: str) -> str:
    return f"{reference} {by}"


def _secrets_given(form: Form, data: Mapping[str, Json]) -> list[Field]:
    """The secret fields that were answered; what is empty says nothing and hides nothing."""
    secret = (field for field in form.fields if field.type is _SECRET)
    return [one for one in secret if not is_empty(one, data.get(one.name))]


def key_source(journal: Journal, env: Mapping[str, str] = os.environ) -> Callable[[], bytes]:
    """Where a journal's key comes from, once it is needed."""
    path = getattr(journal, "path", None)

    def find() -> bytes:
        if KEY_VARIABLE in env:
            return _decoded(env[KEY_VARIABLE], KEY_VARIABLE)
        if journal.shared:
            raise OperatorError(
                f"a database that many processes share needs {KEY_VARIABLE}, the same for each of "
                f"them, and it is not set here: {_REMEDY}. Keep it: what is sealed with it opens "
                "with no other."
            )
        if isinstance(path, Path):
            return _key_in(path.with_name(KEY_FILE))
        return os.urandom(_KEY_BYTES)

    return find


def _key_in(file: Path) -> bytes:
    try:
        if not file.exists():
            _make_key(file)
        if file.stat().st_mode & 0o077:
            raise OperatorError(f"{file} can be read by others: `chmod 600 {file}`")
        return _decoded(file.read_text(encoding="utf-8", errors="replace"), str(file))
    except OSError as error:
        raise OperatorError(
            f"{file} cannot be used: {error.strerror}. Secrets need it, or {KEY_VARIABLE}."
        ) from error


def _make_key(file: Path) -> None:
    """Whole or not at all: a key that was half written would lose what it has sealed."""
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b64encode(os.urandom(_KEY_BYTES)) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.rename(file)
    sync_directory(file.parent)


def _decoded(text: str, source: str) -> bytes:
    try:
        key = b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise OperatorError(f"{source} is no key for secrets: {_REMEDY}")
    return key
