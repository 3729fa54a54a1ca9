"""OAUTHBEARER: only tokens that a key of the provider has signed, and that fit the rules, are taken."""

import base64
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.sasl.oauth import ERROR, KeySet, OAuthServerExchange, TokenRefused, TokenRules
from barnabas.security.sasl.server import SaslRefused

RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
RULES = TokenRules(audiences=("kafka", "events"), issuer="https://issuer")


def public(key: Any, algorithm: str, **more: Any) -> dict[str, Any]:
    entry = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    return {**entry, **more}


DOCUMENT = {
    "keys": [
        public(RSA, "RS256", kid="rsa", use="sig"),
        public(CURVE, "ES256", kid="curve"),
        public(EDWARDS, "EdDSA", kid="edwards", alg="EdDSA"),
        {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"shared secret" * 4).decode()},
        {"kty": "new", "kid": "unknown"},
        public(OTHER, "RS256", kid="for encryption", use="enc"),
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        "nothing",
    ]
}
KEYS = KeySet.parse(json.dumps(DOCUMENT).encode())


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    known = {"sub": "alice", "iss": "https://issuer", "aud": "kafka", "exp": now + 60, "iat": now}
    return {name: value for name, value in {**known, **changes}.items() if value is not None}


def token(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", **changes: Any) -> str:
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm, headers=headers)


def verified(text: str, rules: TokenRules = RULES) -> str:
    return KEYS.verified(text, rules, int(time.time() * 1000)).subject


def test_only_keys_for_signatures_are_taken() -> None:
    assert len(KEYS) == 3


@pytest.mark.parametrize(
    "make",
    [
        token,
        lambda: token(algorithm="PS384"),
        lambda: token(CURVE, "ES256", "curve"),
        lambda: token(EDWARDS, "EdDSA", "edwards"),
        # One key of the type: no id is needed.
        lambda: token(CURVE, "ES256", None),
        lambda: token(aud=["other", "events"]),
        lambda: token(exp=int(time.time()) - 10),
        lambda: token(exp=10**306),
        lambda: token(scope="read write"),
        lambda: token(scope=["read", "write"]),
    ],
)
def test_good_tokens(make: Callable[[], str]) -> None:
    assert verified(make()) == "alice"


def unsigned(header: dict[str, Any]) -> str:
    segments = [json.dumps(part).encode() for part in (header, claims())]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in segments) + "."


PUBLIC_PEM = RSA.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def signed_with_public_key() -> str:
    """HS256 with the public key as the shared secret: what careless verifiers accept."""
    import hashlib
    import hmac

    body = unsigned({"alg": "HS256", "kid": "rsa", "typ": "JWT"})[:-1]
    signature = hmac.digest(PUBLIC_PEM, body.encode(), hashlib.sha256)
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: unsigned({"alg": "none"}),
        lambda: unsigned({"alg": "none", "kid": "rsa"}),
        lambda: unsigned({"alg": "None", "kid": "rsa"}),
        signed_with_public_key,
        lambda: token(b"shared secret" * 4, "HS256", "shared"),
        lambda: token(OTHER),
        lambda: token(OTHER, kid="for encryption"),
        lambda: token(kid="curve"),
        lambda: token(kid="missing"),
        lambda: token(exp=int(time.time()) - 31),
        lambda: token(exp=None),
        lambda: token(exp="soon"),
        lambda: token(exp=float("inf")),
        lambda: token(exp=float("nan")),
        lambda: token(nbf=int(time.time()) + 100),
        lambda: token(iss="https://other"),
        lambda: token(iss=None),
        lambda: token(aud="other"),
        lambda: token(aud=None),
        lambda: token(sub=None),
        lambda: token(sub=" "),
        lambda: token(scope=[1]),
        lambda: jwt.encode(claims(), RSA, "RS256", headers={"kid": "rsa", "crit": ["b64"]}),
        lambda: token()[:-6] + "AAAAAA",
        lambda: token().rpartition(".")[0],
        lambda: "a.b.c",
        lambda: "",
    ],
)
def test_bad_tokens(make: Callable[[], str]) -> None:
    with pytest.raises(TokenRefused):
        verified(make())


def test_a_token_of_another_provider_needs_its_rules() -> None:
    text = token(aud=None, iss=None, preferred_username="bob")
    assert verified(text, TokenRules(subject_claim="preferred_username")) == "bob"
    # The broker's clock counts too.
    with pytest.raises(TokenRefused):
        KEYS.verified(token(), RULES, int(time.time() * 1000) + 3_600_000)


@pytest.mark.parametrize(
    "document", [b"", b"[]", b'{"keys": 5}', b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "AAAA"}]}']
)
def test_sets_without_a_usable_key(document: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        KeySet.parse(document)


class FixedKeys:
    current = KEYS

    def preparation(self, token: str) -> Callable[[], object] | None:
        return None


def exchange() -> OAuthServerExchange:
    return OAuthServerExchange(FixedKeys(), RULES, lambda: int(time.time() * 1000))


def test_a_good_exchange() -> None:
    text = token()
    server = exchange()
    assert server.answer(f"n,,\x01auth=Bearer {text}\x01\x01".encode()) == b""
    assert (server.is_complete, server.user) == (True, "alice")
    assert server.ends_ms is not None and server.ends_ms > time.time() * 1000
    with_extensions = f"n,a=alice,\x01traceId=1\x01auth=bearer {text}\x01b=c d\x01\x01"
    assert exchange().answer(with_extensions.encode()) == b""


def test_a_refused_token_is_explained_first() -> None:
    server = exchange()
    answer = server.answer(f"n,,\x01auth=Bearer {token(OTHER)}\x01\x01".encode())
    assert json.loads(answer) == {"status": "invalid_token"}
    with pytest.raises(SaslRefused) as refused:
        server.answer(f"n,,\x01auth=Bearer {token()}\x01\x01".encode())
    assert refused.value.answer == ERROR
    assert not server.is_complete


def test_a_token_is_for_its_subject() -> None:
    with pytest.raises(SaslRefused, match="different from the token"):
        exchange().answer(f"n,a=bob,\x01auth=Bearer {token()}\x01\x01".encode())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "n,,",
        "n,,\x01\x01",
        "y,,\x01auth=Bearer a.b.c\x01\x01",
        "n,,\x01auth=Basic a.b.c\x01\x01",
        "n,,\x01auth=Bearer a.b.c\x01",
        "n,,\x01auth=Bearer a.b.c\x01auth=Bearer a.b.c\x01\x01",
        "n,,\x01auth=Bearer a b\x01\x01",
        "n,,\x01token=a.b.c\x01\x01",
        "n,,\x01auth=Bearer a.b.c\x01=\x01\x01",
        "n,,\x01auth=Bearer ä\x01\x01",
    ],
)
def test_broken_first_messages(message: str) -> None:
    with pytest.raises(SaslRefused):
        exchange().answer(message.encode())


@given(st.binary(max_size=200) | st.text("n,a=\x01uthBear .").map(str.encode))
def test_no_message_causes_another_error(message: bytes) -> None:
    server = exchange()
    with contextlib.suppress(SaslRefused):
        server.preparation(message)
        server.answer(message)
    assert not server.is_complete
