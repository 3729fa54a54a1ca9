"""DataFrames into tables: appended by tasks, or upserted on the driver; each batch once."""

import json
import uuid
from typing import Any

from pyspark.sql import DataFrame

from barnabas.spark.tables.target import DELETED, Mark, TableTarget

FORMAT = "barnabas_table"


def write_stream(
    frame: DataFrame, target: TableTarget, checkpoint: str, name: str, trigger: dict[str, Any]
) -> Any:
    """Start a query that keeps the table up with the frame."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
    if target.mode == "append":
        return writer.format(FORMAT).options(**target.as_options()).outputMode("append").start()
    return writer.foreachBatch(Upsert(target, checkpoint)).outputMode("update").start()


def write_batch(frame: DataFrame, target: TableTarget) -> None:
    if target.mode == "append":
        frame.write.format(FORMAT).options(**target.as_options()).mode("append").save()
    else:
        upsert(frame, target, Mark(f"job-{uuid.uuid4()}", 0))


class Upsert:
    """What foreachBatch calls; it travels to the process that runs the query.

    Spark tells it the batch but not the query, whose id stands in the checkpoint: a query that is begun
    anew counts its batches from 0 again, and must not be taken for the old one."""

    def __init__(self, target: TableTarget, checkpoint: str) -> None:
        self._target = target
        self._checkpoint = checkpoint
        self._query: str | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self._query is None:
            written = frame.sparkSession.read.text(f"{self._checkpoint}/metadata").head()
            assert written is not None, "Spark writes the metadata of a query before its first batch"
            self._query = str(json.loads(written[0])["id"])
        upsert(frame, self._target, Mark(self._query, batch))


def upsert(frame: DataFrame, target: TableTarget, mark: Mark) -> None:
    """The newest row of each key replaces the table's; one that is marked deleted takes it away."""
    from barnabas.spark.tables import store as stores
    from barnabas.spark.tables.fitting import fitting_of
    from barnabas.spark.tables.newest import newest_of_each_key

    store = stores.store_of(target)
    if store.last_batch(mark.query) >= mark.batch:
        return
    rows = newest_of_each_key(frame.toArrow(), target)
    gone = rows.filter(rows.column(DELETED)) if DELETED in rows.column_names else rows.slice(0, 0)
    if DELETED in rows.column_names:
        import pyarrow.compute as compute

        rows = rows.filter(compute.invert(compute.fill_null(rows.column(DELETED), False)))
        rows, gone = rows.drop_columns([DELETED]), gone.drop_columns([DELETED])
    fitting = fitting_of(store.schema(), rows.schema, evolve=target.evolve)
    store.prepare(fitting)
    stores.upsert(store, fitting.fit(rows), fitting.fit(gone), mark)
