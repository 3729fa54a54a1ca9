"""Writes streaming DataFrames to tables: tasks append, or the driver upserts; each batch once."""

import json
from typing import Any

from pyspark.sql import DataFrame

from barnabas.spark.tables.target import DELETED, Mark, TableTarget

FORMAT = "barnabas_table"


def write_stream(
    frame: DataFrame, target: TableTarget, checkpoint: str, name: str, trigger: dict[str, Any]
) -> Any:
    """Start a query that writes the frame to the table."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
    if target.mode == "append":
        return writer.format(FORMAT).options(**target.as_options()).outputMode("append").start()
    return writer.foreachBatch(Upsert(target, checkpoint)).outputMode("update").start()


class Upsert:
    """The function for foreachBatch; it is pickled for the process that runs the query.

    Spark passes the number of the batch but not the id of the query, which is read from the checkpoint: a new
    query counts its batches from 0 again and must not be taken for the old one."""

    def __init__(self, target: TableTarget, checkpoint: str) -> None:
        self._target = target
        self._checkpoint = checkpoint
        self._query: str | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self._query is None:
            metadata = frame.sparkSession.read.text(f"{self._checkpoint}/metadata").head()
            assert metadata is not None, "Spark writes the metadata of a query before its first batch"
            self._query = str(json.loads(metadata[0])["id"])
        upsert(frame, self._target, Mark(self._query, batch))


def upsert(frame: DataFrame, target: TableTarget, mark: Mark) -> None:
    """Replace rows of the table by the newest row of each key; rows marked as deleted remove them."""
    from barnabas.spark.tables import store as stores
    from barnabas.spark.tables.fitting import fitting_of, newest_of_each_key

    store = stores.store_of(target)
    if store.last_batch(mark.query) >= mark.batch:
        return
    rows = newest_of_each_key(frame.toArrow(), target)
    deleted = rows.filter(rows.column(DELETED)) if DELETED in rows.column_names else rows.slice(0, 0)
    if DELETED in rows.column_names:
        import pyarrow.compute as compute

        rows = rows.filter(compute.invert(compute.fill_null(rows.column(DELETED), False)))
        rows, deleted = rows.drop_columns([DELETED]), deleted.drop_columns([DELETED])
    fitting = fitting_of(store.schema(), rows.schema, evolve=target.evolve)
    store.prepare(fitting)
    stores.upsert(store, fitting.fit(rows), fitting.fit(deleted), mark)
