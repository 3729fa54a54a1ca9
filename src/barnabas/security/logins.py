"""How a client shows who it is: a name and a password, or a token (OAUTHBEARER).

A login lives as long as its client; each authentication of a connection takes an exchange from it. Secrets
are not in the repr of anything here."""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from barnabas.security import scram
from barnabas.security.sasl.client import (
    OAUTHBEARER,
    PLAIN,
    OAuthBearerExchange,
    PlainExchange,
    SaslExchange,
    ScramExchange,
)

# A token is replaced when this share of its life is over, as sasl.login.refresh.window.factor has it.
REFRESH_SHARE = 0.8
UNSECURED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """PLAIN and SCRAM. With `is_token`, the name and the password are a delegation token's id and hmac."""

    mechanism: str
    user: str
    password: str = field(repr=False)
    is_token: bool = False

    def exchange(self, obtain: "Obtain") -> SaslExchange:
        """`obtain` is not needed: there is no token."""
        if self.mechanism == PLAIN:
            return PlainExchange(self.user, self.password)
        extensions = {scram.TOKEN_AUTHENTICATION: "true"} if self.is_token else {}
        return ScramExchange(scram.BY_NAME[self.mechanism], self.user, self.password, extensions)


class Token(NamedTuple):
    """A token, and the time (Unix seconds) at which it ends; None if that is not known."""

    value: str
    ends: float | None

    def __repr__(self) -> str:
        return f"Token(ends={self.ends})"


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where a token is asked for with the grant `client_credentials` (OAuth 2). A `file:` URL is read."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings ssl.* for the endpoint; without them, the system's certificate authorities are trusted."""


@dataclass(frozen=True, slots=True)
class TokenProvider:
    """The user's own function, or an object with a method `token` as kafka-python and aiokafka have it. It
    returns a token, or a token and the Unix time at which it ends; it may be a coroutine."""

    function: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class UnsecuredClaims:
    """Options such as `unsecuredLoginStringClaim_sub`, from which a token is made that nobody has signed."""

    options: Mapping[str, str]


TokenSource: TypeAlias = TokenEndpoint | TokenProvider | UnsecuredClaims
# Gets a token from a source; may block. Given by the layer that may open sockets.
Obtain: TypeAlias = Callable[[TokenSource], Token]


class BearerLogin:
    """OAUTHBEARER: keeps the token of its source until most of the token's life is over."""

    mechanism = OAUTHBEARER

    def __init__(self, source: TokenSource, extensions: Mapping[str, str] | None = None) -> None:
        self.source = source
        self._extensions = dict(extensions or {})
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._refresh_at = 0.0

    def __repr__(self) -> str:
        return f"<login with {self.mechanism}>"

    def exchange(self, obtain: Obtain) -> SaslExchange:
        """Blocks while a new token is fetched; connections that are opened at the same time share it."""
        with self._lock:
            now = time.time()
            if self._token is None or now >= self._refresh_at:
                self._token = token = obtain(self.source)
                life = 0.0 if token.ends is None else token.ends - now
                self._refresh_at = now + REFRESH_SHARE * life
            return OAuthBearerExchange(self._token.value, self._extensions)

    def forget(self) -> None:
        """The broker refused the token: get another one next time."""
        self._refresh_at = 0.0


Login: TypeAlias = PasswordLogin | BearerLogin


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JWT without any check, or nothing if it is not one. Only to see when it ends: it is the
    broker that decides whether it is valid."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def token_of(value: str, expires_in: Any = None) -> Token:
    """A token with its end: from its claim `exp`, or from the seconds that the endpoint named."""
    ends = claims_of(value).get("exp")
    if isinstance(ends, int | float) and not isinstance(ends, bool):
        return Token(value, float(ends))
    if isinstance(expires_in, int | float) and not isinstance(expires_in, bool):
        return Token(value, time.time() + expires_in)
    return Token(value, None)


def unsecured_token(options: Mapping[str, str]) -> Token:
    """A token that nobody has signed, from options such as `unsecuredLoginStringClaim_sub`. For tests: a
    broker accepts it only if it is told to trust everybody."""
    now = time.time()
    ends = now + int(options.get("unsecuredLoginLifetimeSeconds", UNSECURED_SECONDS))
    claims: dict[str, Any] = {"iat": now, "exp": ends}
    for option, value in options.items():
        kind, separator, name = option.partition("Claim_")
        if not separator or not kind.startswith("unsecuredLogin"):
            continue
        if kind.endswith("Number"):
            claims[name] = float(value)
        elif kind.endswith("List"):
            # The first character separates the items.
            claims[name] = value[1:].split(value[0]) if value else []
        else:
            claims[name] = value
    return Token(f"{_segment({'alg': 'none'})}.{_segment(claims)}.", ends)


def _segment(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
