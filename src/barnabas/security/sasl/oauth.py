"""The server's side of OAUTHBEARER (RFC 7628, KIP-768): the client shows a JSON Web Token (RFC 7519) that an
identity provider has signed.

Only signatures by a key of the provider count: tokens without one (`alg` is "none"), and those that are
signed with a shared secret (HS256), are refused, whatever the keys of the provider are. PyJWT and
cryptography are needed, so only listeners that take OAUTHBEARER import this module."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import jwt

from barnabas.security.sasl.server import SaslRefused
from barnabas.security.scram import unescape_user

# The algorithms that each type of key can verify.
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
# A set of keys that is larger than this is none.
KEYS_MAX = 1000

# A token that is valid for longer than this is valid for long enough.
_SECONDS_MAX = 2.0**40

_SEPARATOR = "\x01"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST = re.compile(rf"n,(?:a=(?P<user>{_NAME}))?,\x01(?P<pairs>(?:.*\x01)?)\x01", re.DOTALL)
_PAIR = re.compile(r"[A-Za-z]+=[\x21-\x7e \t\r\n]+")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class TokenRefused(Exception):
    """A token does not count; the text has nothing of the token in it."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say. No audiences, or no issuer: every one will do."""

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    skew_seconds: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"


class Bearer(NamedTuple):
    """Who a token is about, and until when it is valid (Unix time)."""

    subject: str
    ends_ms: int


@dataclass(frozen=True, slots=True)
class _Key:
    key: jwt.PyJWK = field(repr=False)
    algorithms: tuple[str, ...]


class KeySet:
    """The keys of an identity provider, by their ids."""

    def __init__(self, by_id: Mapping[str | None, list[_Key]]) -> None:
        self._by_id = by_id

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    @classmethod
    def parse(cls, data: bytes) -> "KeySet":
        """The keys of a JWKS document (RFC 7517); ValueError if there is none to verify signatures with."""
        try:
            document = json.loads(data)
            entries = document["keys"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError("this is not a set of keys (JWKS)") from None
        if not isinstance(entries, list) or len(entries) > KEYS_MAX:
            raise ValueError(f"a set of keys (JWKS) must have a list of at most {KEYS_MAX} keys")
        by_id: dict[str | None, list[_Key]] = {}
        for entry in entries:
            key = _key(entry)
            if key is not None:
                by_id.setdefault(key.key.key_id, []).append(key)
        if not by_id:
            raise ValueError("the set of keys (JWKS) has no public key that verifies signatures")
        return cls(by_id)

    def has(self, token: str) -> bool:
        """Whether there is a key for the token, as far as its header says."""
        try:
            self._key_for(_header(token))
        except TokenRefused:
            return False
        return True

    def verified(self, token: str, rules: TokenRules, now_ms: int) -> Bearer:
        """The token's claims, if a key of this set has signed it and it fits the rules."""
        header = _header(token)
        key = self._key_for(header)
        options: Any = {"require": ["exp"], "verify_aud": bool(rules.audiences)}
        try:
            claims = jwt.decode(
                token,
                key.key.key,
                algorithms=list(key.algorithms),
                audience=list(rules.audiences) or None,
                issuer=rules.issuer,
                leeway=rules.skew_seconds,
                options=options,
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise TokenRefused(f"the token is not valid ({type(error).__name__})") from None
        return _bearer(claims, rules, now_ms)

    def _key_for(self, header: Mapping[str, Any]) -> _Key:
        algorithm, key_id = header.get("alg"), header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("the id of the token's key is not a text")
        known = (
            self._by_id.get(key_id, [])
            if key_id is not None
            else [key for keys in self._by_id.values() for key in keys]
        )
        fitting = [key for key in known if algorithm in key.algorithms]
        if len(fitting) != 1:
            raise TokenRefused("no key of the provider, or more than one, fits the token")
        return fitting[0]


def _key(entry: Any) -> _Key | None:
    """None for what cannot verify signatures, such as shared secrets, or is of an unknown type."""
    if not isinstance(entry, dict) or entry.get("kty") not in _ALGORITHMS or entry.get("use", "sig") != "sig":
        return None
    algorithms = _ALGORITHMS[entry["kty"]]
    if "alg" in entry:
        algorithms = tuple(name for name in algorithms if name == entry["alg"])
    if not algorithms:
        return None
    # Only the public part: a provider that publishes its private keys is not made worse by us.
    public = {name: value for name, value in entry.items() if name not in ("d", "p", "q", "dp", "dq", "qi")}
    try:
        return _Key(jwt.PyJWK(public, algorithms[0]), algorithms)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


def _header(token: str) -> Mapping[str, Any]:
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("the token is not a signed JSON Web Token") from None
    if "crit" in header:
        raise TokenRefused("the token needs an extension that is not supported")
    return header


def _bearer(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> Bearer:
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"the token has no claim {rules.subject_claim!r}")
    scope = claims.get(rules.scope_claim)
    scopes = scope if isinstance(scope, list) else [] if scope is None else [scope]
    if not all(isinstance(each, str) for each in scopes):
        raise TokenRefused(f"the claim {rules.scope_claim!r} of the token is not a text or a list of texts")
    ends_ms = int(min(float(claims["exp"]), _SECONDS_MAX) * 1000)
    # The library has checked it with the system's clock.
    if ends_ms + rules.skew_seconds * 1000 <= now_ms:
        raise TokenRefused("the token has expired")
    return Bearer(subject.strip(), ends_ms)


class Keys(Protocol):
    """Where the provider's keys are, and how they are fetched again."""

    @property
    def current(self) -> KeySet: ...

    def preparation(self, token: str) -> Callable[[], object] | None: ...


class OAuthServerExchange:
    """A token that is refused is answered with a JSON document; the client answers that with one byte, and is
    told only then that it has failed."""

    is_token = False

    def __init__(self, keys: Keys, rules: TokenRules, now_ms: Callable[[], int]) -> None:
        self._keys = keys
        self._rules = rules
        self._now_ms = now_ms
        self._failure: str | None = None
        self.user = ""
        self.is_complete = False
        self.ends_ms: int | None = None

    def preparation(self, token: bytes) -> Callable[[], object] | None:
        try:
            return self._keys.preparation(_parsed(token)[1])
        except SaslRefused:
            return None

    def answer(self, token: bytes) -> bytes:
        if self._failure is not None:
            # Whatever the client says now.
            raise SaslRefused(self._failure, ERROR)
        authorization_id, bearer_token = _parsed(token)
        try:
            bearer = self._keys.current.verified(bearer_token, self._rules, self._now_ms())
        except TokenRefused as error:
            self._failure = str(error)
            return ERROR.encode()
        if authorization_id not in ("", bearer.subject):
            text = (
                "Authentication failed: Client requested an authorization id that is different from "
                "the token's principal name"
            )
            raise SaslRefused(text, text)
        self.user, self.ends_ms, self.is_complete = bearer.subject, bearer.ends_ms, True
        return b""


ERROR = '{"status":"invalid_token"}'


def _parsed(message: bytes) -> tuple[str, str]:
    """The user that the client wants to be, or "", and its token."""
    try:
        match = _FIRST.fullmatch(message.decode("ascii"))
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise SaslRefused("the client's first message is broken")
    pairs = match["pairs"].removesuffix(_SEPARATOR).split(_SEPARATOR) if match["pairs"] else []
    if not all(_PAIR.fullmatch(pair) for pair in pairs):
        raise SaslRefused("the client's first message has a broken pair of key and value")
    values = [pair.partition("=")[2] for pair in pairs if pair.startswith("auth=")]
    bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    if bearer is None:
        raise SaslRefused("the client's first message has no bearer token")
    return unescape_user(match["user"] or ""), bearer["token"]
