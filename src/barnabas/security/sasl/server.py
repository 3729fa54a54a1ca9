"""The server's side of SASL: PLAIN and SCRAM.

    while not exchange.is_complete:
        send(exchange.answer(receive()))

An exchange is for one authentication; SaslRefused ends it. `preparation` returns what has to run in a thread
before `answer` may be called with the same token, or None, which is usual. OAUTHBEARER is in oauth.py."""

import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from barnabas.security import scram
from barnabas.security.scram import (
    ClientFinal,
    ClientFirst,
    ScramCredential,
    ScramError,
    ScramMechanism,
    ServerFinal,
    ServerFirst,
)

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS = (PLAIN, *scram.BY_NAME, OAUTHBEARER)

OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_DIGEST = "sha256"


class SaslRefused(Exception):
    """The peer has not shown who it is. `answer` is what it is told; None stands for the same sentence for
    everybody, which does not say what was wrong. Neither has a secret in it."""

    def __init__(self, reason: str, answer: str | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class ServerExchange(Protocol):
    """`user` is who the peer is, when `is_complete`. `ends_ms` is when its credential ends (Unix time in
    milliseconds), if it does. `is_token`: it has shown a delegation token of that user."""

    user: str
    is_complete: bool
    ends_ms: int | None
    is_token: bool

    def preparation(self, token: bytes) -> Callable[[], object] | None: ...

    def answer(self, token: bytes) -> bytes: ...


class PlainServerExchange:
    """RFC 4616: the client sends its password."""

    ends_ms: int | None = None
    is_token = False

    def __init__(self, passwords: Mapping[str, str], secret: bytes) -> None:
        self._passwords = passwords
        self._secret = secret
        self.user = ""
        self.is_complete = False

    def preparation(self, token: bytes) -> None:
        return None

    def answer(self, token: bytes) -> bytes:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslRefused("the message is not UTF-8") from None
        if len(parts) != 3:
            # Kafka counts no further than this.
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            raise SaslRefused(text, text)
        authorization_id, user, password = parts
        for name, value in (("username", user), ("password", password)):
            if not value:
                text = f"Authentication failed: {name} not specified"
                raise SaslRefused(text, text)
        if not self._is_right(user, password):
            text = "Authentication failed: Invalid username or password"
            raise SaslRefused(text, text)
        if authorization_id not in ("", user):
            raise SaslRefused(OTHER_AUTHORIZATION_ID, OTHER_AUTHORIZATION_ID)
        self.user, self.is_complete = user, True
        return b""

    def _is_right(self, user: str, password: str) -> bool:
        """In a time that depends neither on the right password, nor on whether the user exists."""
        expected = self._passwords.get(user)
        given_digest = hmac.digest(self._secret, password.encode(), _DIGEST)
        expected_digest = hmac.digest(self._secret, (expected or "").encode(), _DIGEST)
        return hmac.compare_digest(given_digest, expected_digest) and bool(expected)


class TokenCredential(NamedTuple):
    """What a delegation token is worth: whose it is, when it ends, and its SCRAM credential."""

    owner: str
    ends_ms: int
    credential: ScramCredential


class ScramCredentials(Protocol):
    """Where the credentials of one mechanism come from."""

    def of_user(self, user: str) -> ScramCredential | None: ...

    def preparation(self, token_id: str) -> Callable[[], object] | None:
        """What has to run in a thread before `of_token` can be asked; None if nothing has to."""
        ...

    def of_token(self, token_id: str) -> TokenCredential | None: ...

    def usual_iterations(self) -> int:
        """How many iterations most users have: an unknown user seems to have as many."""
        ...


class ScramServerExchange:
    """RFC 5802. A user who does not exist gets a salt too, always the same one, and fails at the end: nobody
    can find out which users there are."""

    def __init__(self, mechanism: ScramMechanism, credentials: ScramCredentials, secret: bytes) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._secret = secret
        self._first: ClientFirst | None = None
        self._server_first: ServerFirst | None = None
        self._credential: ScramCredential | None = None
        self._is_known = False
        self._is_over = False
        self.user = ""
        self.is_complete = False
        self.ends_ms: int | None = None
        self.is_token = False

    def preparation(self, token: bytes) -> Callable[[], object] | None:
        if self._first is not None or b"," + scram.TOKEN_AUTHENTICATION.encode() + b"=" not in token:
            return None
        try:
            first = ClientFirst.parse(token)
        except ScramError:
            return None
        return self._credentials.preparation(first.user) if first.is_token else None

    def answer(self, token: bytes) -> bytes:
        if self._is_over:
            raise SaslRefused("a message after the end of the exchange")
        try:
            return self._begin(token) if self._first is None else self._finish(token)
        except ScramError as error:
            self._is_over = True
            raise SaslRefused(str(error)) from None

    def _begin(self, token: bytes) -> bytes:
        first = ClientFirst.parse(token)
        if first.authorization_id not in ("", first.user):
            raise SaslRefused(OTHER_AUTHORIZATION_ID, OTHER_AUTHORIZATION_ID)
        credential = self._find(first)
        self._is_known = credential is not None
        self._credential = credential or self._pretended_credential(first)
        self._first = first
        nonce = first.nonce + scram.new_nonce()
        self._server_first = ServerFirst.make(nonce, self._credential.salt, self._credential.iterations)
        return bytes(self._server_first)

    def _find(self, first: ClientFirst) -> ScramCredential | None:
        if not first.is_token:
            self.user = first.user
            return self._credentials.of_user(first.user)
        self.is_token = True
        found = self._credentials.of_token(first.user)
        if found is None:
            return None
        self.user, self.ends_ms = found.owner, found.ends_ms
        return found.credential

    def _pretended_credential(self, first: ClientFirst) -> ScramCredential:
        """Looks like a credential that Kafka's tools or ours have made, or like that of a token."""
        seed = hmac.digest(self._secret, f"{self._mechanism.name} {first.user}".encode(), "sha512")
        key = seed[: self._mechanism.key_bytes]
        usual = self._credentials.usual_iterations
        iterations = self._mechanism.iterations_min if first.is_token else usual()
        return ScramCredential(scram.salt_of(int.from_bytes(seed)), key, key, iterations)

    def _finish(self, token: bytes) -> bytes:
        assert self._first is not None and self._server_first is not None and self._credential is not None
        self._is_over = True
        final = ClientFinal.parse(token)
        if not hmac.compare_digest(final.nonce.encode(), self._server_first.nonce.encode()):
            raise ScramError("the nonce of the final message is wrong")
        if final.channel_binding != self._first.header.encode():
            raise ScramError("the final message has another channel binding than the first one")
        signed = scram.signed_text(self._first, self._server_first, final)
        is_proven = scram.is_proven(self._mechanism, self._credential, signed, final.proof)
        if not is_proven or not self._is_known:
            raise ScramError("the user does not exist, or the password is wrong")
        signature = scram.server_signature(self._mechanism, self._credential.server_key, signed)
        self._credential = None
        self.is_complete = True
        return bytes(ServerFinal(signature))
