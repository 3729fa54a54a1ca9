"""The checked options of one query, as values that can be pickled and sent to tasks. Touches no Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.config import ClientConfig, consumer_config
from barnabas.client.errors import KafkaError
from barnabas.ids import TopicPartition
from barnabas.spark.options import OptionError, client_settings, read_options
from barnabas.spark.starts import EARLIEST, LATEST, Place, assigned_of, end_of, start_of

DEAD_LETTER_PREFIX = "dlq:"
FETCH_BYTES = 8 << 20
FAIL, NULL, DEAD_LETTER = "fail", "null", "dlq"


@dataclass(frozen=True)
class Topics:
    """What is read: exactly one of the three is set."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: frozenset[TopicPartition] = frozenset()

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names of topics in the options; empty for a pattern."""
        return self.names or tuple(sorted({topic for topic, _ in self.assigned}))


@dataclass(frozen=True)
class Decoding:
    """How values become columns; `format` is none, json, csv, avro or protobuf."""

    format: str
    prefix: str
    avro_schema: str | None
    framing: str
    registry_url: str | None
    registry_user: str | None = field(repr=False)
    subject: str | None
    bad_records: str
    dead_letter_topic: str
    envelope: str = "none"
    delimiter: str = ","
    descriptors: str | None = None
    message: str | None = None
    protobuf_framing: str = "none"


@dataclass(frozen=True)
class ReadSettings:
    """`values` are the options by name; `client` the settings of the client by name."""

    # Both may have passwords in them.
    values: dict[str, Any] = field(repr=False)
    client: dict[str, str] = field(repr=False)
    topics: Topics
    start: Place
    end: Place
    decoding: Decoding

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def group(self) -> str | None:
        """The group for startingOffsets=group."""
        return self.values["commitOffsets"] or self.client.get("group.id")

    @property
    def read_committed(self) -> bool:
        return bool(self.values["isolation.level"] == "read_committed")

    @property
    def fetch_bytes(self) -> int:
        """The size of one fetch: fetchBytes, otherwise the setting of the client if it is given."""
        given = self.client.get("max.partition.fetch.bytes")
        size: int = self.values["fetchBytes"] or (int(given) if given is not None else FETCH_BYTES)
        return size

    def client_config(self) -> ClientConfig:
        return consumer_config(self.client)


def read_settings(given: Mapping[str, str], *, is_stream: bool) -> ReadSettings:
    """The settings of a query; OptionError if options are wrong or contradict each other."""
    values = read_options(given)
    client = _client(given, values)
    settings = ReadSettings(
        values=values,
        client=client,
        topics=topics_of(values),
        start=start_of(
            values, LATEST if is_stream else EARLIEST, values["commitOffsets"] or client.get("group.id")
        ),
        end=end_of(values),
        decoding=decoding_of(values),
    )
    if is_stream:
        _check_stream(given, values)
    elif values["rangesOnly"]:
        raise OptionError("rangesOnly is only for streaming queries: remove it.")
    return settings


def _client(given: Mapping[str, str], values: dict[str, Any]) -> dict[str, str]:
    if values["kafka.bootstrap.servers"] is None:
        raise OptionError("The option kafka.bootstrap.servers must name a broker, such as localhost:9092.")
    client = client_settings(given)
    client.setdefault("client.id", values["groupIdPrefix"])
    level = client.get("isolation.level")
    if level is not None:
        is_given = any(name.lower() == "isolation.level" for name in given)
        if is_given and values["isolation.level"] != level:
            raise OptionError("isolation.level and kafka.isolation.level are different: give only one.")
        values["isolation.level"] = level
    try:
        consumer_config(client)
    except KafkaError as error:
        raise OptionError(f"A kafka.* option is wrong: {error}") from None
    return client


def topics_of(values: Mapping[str, Any]) -> Topics:
    given = [name for name in ("assign", "subscribe", "subscribePattern") if values[name] is not None]
    if len(given) != 1:
        detail = f", but there are {' and '.join(given)}" if given else ""
        raise OptionError(
            f"Exactly one of the options assign, subscribe and subscribePattern must be given{detail}."
        )
    if values["subscribe"] is not None:
        return Topics(names=values["subscribe"])
    if values["assign"] is not None:
        return Topics(assigned=assigned_of(values["assign"]))
    try:
        re.compile(values["subscribePattern"])
    except re.error as error:
        raise OptionError(f"subscribePattern is not a valid regular expression: {error}.") from None
    return Topics(pattern=values["subscribePattern"])


def decoding_of(values: Mapping[str, Any]) -> Decoding:
    policy, topic = values["badRecords"], ""
    if policy.lower().startswith(DEAD_LETTER_PREFIX):
        policy, topic = DEAD_LETTER, policy[len(DEAD_LETTER_PREFIX) :].strip()
    policy = policy.lower()
    if policy not in (FAIL, NULL, DEAD_LETTER) or (policy == DEAD_LETTER and not topic):
        raise OptionError(f"badRecords is {values['badRecords']!r}, but must be fail, null or dlq:<topic>.")
    decoding = Decoding(
        format=values["decode"],
        prefix=values["metadataPrefix"],
        avro_schema=values["avroSchema"],
        framing=values["avroFraming"],
        registry_url=values["schema.registry.url"],
        registry_user=values["schema.registry.basic.auth.user.info"],
        subject=values["schema.registry.subject"],
        bad_records=policy,
        dead_letter_topic=topic,
        envelope=values["envelope"],
        delimiter=values["csvDelimiter"],
        descriptors=values["protobufDescriptors"],
        message=values["protobufMessage"],
        protobuf_framing=values["protobufFraming"],
    )
    _check_decoding(decoding)
    return decoding


def _check_decoding(decoding: Decoding) -> None:
    if decoding.format == "none" and decoding.bad_records != FAIL:
        raise OptionError("badRecords needs decode: set decode to json or avro, or remove badRecords.")
    if decoding.envelope != "none" and decoding.format not in ("json", "avro"):
        raise OptionError("envelope needs decode: set decode to json or avro, or remove envelope.")
    if len(decoding.delimiter) != 1:
        raise OptionError(f"csvDelimiter is {decoding.delimiter!r}, but must be one character.")
    if decoding.format == "protobuf" and (decoding.descriptors is None or decoding.message is None):
        raise OptionError("decode=protobuf needs protobufDescriptors and protobufMessage.")
    if decoding.format == "avro":
        _check_avro(decoding)


def _check_avro(decoding: Decoding) -> None:
    if decoding.avro_schema is None and decoding.registry_url is None:
        raise OptionError("decode=avro needs a schema: give schema.registry.url or avroSchema.")
    if decoding.framing == "none" and decoding.avro_schema is None:
        raise OptionError("With avroFraming=none values have no schema id: give avroSchema.")


def _check_stream(given: Mapping[str, str], values: Mapping[str, Any]) -> None:
    names = {name.lower() for name in given}
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if name.lower() in names:
            raise OptionError(f"{name} is only for batch queries, because a stream has no end: remove it.")
    least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"minOffsetsPerTrigger ({least}) must not be greater than maxOffsetsPerTrigger ({most})."
        )
