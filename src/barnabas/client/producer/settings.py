"""From a producer's configuration: the limits, the sender's settings, and a check of their combinations."""

from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConfigError
from barnabas.client.producer.accumulator import Limits
from barnabas.client.producer.batch import Packing
from barnabas.client.producer.ports import SenderSettings
from barnabas.records.compression import CODECS

IDEMPOTENT_IN_FLIGHT_MAX = 5


def limits_of(config: ClientConfig) -> Limits:
    return Limits(
        # An open batch must never become larger than a request.
        batch_bytes=min(config["batch.size"], config["max.request.size"]),
        buffer_bytes=config["buffer.memory"],
        request_bytes_max=config["max.request.size"],
        linger_seconds=config.seconds("linger.ms"),
    )


def sender_settings_of(config: ClientConfig) -> SenderSettings:
    return SenderSettings(
        acks=-1 if config["acks"] == "all" else int(config["acks"]),
        retries=config["retries"],
        in_flight_max=config["max.in.flight.requests.per.connection"],
        request_bytes_max=config["max.request.size"],
        request_seconds=config.seconds("request.timeout.ms"),
        delivery_seconds=_delivery_seconds(config),
        backoff_seconds=config.seconds("retry.backoff.ms"),
        backoff_seconds_max=config.seconds("retry.backoff.max.ms"),
        transactional_id=config["transactional.id"],
        is_idempotent=_is_idempotent(config),
        packing=_packing(config),
    )


def _delivery_seconds(config: ClientConfig) -> float:
    """delivery.timeout.ms, which must be long enough for linger.ms and one request."""
    minimum_ms = config["linger.ms"] + config["request.timeout.ms"]
    if config["delivery.timeout.ms"] >= minimum_ms:
        return config.seconds("delivery.timeout.ms")
    if config.is_set("delivery.timeout.ms"):
        raise ConfigError("delivery.timeout.ms must be at least linger.ms + request.timeout.ms.")
    return float(minimum_ms / 1000)


def _is_idempotent(config: ClientConfig) -> bool:
    """Idempotence is on by default. Another setting may switch it off, unless the user set it explicitly."""
    conflicts = []
    if config["acks"] not in ("all", "-1"):
        conflicts.append("acks must be all")
    if config["retries"] == 0:
        conflicts.append("retries must not be 0")
    if config["max.in.flight.requests.per.connection"] > IDEMPOTENT_IN_FLIGHT_MAX:
        conflicts.append("max.in.flight.requests.per.connection must not be above 5")
    is_enabled = config["enable.idempotence"]
    is_transactional = config["transactional.id"] is not None
    if is_transactional and not is_enabled:
        raise ConfigError("transactional.id needs enable.idempotence.")
    if is_enabled and conflicts and (is_transactional or config.is_set("enable.idempotence")):
        raise ConfigError(f"enable.idempotence is on, so {' and '.join(conflicts)}.")
    return is_enabled and not conflicts


def _packing(config: ClientConfig) -> Packing:
    kind = config["compression.type"]
    level_key = f"compression.{kind}.level"
    # Without a setting, use the codec's own default level, as Kafka's default values do.
    level = config[level_key] if level_key in config and config.is_set(level_key) else None
    if kind == "gzip" and level == -1:
        level = None
    return Packing(CODECS[kind], level, config["transactional.id"] is not None)
