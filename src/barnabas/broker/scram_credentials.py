"""Where SCRAM finds its credentials: in the metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.metadata.scram import iterations_of, stored_credential
from barnabas.security.sasl.server import TokenCredential
from barnabas.security.scram import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class StoredCredentials:
    """The credentials of all mechanisms."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counted: Mapping[tuple[str, int], str] | None = None
        self._iterations: Counter[tuple[int, int]] = Counter()

    def of(self, mechanism: ScramMechanism) -> MechanismCredentials:
        return MechanismCredentials(self._broker, self, mechanism)

    def usual_iterations(self, mechanism: ScramMechanism) -> int:
        """How many iterations most users of the mechanism have."""
        credentials = self._broker.image.scram_credentials
        if credentials is not self._counted:
            self._counted = credentials
            self._iterations = Counter((code, iterations_of(text)) for (_, code), text in credentials.items())
        for (code, iterations), _ in self._iterations.most_common():
            if code == mechanism.code and iterations > 0:
                return iterations
        return mechanism.iterations_min


class MechanismCredentials:
    """The credentials of one mechanism."""

    def __init__(self, broker: Broker, stored: StoredCredentials, mechanism: ScramMechanism) -> None:
        self._broker = broker
        self._stored = stored
        self._mechanism = mechanism

    def of_user(self, user: str) -> ScramCredential | None:
        return stored_credential(self._broker.image.scram_credentials, user, self._mechanism.code)

    def preparation(self, token_id: str) -> Callable[[], object] | None:
        return self._broker.tokens.preparation(self._mechanism, token_id)

    def of_token(self, token_id: str) -> TokenCredential | None:
        return self._broker.tokens.credential(self._mechanism, token_id)

    def usual_iterations(self) -> int:
        return self._stored.usual_iterations(self._mechanism)
