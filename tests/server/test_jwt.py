"""JWTs, against a loopback issuer that really serves its keys over HTTP."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from holdfast.errors import IssuerUnavailable, Unauthenticated
from holdfast.server.auth.jwt import FRESH_SECONDS, PAUSE_SECONDS, STALE_SECONDS, Oidc
from holdfast.server.auth.principal import Principal

RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_JWK = {**json.loads(RSAAlgorithm.to_jwk(RSA_KEY.public_key())), "kid": "rsa", "use": "sig"}
EC_JWK = {**json.loads(ECAlgorithm.to_jwk(EC_KEY.public_key())), "kid": "ec", "alg": "ES256"}


@dataclass
class Issuer:
    """A small real issuer: what it publishes can be changed, and it can fall silent."""

    url: str = ""
    keys: list[dict[str, Any]] = field(default_factory=lambda: [RSA_JWK, EC_JWK])
    says_it_is: str | None = None
    status: int = 200
    asked: list[str] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    def answer(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        self.answers.wait(30)
        if path == "/jwks":
            return {"keys": self.keys}
        return {"issuer": self.says_it_is or self.url, "jwks_uri": f"{self.url}/jwks"}

    @property
    def fetches(self) -> int:
        return self.asked.count("/jwks")


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(issuer.answer(self.path)).encode()
            self.send_response(issuer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()


class Watch:
    """A monotonic clock that the test turns."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def oidc(issuer: Issuer, watch: Watch) -> Oidc:
    return Oidc(issuer.url, "holdfast", monotonic=watch)


def claims(issuer: Issuer, **changed: Any) -> dict[str, Any]:
    now = int(time.time())
    usual = {
        "iss": issuer.url,
        "aud": "holdfast",
        "sub": "u-1",
        "iat": now,
        "exp": now + 300,
        "name": "Will Zhang",
        "roles": ["viewer", "finance"],
    }
    return {name: value for name, value in {**usual, **changed}.items() if value is not None}


def signed(issuer: Issuer, key: Any = RSA_KEY, alg: str = "RS256", **changed: Any) -> str:
    headers = {"kid": changed.pop("kid", "rsa" if alg.startswith("RS") else "ec")}
    return pyjwt.encode(claims(issuer, **changed), key, alg, headers=headers)


async def refused(oidc: Oidc, token: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await oidc.authenticate(token)
    return str(caught.value)


async def test_a_person_comes_with_the_roles_of_the_claim(oidc: Oidc, issuer: Issuer) -> None:
    who = await oidc.authenticate(signed(issuer))
    assert who == Principal(
        "oidc:u-1", "Will Zhang", roles=frozenset({"viewer", "finance"}), via="jwt"
    )


async def test_elliptic_keys_count_too_and_keys_are_fetched_once(
    oidc: Oidc, issuer: Issuer
) -> None:
    await oidc.authenticate(signed(issuer, EC_KEY, "ES256"))
    await oidc.authenticate(signed(issuer))
    assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


async def test_a_given_address_of_the_keys_needs_no_discovery(issuer: Issuer) -> None:
    oidc = Oidc(issuer.url, "holdfast", jwks_url=f"{issuer.url}/jwks")
    await oidc.authenticate(signed(issuer))
    assert issuer.asked == ["/jwks"]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (["admin", "", 7, "ops"], {"admin", "ops"}),
        ("viewer operator,finance", {"viewer", "operator", "finance"}),
        ({"admin": True}, set()),
        (7, set()),
    ],
)
async def test_roles_are_words_however_they_are_listed(
    oidc: Oidc, issuer: Issuer, claim: Any, expected: set[str]
) -> None:
    assert (await oidc.authenticate(signed(issuer, roles=claim))).roles == expected


async def test_without_the_claim_somebody_is_known_and_may_nothing(
    oidc: Oidc, issuer: Issuer
) -> None:
    assert (await oidc.authenticate(signed(issuer, roles=None))).roles == frozenset()


async def test_roles_may_stand_deeper_and_grants_in_a_claim_of_their_own(issuer: Issuer) -> None:
    oidc = Oidc(issuer.url, "holdfast", roles_claim="realm_access.roles")
    nested = {"realm_access": {"roles": ["operator"]}}
    granted = {"holdfast_grants": {"apply_*": ["approver"]}}
    who = await oidc.authenticate(signed(issuer, **nested, **granted))
    assert who.roles == {"operator"}
    assert who.grants == {"apply_*": frozenset({"approver"})}


PROGRAMS: dict[str, dict[str, Any]] = {
    "itself by client_id": {"client_id": "u-1", "auth_time": 1},
    "itself by azp": {"azp": "u-1"},
    "auth0": {"gty": "client-credentials", "azp": "ci-bot"},
    "okta": {"cid": "u-1", "scp": ["read"]},
    "okta, of another subject": {"cid": "ci-bot", "scp": ["read"]},
    "keycloak": {"azp": "ci-bot", "preferred_username": "service-account-ci-bot"},
    "keycloak, with a session": {"preferred_username": "service-account-ci-bot", "sid": "s-1"},
    "keycloak, without profile": {"azp": "ci-bot", "clientId": "ci-bot", "clientHost": "10.0.0.5"},
    "keycloak, once": {"azp": "ci-bot", "clientId": "ci-bot", "auth_time": 0},
    "entra": {"azp": "ci-bot", "idtyp": "app", "oid": "o-1"},
    "entra, without idtyp": {"azp": "ci-bot", "oid": "u-1"},
    "rfc 9068": {"client_id": "ci-bot"},
}

PEOPLE: dict[str, dict[str, Any]] = {
    "plain": {},
    "odd": {"preferred_username": 7, "idtyp": ["app"], "oid": None},
    "keycloak": {"azp": "console", "sid": "s-1", "preferred_username": "will"},
    "entra": {"azp": "console", "oid": "o-1", "idtyp": "user", "scp": "all"},
    "entra's first version": {"appid": "console", "oid": "o-1", "amr": ["pwd"]},
    "entra for customers": {"azp": "console", "oid": "u-1", "auth_time": 1},
    "okta": {"cid": "console", "uid": "o-1", "scp": ["openid"]},
    "cognito": {"client_id": "console", "auth_time": 1},
}


@pytest.mark.parametrize("issued", PROGRAMS)
async def test_a_client_that_signed_in_as_itself_is_a_service(
    oidc: Oidc, issuer: Issuer, issued: str
) -> None:
    assert (await oidc.authenticate(signed(issuer, **PROGRAMS[issued]))).kind == "service"


@pytest.mark.parametrize("issued", PEOPLE)
async def test_whoever_signed_in_is_a_person(oidc: Oidc, issuer: Issuer, issued: str) -> None:
    assert (await oidc.authenticate(signed(issuer, **PEOPLE[issued]))).kind == "person"


@pytest.mark.parametrize(
    ("claim", "said", "kind"),
    [
        ("sid", {"sid": "s-1"}, "person"),
        ("sid", {"sid": "s-1", "client_id": "u-1"}, "person"),
        ("sid", {}, "service"),
        ("sid", {"sid": ""}, "service"),
        ("idtyp=user", {"idtyp": "user"}, "person"),
        ("idtyp=user", {"idtyp": "device"}, "service"),
        ("idtyp=user", {}, "service"),
        ("act.level=2", {"act": {"level": 2}}, "person"),
    ],
)
async def test_the_operator_may_say_what_only_people_have(
    issuer: Issuer, claim: str, said: dict[str, Any], kind: str
) -> None:
    oidc = Oidc(issuer.url, "holdfast", person_claim=claim)
    assert (await oidc.authenticate(signed(issuer, **said))).kind == kind


def unsigned(header: dict[str, Any], payload: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()) for one in (header, payload)]
    return ".".join([*(one.decode().rstrip("=") for one in parts), ""])


async def test_no_signature_is_no_token(oidc: Oidc, issuer: Issuer) -> None:
    for alg in ("none", "None", "NONE", ""):
        token = unsigned({"alg": alg, "kid": "rsa"}, claims(issuer))
        assert "algorithm" in await refused(oidc, token)
    assert issuer.asked == []


async def test_the_public_key_is_no_shared_secret(oidc: Oidc, issuer: Issuer) -> None:
    public = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    body = unsigned({"alg": "HS256", "kid": "rsa"}, claims(issuer))
    mac = hmac.digest(public, body.removesuffix(".").encode(), "sha256")
    token = body + base64.urlsafe_b64encode(mac).decode().rstrip("=")
    assert "algorithm" in await refused(oidc, token)


async def test_a_key_serves_only_the_algorithm_of_its_kind(oidc: Oidc, issuer: Issuer) -> None:
    crossed = signed(issuer, RSA_KEY, "RS256", kid="ec")
    assert "no such key" in await refused(oidc, crossed)
    crossed = signed(issuer, EC_KEY, "ES256", kid="rsa")
    assert "another kind" in await refused(oidc, crossed)
    longer = signed(issuer, RSA_KEY, "RS512")
    assert "algorithm" in await refused(oidc, longer)


async def test_another_s_signature_is_refused(oidc: Oidc, issuer: Issuer) -> None:
    assert "Signature" in await refused(oidc, signed(issuer, OTHER_RSA_KEY))
    whole = signed(issuer)
    head, _, tail = whole.split(".")
    other = signed(issuer, sub="root").split(".")[1]
    assert "Signature" in await refused(oidc, f"{head}.{other}.{tail}")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://other.example"}, "issuer"),
        ({"aud": "another-app"}, "Audience"),
        ({"aud": None}, "aud"),
        ({"iss": None}, "iss"),
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "subject"),
        ({"sub": "a\nb"}, "subject"),
        ({"sub": "clock"}, "subject"),
        ({"sub": "x" * 256}, "subject"),
    ],
)
async def test_what_is_pinned_must_be_there_and_right(
    oidc: Oidc, issuer: Issuer, changed: dict[str, Any], why: str
) -> None:
    assert why in await refused(oidc, signed(issuer, **changed))


async def test_times_hold_within_a_minute(oidc: Oidc, issuer: Issuer) -> None:
    now = int(time.time())
    await oidc.authenticate(signed(issuer, exp=now - 30))
    await oidc.authenticate(signed(issuer, nbf=now + 30, iat=now + 30))
    assert "expired" in await refused(oidc, signed(issuer, exp=now - 90))
    assert "not yet valid" in await refused(oidc, signed(issuer, nbf=now + 120))
    assert "not yet valid" in await refused(oidc, signed(issuer, iat=now + 120))


@pytest.mark.parametrize("token", ["", "a.b.c", "...", "é.é.é", "x" * 20_000])
async def test_what_is_no_jwt_is_said_to_be_none(oidc: Oidc, token: str) -> None:
    assert "not good" in await refused(oidc, token)


async def test_a_new_key_is_found_and_made_up_ones_cost_the_issuer_little(
    oidc: Oidc, issuer: Issuer, watch: Watch
) -> None:
    await oidc.authenticate(signed(issuer))
    new = {**json.loads(RSAAlgorithm.to_jwk(OTHER_RSA_KEY.public_key())), "kid": "new"}
    issuer.keys = [new]
    rotated = signed(issuer, OTHER_RSA_KEY, kid="new")
    assert "no such key" in await refused(oidc, rotated)
    watch.at += PAUSE_SECONDS
    await oidc.authenticate(rotated)
    assert issuer.fetches == 2
    for number in range(20):
        await refused(oidc, signed(issuer, kid=f"made-up-{number}"))
    assert issuer.fetches == 2
    assert "no such key" in await refused(oidc, signed(issuer))


async def test_a_key_that_was_withdrawn_is_forgotten_when_keys_are_renewed(
    oidc: Oidc, issuer: Issuer, watch: Watch
) -> None:
    await oidc.authenticate(signed(issuer))
    issuer.keys = [EC_JWK]
    watch.at += FRESH_SECONDS
    assert "no such key" in await refused(oidc, signed(issuer))


async def test_a_token_that_names_no_key_fits_the_only_one(oidc: Oidc, issuer: Issuer) -> None:
    issuer.keys = [RSA_JWK]
    principal = await oidc.authenticate(pyjwt.encode(claims(issuer), RSA_KEY, "RS256"))
    assert principal == await oidc.authenticate(signed(issuer))


async def test_keys_for_other_uses_and_shared_secrets_are_left_aside(
    oidc: Oidc, issuer: Issuer
) -> None:
    secret = {"kty": "oct", "kid": "rsa2", "k": "c2VjcmV0"}
    issuer.keys = [{**RSA_JWK, "use": "enc"}, secret, EC_JWK]
    assert "no such key" in await refused(oidc, signed(issuer))
    await oidc.authenticate(signed(issuer, EC_KEY, "ES256"))


async def test_an_issuer_that_is_away_is_not_the_caller_s_fault(
    oidc: Oidc, issuer: Issuer, watch: Watch
) -> None:
    issuer.status = 500
    for _ in range(3):
        with pytest.raises(IssuerUnavailable, match=issuer.url):
            await oidc.authenticate(signed(issuer))
    assert len(issuer.asked) == 1
    issuer.status = 200
    watch.at += PAUSE_SECONDS
    await oidc.authenticate(signed(issuer))


async def test_nobody_listening_is_away_too() -> None:
    oidc = Oidc("http://127.0.0.1:9", "holdfast")
    token = signed(Issuer("http://127.0.0.1:9"))
    with pytest.raises(IssuerUnavailable):
        await oidc.authenticate(token)


async def test_known_keys_go_on_for_a_day_without_the_issuer(
    oidc: Oidc, issuer: Issuer, watch: Watch
) -> None:
    await oidc.authenticate(signed(issuer))
    issuer.status = 503
    watch.at += FRESH_SECONDS
    await oidc.authenticate(signed(issuer))
    watch.at += STALE_SECONDS
    with pytest.raises(IssuerUnavailable):
        await oidc.authenticate(signed(issuer))


async def test_while_the_issuer_is_slow_known_keys_do_and_nobody_waits_in_line(
    oidc: Oidc, issuer: Issuer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.auth.jwt.PATIENCE_SECONDS", 0.01)
    await oidc.authenticate(signed(issuer))
    issuer.answers.clear()
    watch.at += FRESH_SECONDS
    unknown = asyncio.create_task(refused(oidc, signed(issuer, kid="made-up")))
    await asyncio.gather(*(oidc.authenticate(signed(issuer)) for _ in range(20)))
    assert not unknown.done()
    issuer.keys = [EC_JWK]
    issuer.answers.set()
    assert "no such key" in await unknown
    assert "no such key" in await refused(oidc, signed(issuer))
    assert issuer.fetches == 2


async def test_what_is_no_character_is_replaced_in_names_and_roles(
    oidc: Oidc, issuer: Issuer
) -> None:
    token = signed(
        issuer, name="Will \ud83d", roles=["viewer\udc00"], holdfast_grants={"a\ud83d": ["x\ud83d"]}
    )
    who = await oidc.authenticate(token)
    assert (who.name, who.roles) == ("Will ?", {"viewer?"})
    assert who.grants == {"a?": {"x?"}}


async def test_a_person_is_known_until_their_token_ends(oidc: Oidc, issuer: Issuer) -> None:
    end = int(time.time()) + 77
    assert (await oidc.authenticate(signed(issuer, exp=end))).until == end


@pytest.mark.parametrize("keys", ["no list", None])
async def test_an_answer_that_makes_no_sense_is_the_issuer_s_fault(
    oidc: Oidc, issuer: Issuer, keys: Any
) -> None:
    issuer.keys = keys
    with pytest.raises(IssuerUnavailable):
        await oidc.authenticate(signed(issuer))


async def test_a_description_of_another_issuer_is_not_believed(oidc: Oidc, issuer: Issuer) -> None:
    issuer.says_it_is = "http://127.0.0.1:1"
    with pytest.raises(IssuerUnavailable, match="another issuer"):
        await oidc.authenticate(signed(issuer))


@pytest.mark.parametrize("algorithms", [("HS256",), ("RS256", "none"), ()])
def test_only_public_key_algorithms_can_be_configured(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="algorithms"):
        Oidc("https://id.example", "holdfast", algorithms=algorithms)


@pytest.mark.parametrize("url", ["http://id.example", "ftp://127.0.0.1", "id.example"])
def test_an_issuer_is_reached_over_tls_or_on_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        Oidc(url, "holdfast")
    with pytest.raises(ValueError, match="https"):
        Oidc("https://id.example", "holdfast", jwks_url=url)


@pytest.mark.parametrize(("issuer_url", "audience"), [("", "x"), ("https://id.example", "")])
def test_issuer_and_audience_must_be_named(issuer_url: str, audience: str) -> None:
    with pytest.raises(ValueError, match="must be named"):
        Oidc(issuer_url, audience)
