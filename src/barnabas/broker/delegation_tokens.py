"""Delegation tokens (KIP-48): their secrets, and the SCRAM credentials with which clients log in by them.

The secret of a token is an HMAC of its id with `delegation.token.secret.key`, which all brokers have. In
Base64 it is the password of the user that has the name of the token's id. That password's credential takes
milliseconds to compute, so it is computed in a thread, when a client first shows the token to this broker."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.tokens import is_expired
from barnabas.security import scram
from barnabas.security.principal import parse_principal
from barnabas.security.sasl.server import TokenCredential

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.call import Call
    from barnabas.metadata.records import DelegationTokenRecord
    from barnabas.security.scram import ScramCredential, ScramMechanism

# Credentials that are kept. What is dropped is computed again.
CREDENTIALS_MAX = 10_000
SECRET_KEY = "delegation.token.secret.key"


class DelegationTokens:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._key: str | None = broker.config[SECRET_KEY]
        # By mechanism and id; and the ids by secret, of the tokens in `_known`.
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        self._known: Mapping[str, DelegationTokenRecord] = {}
        self._ids: dict[bytes, str] = {}

    @property
    def is_enabled(self) -> bool:
        return bool(self._key)

    def secret(self, token_id: str) -> bytes:
        """DELEGATION_TOKEN_AUTH_DISABLED if there is no key to make it with."""
        if not self._key:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        return hmac.digest(self._key.encode(), token_id.encode(), "sha512")

    def id_shown(self, call: Call, secret: bytes) -> str:
        """The id of the token with this secret, that a caller wants to change. KafkaError if there is none,
        or if the caller may not manage tokens."""
        if not (call.is_forwarded or call.session.may_manage_tokens):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not self.is_enabled:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        self._follow()
        token_id = self._ids.get(secret)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token_id

    def preparation(self, mechanism: ScramMechanism, token_id: str) -> Callable[[], object] | None:
        """What has to run in a thread before `credential` can be asked, if anything has to."""
        if (mechanism.name, token_id) in self._credentials or self._valid(token_id) is None:
            return None
        password = scram.base64_text(self.secret(token_id))
        # The same on all brokers and after a restart, as for tokens that do not exist.
        salt = scram.salt_of(int.from_bytes(self.secret(f"salt {mechanism.name} {token_id}")))

        if len(self._credentials) >= CREDENTIALS_MAX:
            self._credentials.clear()

        def prepare() -> None:
            credential = scram.make_credential(mechanism, password, mechanism.iterations_min, salt)
            self._credentials[mechanism.name, token_id] = credential

        return prepare

    def credential(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """What the token is worth; None if it is not valid."""
        token = self._valid(token_id)
        credential = self._credentials.get((mechanism.name, token_id))
        if token is None or credential is None:
            return None
        return TokenCredential(parse_principal(token.owner).name, token.expires_ms, credential)

    async def remove_expired(self) -> None:
        """Only the controller does it."""
        if self.is_enabled and self._broker.controller.active:
            try:
                await self._broker.controller.remove_expired_tokens(self._broker.clock.now_ms())
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise

    def _valid(self, token_id: str) -> DelegationTokenRecord | None:
        token = self._broker.image.delegation_tokens.get(token_id)
        if not self.is_enabled or token is None or is_expired(token, self._broker.clock.now_ms()):
            return None
        return token

    def _follow(self) -> None:
        """Know the secrets of all tokens, and forget the credentials of those that are gone."""
        tokens = self._broker.image.delegation_tokens
        if tokens is self._known:
            return
        known = set(self._ids.values())
        for token_id in tokens.keys() - known:
            self._ids[self.secret(token_id)] = token_id
        if known - tokens.keys():
            self._ids = {secret: token_id for secret, token_id in self._ids.items() if token_id in tokens}
        for key in list(self._credentials):
            # A thread may add one meanwhile.
            if key[1] not in tokens:
                self._credentials.pop(key, None)
        self._known = tokens
