"""Writes streaming DataFrames to tables: tasks append or upsert; each batch once."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, BinaryType, StringType, StructField

from barnabas.spark.tables.target import Mark, TableTarget

FORMAT = "barnabas_table"
# The bytes of a value whose type has a fixed size, at most.
VALUE_BYTES = 16


def write_stream(
    frame: DataFrame, target: TableTarget, checkpoint: str, name: str, trigger: dict[str, Any]
) -> Any:
    """Start a query that writes the frame to the table."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
    if target.mode == "append":
        return writer.format(FORMAT).options(**target.as_options()).outputMode("append").start()
    return (
        writer.foreachBatch(EachBatch(partial(upsert, target=target), checkpoint))
        .outputMode("update")
        .start()
    )


def write_batch(frame: DataFrame, target: TableTarget, mark: Mark) -> None:
    """Write one batch of a stream in foreachBatch, unless the table has the mark already."""
    if target.mode == "append":
        writer = frame.write.format(FORMAT).options(**target.as_options(), **mark.as_options())
        writer.mode("append").save()
    else:
        upsert(frame, target, mark)


class EachBatch:
    """The function for foreachBatch: calls `write(frame, mark=...)`. With Spark Connect it is pickled and
    runs in a process of the server.

    Spark passes the number of the batch but not the id of the query, which is read from the checkpoint: a new
    query counts its batches from 0 again and must not be taken for the old one."""

    def __init__(self, write: Callable[..., None], checkpoint: str) -> None:
        self._write = write
        self._checkpoint = checkpoint
        self._query: str | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self._query is None:
            metadata = frame.sparkSession.read.text(f"{self._checkpoint}/metadata").head()
            assert metadata is not None, "Spark writes the metadata of a query before its first batch"
            self._query = str(json.loads(metadata[0])["id"])
        self._write(frame, mark=Mark(self._query, batch))


def upsert(frame: DataFrame, target: TableTarget, mark: Mark) -> None:
    """Replace rows of the table by the newest row of each key; rows marked as deleted remove them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.spark.tables.merging import merge_name, upsert_by_merge
    from barnabas.spark.tables.store import patiently, store_of
    from barnabas.spark.tables.upsert_tasks import upsert_in_tasks
    from barnabas.spark.tables.upserting import fits_here, upsert_here, upsert_into

    store = store_of(target)
    if store.last_batch(mark.query) >= mark.batch:
        return
    into = upsert_into(store, target, to_arrow_schema(frame.schema, timezone="UTC"), mark)
    conf = frame.sparkSession.conf
    merged = merge_name(lambda name: conf.get(name, "") or "", target)
    if merged is not None:
        upsert_by_merge(into, frame, merged)
        return
    with _kept(frame):
        rows, size = _size(frame)
        if fits_here(rows, size):
            batch = frame.toArrow()
            if patiently(lambda: upsert_here(into, batch)):
                return
        upsert_in_tasks(into, frame, rows, size)


@contextmanager
def _kept(frame: DataFrame) -> Iterator[None]:
    """Keep the rows of a batch, which is used several times, unless the caller does that already."""
    if frame.storageLevel.useMemory or frame.storageLevel.useDisk:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def _size(frame: DataFrame) -> tuple[int, int]:
    """The rows of a batch and about how many bytes they have."""
    sizes = [F.coalesce(_bytes(field), F.lit(0)) for field in frame.schema]
    row = frame.agg(F.count("*"), F.coalesce(F.sum(sum(sizes, F.lit(0))), F.lit(0))).head()
    assert row is not None, "an aggregation without keys has one row"
    return int(row[0]), int(row[1])


def _bytes(field: StructField) -> Column:
    column = F.col(f"`{field.name}`")
    if isinstance(field.dataType, StringType | BinaryType):
        return F.octet_length(column)
    if isinstance(field.dataType, AtomicType):
        return F.lit(VALUE_BYTES)
    return F.octet_length(F.to_json(column))
