"""Exactly once, on the driver: what commit() does with the results of the tasks."""

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
    """Write a batch of a stream, unless the marker says that it was written before."""
    results = _encoded(messages)
    task = results[0].task if results else Task()
    _publish_once(settings, results, Marker(batch, task.query, task.run))
    sweep_batches(settings, batch)


def _publish_once(settings: WriteSettings, results: Sequence[Encoded], due: Marker) -> None:
    where = TopicPartition(settings["markerTopic"] or str(settings.topic), 0)
    publisher = Publisher(cluster_of(settings.client), settings.transactional_id)
    publisher.fence()
    last = marker_of(publisher.marker(where))
    if is_due(last, due, settings):
        if not due.query and last is not None:
            # In a batch without tasks there is nothing that names the query.
            due = due._replace(query=last.query)
        before = 0 if last is None else last.written
        due = due._replace(written=before + sum(each.records for each in results))
        _publish(publisher, results, _Marked(where, due))


def commit_job(settings: WriteSettings, messages: Sequence[Any]) -> None:
    """Write a job in one transaction. Without a runId or batchId there is no marker, and a second run writes
    again."""
    results = _encoded(messages)
    if settings["batchId"] is not None:
        _publish_once(settings, results, Marker(settings["batchId"], settings["queryId"]))
        return
    publisher = Publisher(cluster_of(settings.client), settings.transactional_id)
    publisher.fence()
    if settings["runId"] is not None:
        where, due = TopicPartition(str(settings.topic), 0), Marker(0, str(settings["runId"]))
        last = marker_of(publisher.marker(where))
        if last is None or last.query != due.query:
            _publish(publisher, results, _Marked(where, due))
    elif any(message.parts for message in results):
        _publish(publisher, results, None)


def _publish(publisher: Publisher, messages: Sequence[Encoded], marked: _Marked | None) -> None:
    publisher.begin()
    try:
        publisher.produce(_batches(messages))
        if marked is not None:
            publisher.mark(marked.where, marked.marker.as_offset())
    except Exception:
        publisher.give_up()
        raise
    # If this fails, only the coordinator knows whether the transaction is committed.
    publisher.end()


def _encoded(messages: Sequence[Any]) -> list[Encoded]:
    results = [message for message in messages if isinstance(message, Encoded)]
    if len(results) != len(messages):
        raise RuntimeError("Spark commits a batch although a task gave no result.")
    return results


def _batches(messages: Sequence[Encoded]) -> dict[TopicPartition, Iterable[bytearray]]:
    """The batches of each partition, in the order of the tasks; they are read when they are sent."""
    parts: dict[TopicPartition, list[Any]] = {}
    for message in messages:
        for partition, data in message.read():
            parts.setdefault(partition, []).append(data)
    return {partition: _split(data) for partition, data in parts.items()}


def _split(parts: Sequence[Any]) -> Iterator[bytearray]:
    for data in parts:
        yield from split_batches(data())
