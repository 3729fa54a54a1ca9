"""Records that cannot be decoded are written to another topic, unchanged, with error and origin in headers.

A task that is tried again sends them again; records with the same origin and offset are the same."""

import os
import threading
from collections.abc import Mapping
from typing import Any

from barnabas.client.keys import PRODUCER_KEYS
from barnabas.client.producer import Producer
from barnabas.spark.dead_letter_headers import (
    ERROR_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    TIMESTAMP_HEADER,
    TOPIC_HEADER,
)
from barnabas.spark.settings import ReadSettings

_PRODUCERS: dict[tuple[int, frozenset[tuple[str, str]]], Producer] = {}
_LOCK = threading.Lock()


class DeadLetters:
    """Call `send` for bad records and `flush` at the end, which raises an error if one was not written."""

    def __init__(self, settings: ReadSettings) -> None:
        self._topic = settings.decoding.dead_letter_topic
        self._client = settings.client
        self._sent: list[Any] = []

    def send(self, batch: Any, errors: Mapping[int, str]) -> None:
        """Send the bad rows of a batch; `errors` has the reason for each."""
        producer = producer_of(self._client)
        for row, error in sorted(errors.items()):
            record = batch.slice(row, 1).to_pylist()[0]
            self._sent.append(
                producer.send(
                    self._topic, key=record["key"], value=record["value"], headers=_headers(record, error)
                )
            )

    def flush(self) -> None:
        if self._sent:
            producer_of(self._client).flush()
        sent, self._sent = self._sent, []
        for future in sent:
            future.result()


def _headers(record: Mapping[str, Any], error: str) -> list[tuple[str, bytes | None]]:
    """The headers of the record, then ours. A record that was a dead letter before keeps its first origin."""
    kept = [(header["key"], header["value"]) for header in record["headers"] or ()]
    names = {name for name, _ in kept}
    time = record["timestamp"]
    ours = {
        ERROR_HEADER: error,
        TOPIC_HEADER: record["topic"],
        PARTITION_HEADER: str(record["partition"]),
        OFFSET_HEADER: str(record["offset"]),
        TIMESTAMP_HEADER: "" if time is None else str(round(time.timestamp() * 1000)),
    }
    if TOPIC_HEADER in names:
        kept = [(name, value) for name, value in kept if name != ERROR_HEADER]
        ours = {ERROR_HEADER: error}
    return kept + [(name, text.encode()) for name, text in ours.items()]


def producer_of(client: Mapping[str, str]) -> Producer:
    """The producer with these settings in this process."""
    key = (os.getpid(), frozenset(client.items()))
    with _LOCK:
        if key not in _PRODUCERS:
            _PRODUCERS[key] = Producer({name: text for name, text in client.items() if name in PRODUCER_KEYS})
        return _PRODUCERS[key]


def close_all() -> None:
    """Close the producers of this process; for tests."""
    with _LOCK:
        while _PRODUCERS:
            _PRODUCERS.popitem()[1].close()
