"""The types that users of the producer pass in (records and options), and checks of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from barnabas.client.errors import ConfigError, ErrorCode, KafkaError
from barnabas.client.metadata import no_partition
from barnabas.client.types import RecordMetadata

Headers = Sequence[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple):
    """A record as interceptors see it, before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None


class SendOptions(TypedDict, total=False):
    """partition, timestamp (ms), headers (pairs or a mapping), on_delivery(metadata, error).

    One of the two arguments of on_delivery is None."""

    partition: int | None
    timestamp: int | None
    headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | None
    on_delivery: Callable[[RecordMetadata | None, KafkaError | None], object] | None


def headers_of(given: Any) -> Headers | None:
    if not given:
        return None
    headers = list(given.items() if isinstance(given, Mapping) else given)
    for header in headers:
        if not (isinstance(header, tuple | list) and len(header) == 2):
            raise TypeError(f"headers must be a dict or pairs of a name and bytes, not {header!r}")
        name, value = header
        if not isinstance(name, str) or not isinstance(value, bytes | None):
            kinds = f"{type(name).__name__} and {type(value).__name__}"
            raise TypeError(f"a header must have a name that is str and a value that is bytes, not {kinds}")
    return headers


def checked_partition(topic: str, partition: int, count: int) -> int:
    if not 0 <= partition < count:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, no_partition(topic, partition, count))
    return partition


def serializer_of(what: str, setting: Any) -> Callable[[Any], Any] | None:
    if setting is None or callable(setting):
        return setting  # type: ignore[no-any-return]
    raise ConfigError(f"{what}.serializer is {setting!r}: it must be a callable that returns bytes.")
