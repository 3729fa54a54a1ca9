"""The checked options of a query that writes, as values that can be pickled. Touches no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from barnabas.client.config import ClientConfig, producer_config
from barnabas.client.errors import KafkaError
from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.spark.options import CLIENT_PREFIX, SINK_OPTIONS, OptionError, read_options

CLIENT_ID = "barnabas-spark-sink"
# Whole tables are sent: larger batches than those of single records.
BATCH_BYTES = 256 * 1024
LINGER_MS = 0
# Settings of the client that the sink decides itself, with the reason for the user.
REFUSED_SETTINGS = {
    "transactional.id": "write it as the option transactional.id, with delivery=exactly-once",
    "key.serializer": "keys are written as they are; cast them to string or binary in the DataFrame",
    "value.serializer": "values are written as they are; cast them to string or binary in the DataFrame",
    "interceptor.classes": "the sink does not call interceptors",
    "partitioner.class": "choose partitions with the column partition",
}
# Options that only work with transactions.
_FOR_TRANSACTIONS = ("transactional.id", "markerTopic", "runId", "queryId", "batchId", "stagingDir")
_ALL_REPLICAS = ("all", "-1")


@dataclass(frozen=True)
class WriteSettings:
    """`values` are the options by name; `client` the settings of the producer by name."""

    values: dict[str, Any]
    # It may have passwords in it.
    client: dict[str, str] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def topic(self) -> str | None:
        topic: str | None = self.values["topic"]
        return topic

    @property
    def is_exact(self) -> bool:
        return bool(self.values["delivery"] == "exactly-once")

    @property
    def transactional_id(self) -> str:
        return str(self.values["transactional.id"])

    def client_config(self) -> ClientConfig:
        return producer_config(self.client)


def write_settings(given: Mapping[str, str], *, is_stream: bool) -> WriteSettings:
    """The settings of a query; OptionError if options are wrong or contradict each other."""
    if any(name.lower() == "path" for name in given):
        raise OptionError("save() and start() take no path: name the topic with the option topic.")
    values = read_options(given, SINK_OPTIONS)
    settings = WriteSettings(values, _client(given, values))
    if settings.is_exact:
        _check_exact(settings, is_stream)
    else:
        for name in _FOR_TRANSACTIONS:
            if values[name] is not None:
                raise OptionError(f"{name} needs delivery=exactly-once: set that, or remove {name}.")
    return settings


def _check_exact(settings: WriteSettings, is_stream: bool) -> None:
    if settings["transactional.id"] is None:
        raise OptionError(
            "delivery=exactly-once needs the option transactional.id: a name for this query that stays the"
            " same over restarts."
        )
    if (settings["queryId"] is None) != (settings["batchId"] is None):
        raise OptionError("queryId and batchId belong together: give both, or neither.")
    has_batches = is_stream or settings["batchId"] is not None
    if has_batches and settings.topic is None and settings["markerTopic"] is None:
        raise OptionError(
            "delivery=exactly-once with topics from a column needs the option markerTopic: an existing topic"
            " for the marker."
        )
    if is_stream and settings["batchId"] is not None:
        raise OptionError("Spark numbers the batches of a stream: remove queryId and batchId.")
    if settings["runId"] is not None and (has_batches or settings.topic is None):
        raise OptionError(
            "runId is only for batch jobs with the option topic and without batchId: remove it, or set topic."
        )
    config = settings.client_config()
    if config["acks"] not in _ALL_REPLICAS or not config["enable.idempotence"]:
        raise OptionError(
            "delivery=exactly-once needs acks=all and enable.idempotence=true: remove kafka.acks and"
            " kafka.enable.idempotence."
        )


def _client(given: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    if values["kafka.bootstrap.servers"] is None:
        raise OptionError("The option kafka.bootstrap.servers must name a broker, such as localhost:9092.")
    client = {"client.id": CLIENT_ID, "batch.size": str(BATCH_BYTES), "linger.ms": str(LINGER_MS)}
    for written, text in given.items():
        name = written.lower().removeprefix(CLIENT_PREFIX)
        if not written.lower().startswith(CLIENT_PREFIX):
            continue
        if name in REFUSED_SETTINGS:
            raise OptionError(f"kafka.{name} cannot be set: {REFUSED_SETTINGS[name]}.")
        if name in PRODUCER_KEYS:
            client[name] = text
        elif name not in CONSUMER_KEYS and name not in ADMIN_KEYS:
            # Settings of other clients are allowed: the same options may be used for a source and a sink.
            near = get_close_matches(name, PRODUCER_KEYS, n=1)
            hint = f"; did you mean kafka.{near[0]}?" if near else "."
            raise OptionError(f"The client has no setting {name}{hint}")
    try:
        producer_config(client)
    except KafkaError as error:
        raise OptionError(f"A kafka.* option is wrong: {error}") from None
    return client
