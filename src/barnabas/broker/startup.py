"""Makes the checked configuration of a broker from a properties file and the command line."""

from collections.abc import Mapping
from pathlib import Path

from barnabas.broker.authorization.authorizer import super_users
from barnabas.broker.sasl_settings import check_sasl
from barnabas.config.definition import ConfigError
from barnabas.config.properties import load_properties
from barnabas.config.values import BrokerConfig, is_broker_key


def broker_config(
    properties_file: Path | None,
    data_dir: Path | None = None,
    port: int | None = None,
    overrides: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The properties of the file, changed by the shortcuts `data_dir` and `port`, then by the overrides.

    Raises ConfigError with one sentence for the operator."""
    properties: dict[str, str] = {}
    if properties_file is not None:
        properties = _read_properties(properties_file)
    if data_dir is not None:
        properties.pop("log.dir", None)
        properties["log.dirs"] = str(data_dir)
    if port is not None:
        # Not "localhost": clients might resolve it to ::1.
        properties["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
        properties.pop("advertised.listeners", None)
    properties.update(overrides or {})
    config = BrokerConfig(properties)
    _refuse_unprotected(config)
    if config["barnabas.adopt.log.dirs"] and config["zookeeper.connect"] is not None:
        raise ConfigError(
            "barnabas.adopt.log.dirs does not work with zookeeper.connect: start once without "
            "zookeeper.connect to adopt the topics, then run 'barnabas cluster adopt'."
        )
    return config


def _read_properties(file: Path) -> dict[str, str]:
    try:
        properties = dict(load_properties(file.read_text()))
    except OSError as error:
        raise ConfigError(f"Cannot read the config file {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"The config file {file} is not a text file: give a server.properties file, "
            "with lines such as listeners=PLAINTEXT://127.0.0.1:9092."
        ) from error
    if properties and not any(is_broker_key(name) for name in properties):
        raise ConfigError(
            f"The config file {file} has no setting of a broker (it begins with {next(iter(properties))!r}): "
            "is it a server.properties file?"
        )
    return properties


def _refuse_unprotected(config: BrokerConfig) -> None:
    """A file that asks for protection we do not have must not start a broker without it."""
    check_sasl(config)
    super_users(config)
    if any(listener.uses_tls for listener in config.listeners):
        # Imported here: a broker without TLS starts faster without it.
        from barnabas.security.listener_tls import check_tls

        check_tls(config, config.listeners)
