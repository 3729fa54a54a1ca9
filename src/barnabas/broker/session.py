"""Who is at the other end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.replication.gate import Asker
from barnabas.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from barnabas.broker.authenticator import Authenticator
    from barnabas.config.listeners import Listener


class Session:
    """What a broker knows about the peer of one connection. The principal is ANONYMOUS until the peer has
    shown who it is.

    `is_authenticated` is false only on listeners with SASL, at first. `ends` is the time of the loop at which
    the session is over. `is_token`: the peer has shown a delegation token. `is_trusted`: it is this broker
    itself, which needs no rights."""

    __slots__ = (
        "authenticator",
        "ends",
        "host",
        "is_authenticated",
        "is_token",
        "is_trusted",
        "listener",
        "principal",
    )

    def __init__(
        self, listener: Listener, host: str, principal: Principal = ANONYMOUS, *, is_trusted: bool = False
    ) -> None:
        self.listener = listener
        self.host = host
        self.principal = principal
        self.is_authenticated = True
        self.is_token = False
        self.ends: float | None = None
        self.authenticator: Authenticator | None = None
        self.is_trusted = is_trusted

    @property
    def may_manage_tokens(self) -> bool:
        """Whether the peer may ask for delegation tokens: not without having shown who it is, and not with a
        token, which would never end then."""
        if self.is_token or self.listener.protocol == "PLAINTEXT":
            return False
        return self.listener.protocol != "SSL" or self.principal != ANONYMOUS

    def asker(self, client_id: str | None, version: int) -> Asker:
        """The peer, for the gate."""
        return Asker(self.listener.name, client_id, version, principal=self.principal, host=self.host)
