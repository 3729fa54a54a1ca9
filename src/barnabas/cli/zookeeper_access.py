"""How commands that read or write the metadata in ZooKeeper themselves reach it."""

from pathlib import Path

from barnabas.config.properties import load_properties
from barnabas.config.values import BrokerConfig
from barnabas.metadata.opening import zookeeper_settings
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings


def settings_of(connect: str, properties_file: Path | None) -> ZooKeeperSettings:
    """The address, with what a broker's properties say about secrets and a protected ZooKeeper."""
    properties = {} if properties_file is None else load_properties(properties_file.read_text())
    settings = zookeeper_settings(BrokerConfig({**properties, "zookeeper.connect": connect}))
    assert settings is not None
    return settings
