"""The client's side of SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.

    reply = exchange.first()
    while reply is not None:
        reply = exchange.answer(challenge_of_the_broker(reply))

An exchange is for one authentication. It is complete when `answer` returns None; SaslError if the broker does
not keep to the rules. `answer` of a SCRAM exchange takes milliseconds (`is_slow`): call it in a thread."""

import json
from collections.abc import Mapping
from typing import ClassVar, Protocol

from barnabas.security import scram

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM = tuple(scram.BY_NAME)
MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)

# A salt longer than this is not one: it would only cost time.
SALT_BYTES_MAX = 1024
_SEPARATOR = "\x01"


class SaslError(Exception):
    """The broker broke the rules of the exchange. The text names no secret."""


class SaslExchange(Protocol):
    is_slow: ClassVar[bool]

    def first(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None: ...


class PlainExchange:
    """RFC 4616: the user and the password as they are. Only for connections over TLS."""

    is_slow: ClassVar[bool] = False

    def __init__(self, user: str, password: str, authorization_id: str = "") -> None:
        self._message = f"{authorization_id}\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> None:
        # Kafka's broker answers with nothing, or with an error code.
        return None


class ScramExchange:
    """RFC 5802: shows that we know the password, and checks that the broker has its credential."""

    is_slow: ClassVar[bool] = True

    def __init__(
        self,
        mechanism: scram.ScramMechanism,
        user: str,
        password: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._first = scram.ClientFirst.make(user, scram.new_nonce(), dict(extensions or {}))
        self._salted = b""
        self._signed: bytes | None = None

    def first(self) -> bytes:
        return bytes(self._first)

    def answer(self, challenge: bytes) -> bytes | None:
        try:
            if self._signed is None:
                return self._final(scram.ServerFirst.parse(challenge))
            self._check(scram.ServerFinal.parse(challenge), self._signed)
        except scram.ScramError as error:
            raise SaslError(f"the broker does not follow {self._mechanism.name}: {error}") from None
        return None

    def _final(self, server: scram.ServerFirst) -> bytes:
        mechanism = self._mechanism
        nonce = self._first.nonce
        if not server.nonce.startswith(nonce) or len(server.nonce) == len(nonce):
            raise scram.ScramError("its nonce does not continue ours")
        if not mechanism.iterations_min <= server.iterations <= mechanism.iterations_max:
            # Fewer would make a stolen exchange easy to guess, more would keep us busy for nothing.
            raise scram.ScramError(
                f"it asks for {server.iterations} iterations;"
                f" {mechanism.iterations_min} to {mechanism.iterations_max} are allowed"
            )
        if not 0 < len(server.salt) <= SALT_BYTES_MAX:
            raise scram.ScramError("its salt is empty or too long")
        self._salted = scram.salted_password(mechanism, self._password, server.salt, server.iterations)
        self._password = ""
        bare = scram.ClientFinal.make(self._first.header, server.nonce)
        self._signed = scram.signed_text(self._first, server, bare)
        proof = scram.client_proof(mechanism, self._salted, self._signed)
        return bytes(scram.ClientFinal.make(self._first.header, server.nonce, proof))

    def _check(self, server: scram.ServerFinal, signed: bytes) -> None:
        if server.error is not None:
            raise scram.ScramError(f"it answered the proof with the error {server.error!r}")
        if not scram.is_servers(self._mechanism, self._salted, signed, server.signature):
            raise scram.ScramError("its signature is wrong, so it does not know this user's password")


class OAuthBearerExchange:
    """RFC 7628: a token that an authorization server has signed."""

    is_slow: ClassVar[bool] = False

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        pairs = "".join(f"{name}={value}{_SEPARATOR}" for name, value in (extensions or {}).items())
        self._message = f"n,,{_SEPARATOR}auth=Bearer {token}{_SEPARATOR}{pairs}{_SEPARATOR}".encode()
        self.refusal: str | None = None
        """Why the broker refused the token, if it did."""

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self.refusal is not None:
            raise SaslError("the broker answered the end of a refused exchange with another challenge")
        # A challenge is a refusal. The answer to it lets the broker end the exchange with its error code.
        self.refusal = _refusal_of(challenge)
        return _SEPARATOR.encode()


def _refusal_of(challenge: bytes) -> str:
    try:
        return str(json.loads(challenge)["status"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "the token was refused"
