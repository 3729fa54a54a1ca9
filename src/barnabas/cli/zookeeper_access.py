"""How commands that read or write the metadata themselves reach it, in ZooKeeper or encrypted in a file."""

from pathlib import Path

from barnabas.config.properties import load_properties
from barnabas.config.values import BrokerConfig
from barnabas.metadata.opening import encoder_secrets, zookeeper_settings
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings


def settings_of(connect: str, properties_file: Path | None) -> ZooKeeperSettings:
    """The address, with what a broker's properties say about secrets and a protected ZooKeeper."""
    settings = zookeeper_settings(BrokerConfig({**_read(properties_file), "zookeeper.connect": connect}))
    assert settings is not None
    return settings


def secrets_of(properties_file: Path | None) -> tuple[str | None, ...]:
    """What the metadata of a broker that runs alone is encrypted with, as its properties say."""
    return encoder_secrets(BrokerConfig(_read(properties_file)))


def _read(properties_file: Path | None) -> dict[str, str]:
    return {} if properties_file is None else load_properties(properties_file.read_text())
