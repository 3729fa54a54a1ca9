"""A broker with a listener for each protocol, and the settings with which clients reach them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.certificates import Authority

from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

# The protocols that the broker serves.
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD = "secret-of-alice"
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class SecuredBroker:
    """`plain` reaches the listener without protection, `client(protocol)` the others as alice."""

    def __init__(self, broker: Broker, ports: Mapping[str, int], trusted: str) -> None:
        self.broker = broker
        self._ports = ports
        self._trusted = trusted

    @property
    def plain(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    def client(self, protocol: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
        """The keys of the Java client, as in a file for --command-config."""
        settings = {"bootstrap.servers": f"127.0.0.1:{self._ports[protocol]}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self._trusted}
        if protocol.startswith("SASL_"):
            settings["sasl.mechanism"] = mechanism
            settings["sasl.jaas.config"] = (
                f'{MODULES[mechanism]} required username="alice" password="{password}";'
            )
        return settings


@contextmanager
def secured_broker(directory: Path, overrides: Mapping[str, str] | None = None) -> Iterator[SecuredBroker]:
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority()
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    listeners = ["PLAINTEXT://127.0.0.1:0", *(f"{name}://127.0.0.1:{port}" for name, port in ports.items())]
    settings = {
        "listeners": ",".join(listeners),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.server().write_pem(directory / "server.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        **{
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": (
                f'{MODULES["PLAIN"]} required user_alice="{PASSWORD}";'
            )
            for name in ports
            if name.startswith("SASL_")
        },
        **(overrides or {}),
    }
    with Broker(settings, subprocess=True, data_dir=directory / "data") as broker:
        yield SecuredBroker(broker, ports, authority.write_pem(directory / "ca.pem"))
        assert "Traceback" not in broker.output(), broker.output()
        assert PASSWORD not in broker.output()
