"""A broker for tests of clients that wants TLS, SASL, or both, before it answers what the test tells it to.

with SecuredPeer(answer, tls=context, users={"alice": "secret"}) as peer:
    Admin(bootstrap_servers=peer.bootstrap, security_protocol="SASL_SSL", ...)
"""

import json
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.support.scripted_peer import CLOSE, Answer, ScriptedPeer, versions

from barnabas.errors import ErrorCode
from barnabas.security import scram
from barnabas.wire.codec import Request
from barnabas.wire.messages import metadata, sasl_authenticate, sasl_handshake

HANDSHAKE, AUTHENTICATE, VERSIONS = sasl_handshake.API_KEY, sasl_authenticate.API_KEY, 18
ITERATIONS = 4096


@dataclass
class Sasl:
    """What a peer accepts, and how it may cheat."""

    users: Mapping[str, str] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    session_ms: int = 0
    iterations: int = ITERATIONS
    signs_wrongly: bool = False
    sessions: list[str] = field(default_factory=list)
    """The users of all authentications that succeeded."""


class SecuredPeer(ScriptedPeer):
    def __init__(
        self,
        answer: Callable[[Request], Answer],
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        apis: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(answer)
        self._tls = tls
        self.sasl = sasl
        self._apis = {metadata.API_KEY: (0, 13), **(apis or {})}
        self.api_keys: list[list[int]] = []
        """The API keys of the requests of each connection."""

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            # Not by wrap_socket: it would close the socket at once, and the reset would overtake the alert.
            wrapped = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            try:
                wrapped.do_handshake()
            except OSError:
                _linger(wrapped)
                return
            connection = wrapped
            with self._lock:
                self._open.append(connection)
        conversation = _Conversation(self)
        self.api_keys.append(conversation.api_keys)
        with connection, connection.makefile("rb") as stream:
            try:
                while self._serve_request(connection, stream.read, conversation):
                    continue
            except (OSError, ValueError):
                return

    def _serve_request(
        self, connection: socket.socket, read: Callable[[int], bytes], conversation: "_Conversation"
    ) -> bool:
        return self._serve_one(connection, read, conversation.answer)

    def first_answer(self, request: Request) -> Answer:
        spoken = {**self._apis, **({HANDSHAKE: (0, 1), AUTHENTICATE: (0, 2)} if self.sasl else {})}
        return versions(spoken)

    def plain_answer(self, request: Request) -> Answer:
        return self._answer(request)


def _linger(connection: ssl.SSLSocket) -> None:
    """Close after the peer has: so it can read why."""
    with connection:
        try:
            socket.socket.shutdown(connection, socket.SHUT_WR)
            connection.settimeout(5)
            while socket.socket.recv(connection, 10_000):
                continue
        except OSError:
            return


class _Conversation:
    """One connection: what it has asked so far, and whether it is authenticated."""

    def __init__(self, peer: SecuredPeer) -> None:
        self._peer = peer
        self._mechanism = ""
        self._is_authenticated = peer.sasl is None
        self._is_in_exchange = False
        self._first: scram.ClientFirst | None = None
        self._server_first: scram.ServerFirst | None = None
        self._was_refused = False
        self.api_keys: list[int] = []

    def answer(self, request: Request) -> Answer:
        key = request.header.api_key
        self.api_keys.append(key)
        if key == VERSIONS:
            return self._peer.first_answer(request)
        if key == HANDSHAKE and self._peer.sasl is not None:
            return self._handshake(self._peer.sasl, request)
        if key == AUTHENTICATE and self._peer.sasl is not None:
            return self._step(self._peer.sasl, bytes(request.message.auth_bytes))
        if self._is_in_exchange or not self._is_authenticated:
            # As a real broker: nothing else may come before or during the exchange.
            return CLOSE
        return self._peer.plain_answer(request)

    def _handshake(self, sasl: Sasl, request: Request) -> Answer:
        self._mechanism = request.message.mechanism
        offered = list(sasl.mechanisms)
        if self._mechanism not in offered:
            refused = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return sasl_handshake.SaslHandshakeResponse(error_code=refused, mechanisms=offered)
        self._is_in_exchange = True
        return sasl_handshake.SaslHandshakeResponse(mechanisms=offered)

    def _step(self, sasl: Sasl, data: bytes) -> Answer:
        if self._mechanism == "PLAIN":
            _, user, password = data.decode().split("\0")
            return self._done(sasl, user) if sasl.users.get(user) == password else self._refused()
        if self._mechanism == "OAUTHBEARER":
            return self._bearer(sasl, data)
        return self._scram(sasl, data)

    def _bearer(self, sasl: Sasl, data: bytes) -> Answer:
        if self._was_refused:
            assert data == b"\x01"
            return self._refused()
        token = data.decode().split("auth=Bearer ")[1].split("\x01")[0]
        if token in sasl.tokens:
            return self._done(sasl, token)
        self._was_refused = True
        return sasl_authenticate.SaslAuthenticateResponse(
            auth_bytes=json.dumps({"status": "invalid_token"}).encode()
        )

    def _scram(self, sasl: Sasl, data: bytes) -> Answer:
        mechanism = scram.BY_NAME[self._mechanism]
        if self._first is None or self._server_first is None:
            self._first = scram.ClientFirst.parse(data)
            salt = b"salt-of-this-test"
            self._server_first = scram.ServerFirst.make(
                self._first.nonce + scram.new_nonce(), salt, sasl.iterations
            )
            return sasl_authenticate.SaslAuthenticateResponse(auth_bytes=bytes(self._server_first))
        first, server_first = self._first, self._server_first
        self._first = self._server_first = None
        final = scram.ClientFinal.parse(data)
        signed = scram.signed_text(first, server_first, final)
        password = sasl.users.get(first.user, "")
        credential = scram.make_credential(
            mechanism, password or "?", server_first.iterations, server_first.salt
        )
        if not scram.is_proven(mechanism, credential, signed, final.proof):
            return self._refused()
        key = b"wrong" if sasl.signs_wrongly else credential.server_key
        signature = scram.server_signature(mechanism, key, signed)
        user = f"token {first.user}" if first.is_token else first.user
        return self._done(sasl, user, bytes(scram.ServerFinal(signature)))

    def _done(self, sasl: Sasl, user: str, data: bytes = b"") -> Answer:
        self._is_authenticated, self._is_in_exchange = True, False
        sasl.sessions.append(user)
        return sasl_authenticate.SaslAuthenticateResponse(
            auth_bytes=data, session_lifetime_ms=sasl.session_ms
        )

    def _refused(self) -> Answer:
        return sasl_authenticate.SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message="Authentication failed: these are not the credentials of a user",
        )
