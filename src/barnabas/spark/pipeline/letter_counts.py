"""How many dead letters a pipeline has written, without Spark: the exactly-once sink counts the records of
each transactional id, in the transaction that writes them (sink/markers.py)."""

from collections.abc import Iterator
from pathlib import Path

from barnabas.client import Admin
from barnabas.ids import TopicPartition
from barnabas.spark.pipeline.definition import Pipeline, asides
from barnabas.spark.pipeline.grouping import letters_name
from barnabas.spark.pipeline.recording import Checkpoints
from barnabas.spark.sink.markers import marker_of


def letters_written(admin: Admin, pipeline: Pipeline, directory: Path, timeout: float) -> int | None:
    """The dead letters of all runs; None if the pipeline has no topic for them."""
    if pipeline.dead_letters is None:
        return None
    written = 0
    where = TopicPartition(pipeline.dead_letters, 0)
    for name in _writers(pipeline, directory):
        group = pipeline.transactional_id_of(name)
        committed = admin.list_consumer_group_offsets(group, [where], timeout=timeout)
        marker = marker_of(committed.get(where))
        written += 0 if marker is None else marker.written
    return written


def _writers(pipeline: Pipeline, directory: Path) -> Iterator[str]:
    """The names under which queries write dead letters: alone, or together with sinks."""
    for aside in asides(pipeline):
        yield aside.query
    for query in Checkpoints(pipeline, directory).record():
        yield letters_name(query)
