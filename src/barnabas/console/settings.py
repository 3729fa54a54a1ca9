"""What the console was started with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.console.masks import Masks

LOCALHOST = "127.0.0.1"
DEFAULT_PORT = 8080

_CREDENTIALS = ("sasl.jaas.config", "sasl.username", "sasl.oauthbearer.token.endpoint.url")


@dataclass(frozen=True)
class ConsoleSettings:
    """`client` are settings of the clients, as in a file for --command-config."""

    client: Mapping[str, Any]
    host: str = LOCALHOST
    port: int = DEFAULT_PORT
    read_only: bool = False
    masks: Masks = field(default_factory=lambda: Masks(()))
    pipelines: tuple[Path, ...] = ()
    schema_registry: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    sample_seconds: float = 5.0

    @property
    def bootstrap(self) -> str:
        return str(self.client["bootstrap.servers"])

    @property
    def login_required(self) -> bool:
        """Whether brokers want a user, and the console has none of its own."""
        protocol = str(self.client.get("security.protocol", "")).upper()
        return protocol.startswith("SASL_") and not any(self.client.get(key) for key in _CREDENTIALS)

    @property
    def is_secured(self) -> bool:
        return str(self.client.get("security.protocol", "PLAINTEXT")).upper() != "PLAINTEXT"
