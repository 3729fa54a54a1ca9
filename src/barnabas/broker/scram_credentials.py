"""Where SCRAM finds its credentials: in the metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.security.sasl.server import TokenCredential
from barnabas.security.scram import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class StoredCredentials:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def of(self, mechanism: ScramMechanism) -> MechanismCredentials:
        return MechanismCredentials(self._broker, mechanism)


class MechanismCredentials:
    """The credentials of one mechanism."""

    def __init__(self, broker: Broker, mechanism: ScramMechanism) -> None:
        self._broker = broker
        self._mechanism = mechanism

    def of_user(self, user: str) -> ScramCredential | None:
        return None

    def preparation(self, token_id: str) -> Callable[[], object] | None:
        return None

    def of_token(self, token_id: str) -> TokenCredential | None:
        return None

    def usual_iterations(self) -> int:
        return self._mechanism.iterations_min
