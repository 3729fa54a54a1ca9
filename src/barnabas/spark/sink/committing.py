"""Exactly once, on the driver: what commit() does with the messages of the tasks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.sink.clusters import cluster_of
from barnabas.spark.sink.encoding import Encoded, Task
from barnabas.spark.sink.markers import Marker, is_due, marker_of
from barnabas.spark.sink.publishing import Publisher
from barnabas.spark.sink.settings import WriteSettings
from barnabas.spark.sink.staging import sweep_batches
from barnabas.spark.sink.stamping import split_batches


class _Marked(NamedTuple):
    where: TopicPartition
    marker: Marker


def commit_batch(settings: WriteSettings, messages: Sequence[Any], batch: int) -> None:
    """A batch of a stream: written unless the marker says that it was."""
    found = _encoded(messages)
    task = found[0].task if found else Task()
    wanted = Marker(batch, task.query, task.run)
    where = TopicPartition(settings["markerTopic"] or str(settings.topic), 0)
    publisher = Publisher(cluster_of(settings.client), settings.transactional_id)
    publisher.fence()
    last = marker_of(publisher.marker(where))
    if is_due(last, wanted, settings):
        if not wanted.query and last is not None:
            # A batch without tasks does not say whose it is.
            wanted = wanted._replace(query=last.query)
        _publish(publisher, found, _Marked(where, wanted))
    sweep_batches(settings, batch)


def commit_job(settings: WriteSettings, messages: Sequence[Any]) -> None:
    """A job is one transaction. Without a runId it has no marker: whoever runs it twice writes twice."""
    found = _encoded(messages)
    publisher = Publisher(cluster_of(settings.client), settings.transactional_id)
    publisher.fence()
    if settings["runId"] is not None:
        where, wanted = TopicPartition(str(settings.topic), 0), Marker(0, str(settings["runId"]))
        last = marker_of(publisher.marker(where))
        if last is None or last.query != wanted.query:
            _publish(publisher, found, _Marked(where, wanted))
    elif any(message.parts for message in found):
        _publish(publisher, found, None)


def _publish(publisher: Publisher, messages: Sequence[Encoded], marked: _Marked | None) -> None:
    publisher.begin()
    try:
        publisher.produce(_batches(messages))
        if marked is not None:
            publisher.mark(marked.where, marked.marker.as_offset())
    except Exception:
        publisher.give_up()
        raise
    # From here on nobody but the coordinator knows whether it is committed.
    publisher.end()


def _encoded(messages: Sequence[Any]) -> list[Encoded]:
    found = [message for message in messages if isinstance(message, Encoded)]
    if len(found) != len(messages):
        raise RuntimeError("A task has given no rows, and Spark commits its batch all the same.")
    return found


def _batches(messages: Sequence[Encoded]) -> dict[TopicPartition, Iterable[bytearray]]:
    """The batches of each partition, in the order of the tasks; read when it is their turn."""
    parts: dict[TopicPartition, list[Any]] = {}
    for message in messages:
        for partition, data in message.read():
            parts.setdefault(partition, []).append(data)
    return {partition: _split(found) for partition, found in parts.items()}


def _split(parts: Sequence[Any]) -> Iterator[bytearray]:
    for data in parts:
        yield from split_batches(data())
