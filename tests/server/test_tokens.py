"""Tokens, links and sessions: shown once, hashed at rest, revocable, and every act a deed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.errors import InvalidValue, JournalUnavailable, NotFound, Unauthenticated
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Attached, ExpiringValue, Journal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.runtime.identity import Claim, Identity, acting
from holdfast.server.auth.credentials import LINK, SESSION, TOKEN, csrf_fits, csrf_token
from holdfast.server.auth.principal import Principal
from holdfast.server.auth.tokens import (
    KNOWN_SECONDS,
    SESSION_SECONDS,
    Tokens,
    ensure_first_link,
    hash_of,
)
from holdfast.testing.clock import ManualClock


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    journal = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "t.db")
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
def tokens(journal: Journal, clock: ManualClock) -> Tokens:
    return Tokens(journal, clock)


async def deeds(journal: Journal) -> list[tuple[str, str, str]]:
    return [
        (one.record.who, one.record.action, one.record.subject) for one in await journal.audit()
    ]


async def test_a_token_lets_its_holder_in_with_roles_and_grants(tokens: Tokens) -> None:
    made, secret = await tokens.issue("ann", "person", ["viewer"], {"apply_*": ["approver"]})
    who = await tokens.authenticate(secret)
    assert who is not None
    assert (who.id, who.name, who.kind, who.via) == ("ann", "ann", "person", made.id)
    assert who.roles == {"viewer"}
    assert who.grants == {"apply_*": frozenset({"approver"})}


async def test_a_service_is_never_taken_for_the_person_of_that_name(tokens: Tokens) -> None:
    _, secret = await tokens.issue("ann", "service", ["operator"])
    who = await tokens.authenticate(secret)
    assert who is not None
    assert (who.id, who.kind) == ("service:ann", "service")


async def test_a_secret_is_prefixed_long_and_never_at_rest(
    tokens: Tokens, journal: Journal, clock: ManualClock
) -> None:
    _, secret = await tokens.issue("ann")
    assert secret.startswith("hf_")
    assert len(secret) == 3 + 43
    stored = await journal.all_kept("token", clock.now())
    assert [one.key for one in stored] == [hash_of(secret)]
    everything = repr(stored) + repr(await journal.audit())
    assert secret not in everything
    assert secret[3:] not in everything


async def test_a_typo_is_told_from_a_token_that_is_not_good_any_more(tokens: Tokens) -> None:
    made, secret = await tokens.issue("ann")
    typo = secret[:10] + ("a" if secret[10] != "a" else "b") + secret[11:]
    for broken in (typo, secret[:-1], secret + "x", "hf_"):
        assert await tokens.authenticate(broken) is None
        assert "not complete" in tokens.why_not(broken)
    await tokens.revoke(made.id)
    assert "revoked or has expired" in tokens.why_not(secret)
    assert "begin with hf_" in tokens.why_not("sk-something")


async def test_one_form_is_not_taken_for_another(tokens: Tokens) -> None:
    _, link = await tokens.new_link()
    _, token = await tokens.issue("ann")
    assert await tokens.authenticate(link) is None
    assert await tokens.session(token) is None
    with pytest.raises(Unauthenticated):
        await tokens.redeem(token)
    assert await tokens.session("hfs_" + token[3:]) is None


async def test_a_token_ends_when_it_was_said_to(tokens: Tokens, clock: ManualClock) -> None:
    _, secret = await tokens.issue("ann", expires=clock.now() + 100)
    clock.advance(99)
    assert await tokens.authenticate(secret) is not None
    clock.advance(2)
    assert await tokens.authenticate(secret) is None
    assert await tokens.list() == []


async def test_a_token_that_has_ended_is_not_issued(tokens: Tokens, clock: ManualClock) -> None:
    with pytest.raises(InvalidValue, match="expires_at"):
        await tokens.issue("ann", expires=clock.now())


@pytest.mark.parametrize(
    "name", ["", " ann", "a:b", "local", "clock", "a\nb", "a\u202eb", "x" * 101]
)
async def test_a_name_that_could_mislead_is_refused(tokens: Tokens, name: str) -> None:
    with pytest.raises(InvalidValue, match="name"):
        await tokens.issue(name)


@pytest.mark.parametrize("role", ["", "a\nb", "x" * 101])
async def test_a_role_must_be_a_word(tokens: Tokens, role: str) -> None:
    with pytest.raises(InvalidValue, match="role"):
        await tokens.issue("ann", roles=[role])
    with pytest.raises(InvalidValue, match=r"grants\.apply"):
        await tokens.issue("ann", grants={"apply": [role]})


async def test_a_revoked_token_and_its_sessions_are_out_at_once(tokens: Tokens) -> None:
    made, secret = await tokens.issue("ann", roles=["viewer"])
    who = await tokens.authenticate(secret)
    assert who is not None
    _, cookie = await tokens.sign_in(who)
    assert await tokens.session(cookie) is not None
    await tokens.revoke(made.id, by="root")
    assert await tokens.authenticate(secret) is None
    assert await tokens.session(cookie) is None
    with pytest.raises(NotFound, match=made.id):
        await tokens.revoke(made.id)


async def test_a_token_in_use_is_not_read_with_every_request(clock: ManualClock) -> None:
    journal = Reads()
    await journal.open()
    tokens = Tokens(journal, clock)
    _, secret = await tokens.issue("ann")
    assert await tokens.authenticate(secret) is await tokens.authenticate(secret)
    assert journal.reads == 1
    clock.advance(KNOWN_SECONDS)
    await tokens.authenticate(secret)
    assert journal.reads == 2


class Reads(MemoryJournal):
    reads = 0

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        self.reads += 1
        return await super().kept(kind, key, now)


async def test_a_token_that_is_known_is_out_once_anybody_revokes_it(
    tokens: Tokens, journal: Journal, clock: ManualClock
) -> None:
    made, secret = await tokens.issue("ann")
    assert await tokens.authenticate(secret) is not None
    await Tokens(journal, clock).revoke(made.id)
    assert await tokens.authenticate(secret) is None


async def test_a_token_that_is_known_is_out_when_nobody_heard_of_its_end(
    clock: ManualClock,
) -> None:
    class Deaf(MemoryJournal):
        async def attach(self, attached: Attached) -> None:
            await super().attach(attached)
            if attached.dropped:
                raise JournalUnavailable("it is on disk, or it is not")

    journal = Deaf()
    await journal.open()
    tokens = Tokens(journal, clock)
    made, secret = await tokens.issue("ann")
    assert await tokens.authenticate(secret) is not None
    with pytest.raises(JournalUnavailable):
        await tokens.revoke(made.id)
    assert await tokens.authenticate(secret) is None


async def test_a_token_that_is_known_ends_when_it_says(tokens: Tokens, clock: ManualClock) -> None:
    _, secret = await tokens.issue("ann", expires=clock.now() + 1)
    assert await tokens.authenticate(secret) is not None
    clock.advance(1)
    assert await tokens.authenticate(secret) is None


async def test_who_is_looked_up_while_the_token_is_revoked_is_not_known_afterwards(
    clock: ManualClock,
) -> None:
    class Slow(MemoryJournal):
        async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
            found = await super().kept(kind, key, now)
            if found is not None and kind == TOKEN.kind:
                await other.revoke(made.id)
            return found

    journal = Slow()
    await journal.open()
    other = Tokens(journal, clock)
    made, secret = await other.issue("ann")
    assert await other.authenticate(secret) is not None
    assert await other.authenticate(secret) is None


async def test_a_session_ends_when_what_proved_its_holder_does(
    tokens: Tokens, clock: ManualClock
) -> None:
    soon, late = clock.now() + 300, clock.now() + 30 * 86_400
    for until, expected in ((soon, soon), (late, clock.now() + SESSION_SECONDS)):
        made, _ = await tokens.sign_in(Principal("oidc:ann", "Ann", via="jwt", until=until))
        assert made.expires_at == expected


async def test_a_use_noted_late_does_not_bring_back_what_was_revoked(
    journal: Journal, clock: ManualClock
) -> None:
    class Slow(Tokens):
        async def _note_use(self, used: object) -> None:
            await other.revoke(made.id)
            await super()._note_use(used)  # type: ignore[arg-type]

    other = Tokens(journal, clock)
    made, secret = await other.issue("ann")
    await Slow(journal, clock).authenticate(secret)
    assert await other.authenticate(secret) is None


async def test_last_used_is_noted_at_most_once_a_minute(tokens: Tokens, clock: ManualClock) -> None:
    _, secret = await tokens.issue("ann")
    assert [one.last_used_at for one in await tokens.list()] == [None]
    first = clock.now()
    await tokens.authenticate(secret)
    clock.advance(59)
    await tokens.authenticate(secret)
    assert [one.last_used_at for one in await tokens.list()] == [first]
    clock.advance(1)
    await tokens.authenticate(secret)
    assert [one.last_used_at for one in await tokens.list()] == [first + 60]


async def test_a_disk_that_is_full_keeps_nobody_out(clock: ManualClock) -> None:
    class Full(MemoryJournal):
        full = False

        async def attach(self, attached: Attached) -> None:
            if self.full:
                raise JournalUnavailable("full")
            await super().attach(attached)

    journal = Full()
    await journal.open()
    tokens = Tokens(journal, clock)
    _, secret = await tokens.issue("ann")
    journal.full = True
    assert await tokens.authenticate(secret) is not None
    journal.full = False
    await tokens.authenticate(secret)
    assert [one.last_used_at for one in await tokens.list()] == [clock.now()]


async def test_a_link_signs_in_once(tokens: Tokens) -> None:
    _, link = await tokens.new_link("ann", ["operator"])
    _, cookie = await tokens.redeem(link)
    who = await tokens.session(cookie)
    assert who is not None
    assert (who.id, who.roles) == ("ann", {"operator"})
    with pytest.raises(Unauthenticated, match="holdfast serve --link"):
        await tokens.redeem(link)


async def test_of_two_who_redeem_at_once_one_gets_in(tokens: Tokens, journal: Journal) -> None:
    _, link = await tokens.new_link()
    ends = await asyncio.gather(*(tokens.redeem(link) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(one, tuple) for one in ends) == 1
    assert sum(isinstance(one, Unauthenticated) for one in ends) == 4
    assert [action for _, action, _ in await deeds(journal)] == ["issued_link", "signed_in"]


async def test_a_link_lasts_a_quarter_of_an_hour(tokens: Tokens, clock: ManualClock) -> None:
    _, early = await tokens.new_link()
    clock.advance(15 * 60 - 1)
    await tokens.redeem(early)
    _, late = await tokens.new_link()
    clock.advance(15 * 60 + 1)
    with pytest.raises(Unauthenticated, match="has expired"):
        await tokens.redeem(late)


async def test_half_a_link_says_so(tokens: Tokens) -> None:
    _, link = await tokens.new_link()
    with pytest.raises(Unauthenticated, match="not complete"):
        await tokens.redeem(link[:-3])


async def test_a_session_lasts_half_a_day_and_ends_with_sign_out(
    tokens: Tokens, clock: ManualClock
) -> None:
    _, first = await tokens.redeem((await tokens.new_link())[1])
    clock.advance(12 * 3600 - 1)
    assert await tokens.session(first) is not None
    clock.advance(2)
    assert await tokens.session(first) is None
    _, second = await tokens.redeem((await tokens.new_link())[1])
    await tokens.sign_out(second)
    assert await tokens.session(second) is None
    await tokens.sign_out(second)


async def test_everything_is_a_deed_in_the_chain(tokens: Tokens, journal: Journal) -> None:
    made, _ = await tokens.issue("bot", "service", ["operator"], by="root", origin="10.0.0.9")
    link, secret = await tokens.new_link("ann", ["viewer"], by="root")
    session, cookie = await tokens.redeem(secret, "10.0.0.7")
    await tokens.sign_out(cookie)
    await tokens.revoke(made.id, by="root")
    assert await deeds(journal) == [
        ("root", "issued_token", made.id),
        ("root", "issued_link", link.id),
        ("ann", "signed_in", session.id),
        ("ann", "signed_out", session.id),
        ("root", "revoked_token", made.id),
    ]
    first, _, third, *_ = await journal.audit()
    assert first.record.origin == "10.0.0.9"
    assert json.loads(first.record.detail)["roles"] == ["operator"]
    assert json.loads(third.record.detail)["via"] == link.id


async def test_what_cannot_be_audited_is_not_done(clock: ManualClock) -> None:
    class Deaf(MemoryJournal):
        async def attach(self, attached: Attached) -> None:
            raise JournalUnavailable("no")

    journal = Deaf()
    await journal.open()
    tokens = Tokens(journal, clock)
    with pytest.raises(JournalUnavailable):
        await tokens.issue("ann")
    assert await tokens.list() == []


async def test_a_claimed_request_is_known_from_the_token_s_own_commit(
    tokens: Tokens, journal: Journal, clock: ManualClock
) -> None:
    with acting(Identity("root", claim=Claim("key", "print"))):
        await tokens.issue("ann")
    kept = await journal.kept("request", "key", clock.now())
    assert kept is not None
    assert json.loads(kept.body) == {"fingerprint": "print"}


async def test_the_first_link_is_there_until_somebody_has_come_in(tokens: Tokens) -> None:
    missed = await ensure_first_link(tokens)
    first = await ensure_first_link(tokens)
    assert missed is not None
    assert first is not None
    _, cookie = await tokens.redeem(first)
    who = await tokens.session(cookie)
    assert who is not None
    assert who.roles == {"admin"}
    assert await ensure_first_link(tokens) is None


async def test_nobody_gets_a_first_link_after_a_token_even_a_revoked_one(tokens: Tokens) -> None:
    made, _ = await tokens.issue("ann")
    await tokens.revoke(made.id)
    assert await ensure_first_link(tokens) is None


async def test_tokens_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    journal = SqliteJournal(tmp_path / "t.db")
    await journal.open()
    _, secret = await Tokens(journal, clock).issue("ann", roles=["viewer"])
    await journal.close()
    again = SqliteJournal(tmp_path / "t.db")
    await again.open()
    who = await Tokens(again, clock).authenticate(secret)
    await again.close()
    assert who is not None


def test_secrets_differ_and_fit_their_form_only() -> None:
    made = [form.new_secret() for form in (TOKEN, LINK, SESSION) for _ in range(50)]
    assert len(set(made)) == 150
    for secret in made:
        assert [form.fits(secret) for form in (TOKEN, LINK, SESSION)].count(True) == 1


def test_a_form_s_csrf_token_belongs_to_one_session() -> None:
    mine, other = SESSION.new_secret(), SESSION.new_secret()
    assert csrf_fits(mine, csrf_token(mine))
    assert not csrf_fits(mine, csrf_token(other))
    assert not csrf_fits(mine, "")
    assert not csrf_fits(mine, "\ud800")


async def test_a_grant_names_a_kind_that_there_is(tokens: Tokens) -> None:
    made, _ = await tokens.issue("ann", grants={"tool:pay": ["author"], "apply_*": ["viewer"]})
    assert set(made.grants) == {"tool:pay", "apply_*"}
    with pytest.raises(InvalidValue, match="one of plan, agent, conversation, tool"):
        await tokens.issue("ann", grants={"tools:pay": ["author"]})
