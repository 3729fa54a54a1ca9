"""At least once: a task sends its batches with an idempotent producer and waits until all are confirmed.

Spark reuses its Python workers, so a producer is kept until the process ends."""

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.producer import Producer
from barnabas.client.producer.tables import BatchFuture
from barnabas.spark.sink.columns import picked

_PRODUCERS: dict[tuple[int, frozenset[tuple[str, str]]], Producer] = {}
_LOCK = threading.Lock()


def send_all(
    client: Mapping[str, str], topic: str | None, columns: tuple[str, ...], batches: Iterable[Any]
) -> None:
    """Write the rows of pyarrow.RecordBatches, to `topic` or to the topics in their column.

    Raises the first error; what was sent before it stays in the log."""
    producer = producer_of(client)
    sent: list[BatchFuture] = []
    for batch in batches:
        if batch.num_rows:
            sent.append(producer.send_batch(topic, picked(batch, columns)))
        while sent and sent[0].done():
            # So errors are raised early, and the batches of a large task do not fill the memory.
            sent.pop(0).result()
    producer.flush()
    for future in sent:
        future.result()


def producer_of(client: Mapping[str, str]) -> Producer:
    """The producer with these settings in this process."""
    key = (os.getpid(), frozenset(client.items()))
    with _LOCK:
        if key not in _PRODUCERS:
            _PRODUCERS[key] = Producer(dict(client))
        return _PRODUCERS[key]


def close_all() -> None:
    """Close the producers of this process; for tests."""
    with _LOCK:
        while _PRODUCERS:
            _PRODUCERS.popitem()[1].close()
