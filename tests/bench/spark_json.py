"""The row `spark-json`: a topic of JSON orders becomes a table, by our pipeline and by Spark's own connector.

Both read the same topic in a streaming query that ends when it has read everything. Ours decodes the values
and appends them to a Delta table. Spark's connector decodes them with from_json and appends to Parquet files,
because Delta's connector for Spark is a jar that is not on PyPI; so it has less to do. Rates are those of the
batches, as Spark reports them, and those with the start of the query. CPU time is that of all processes,
the broker's too."""

import contextlib
import datetime
import functools
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.figures import Sample
from tests.bench.goals import OURS, Goal
from tests.bench.peers import Peer
from tests.bench.rows import Rounds, Row
from tests.bench.stage import Stage, topic_on
from tests.bench.usage import cpu_seconds
from tools.orders.events import CATEGORIES, OPENING

import barnabas
from barnabas.spark.pipeline.definition import Pipeline, Source, Step, TableSink
from barnabas.spark.pipeline.queries import Place, planned_queries
from barnabas.spark.queries import reports_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
PART_ROWS = 100_000
RATE, RATE_WITH_START, CPU = "rows_per_second", "rows_per_second_with_start", "cpu_us_per_record"
STOCK, WITH_STEP = "stock connector", "barnabas, with a step"
SCHEMA = "order_id string, customer string, category string, amount double, at timestamp"
# A step that Spark must evaluate, and that keeps every row.
STEP = Step("kept", sql="SELECT * FROM orders WHERE amount > 0")


def order(number: int, chance: random.Random) -> bytes:
    """An order as tools/orders sends it."""
    category = chance.choice(list(CATEGORIES))
    moment = OPENING + datetime.timedelta(milliseconds=number)
    event = {
        "order_id": f"o-{number}",
        "customer": f"c-{chance.randrange(500)}",
        "category": category,
        "amount": round(CATEGORIES[category] * chance.uniform(0.5, 4.0), 2),
        "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return json.dumps(event).encode()


def orders_table(numbers: range) -> Any:
    """Keys and values of orders; the same ones for the same numbers."""
    import pyarrow

    chance = random.Random(numbers.start)
    keys = pyarrow.array([b"o-%d" % number for number in numbers])
    return pyarrow.table({"key": keys, "value": pyarrow.array([order(number, chance) for number in numbers])})


def fill(bootstrap: str, topic: str, rows: int) -> None:
    with barnabas.Producer(bootstrap_servers=bootstrap, compression_type="lz4") as producer:
        for first in range(0, rows, PART_ROWS):
            table = orders_table(range(first, min(first + PART_ROWS, rows)))
            producer.send_batch(topic, table).result(60)


def with_pipeline(
    spark: "SparkSession", bootstrap: str, topic: str, steps: tuple[Step, ...], directory: Path
) -> Any:
    """Start our query; returns it."""
    pipeline = Pipeline(
        name="bench",
        bootstrap=bootstrap,
        checkpoint="checkpoint",
        sources={"orders": Source(topics=(topic,), decode="json", schema=SCHEMA)},
        steps=steps,
        sinks=(TableSink(steps[-1].name if steps else "orders", path="table"),),
    )
    (planned,) = planned_queries(Place(spark, pipeline, directory), once=True)
    return planned.start()


def with_connector(spark: "SparkSession", bootstrap: str, topic: str, directory: Path) -> Any:
    from pyspark.sql import functions as F

    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    records = records.option("subscribe", topic).option("startingOffsets", "earliest")
    decoded = records.load().select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row"))
    writer = decoded.select("row.*").writeStream.format("parquet").option("path", str(directory / "table"))
    return (
        writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    )


def rows_in(directory: Path) -> int:
    """The rows in the files that were written. All queries only append, so every file counts."""
    from pyarrow import parquet

    files = directory.glob("table/**/*.parquet")
    return sum(parquet.ParquetFile(path).metadata.num_rows for path in files)


def measure(start: Any, rows: int) -> Sample:
    """Run a query to its end in an empty directory, and count what it has written."""
    directory = Path(tempfile.mkdtemp(prefix="spark-json-"))
    try:
        began, cpu = time.perf_counter(), cpu_seconds(os.getpid())
        query = start(directory)
        query.awaitTermination()
        seconds = time.perf_counter() - began
        batch_ms = sum(report["durationMs"]["triggerExecution"] for report in reports_of(query))
        if (written := rows_in(directory)) != rows:
            raise RuntimeError(f"{written} rows were written, not {rows}")
        return Sample(
            {
                RATE: rows / batch_ms * 1000,
                RATE_WITH_START: rows / seconds,
                CPU: (cpu_seconds(os.getpid()) - cpu) * 1e6 / rows,
            }
        )
    finally:
        shutil.rmtree(directory)


def json_row(spark: "SparkSession", peer: Peer, rows: int) -> Row:
    bootstrap = peer.target.bootstrap

    @contextlib.contextmanager
    def tables(stage: Stage) -> Iterator[Rounds]:
        with topic_on(peer, "bench-spark-json", PARTITIONS) as topic:
            fill(bootstrap, topic, rows)
            starts = {
                OURS: functools.partial(with_pipeline, spark, bootstrap, topic, ()),
                WITH_STEP: functools.partial(with_pipeline, spark, bootstrap, topic, (STEP,)),
                STOCK: functools.partial(with_connector, spark, bootstrap, topic),
            }
            yield {name: functools.partial(measure, start, rows) for name, start in starts.items()}

    return Row("spark-json", "spark", f"{rows:,} JSON orders of a topic appended to a table", RATE, tables,
               (Goal(RATE, 3.0, STOCK), Goal(CPU, 0.5, STOCK)))  # fmt: skip
