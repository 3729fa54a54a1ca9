"""`python -m tests.bench.spark`: rows a second through Spark, with our source and sink and with Spark's own
Kafka connector, by turns on local[2].

Sources read one topic of four partitions with values of 100 bytes; the query is sum(length(value)), which
needs every row. Sinks write as many rows of a range to another topic. spark_json.py has the row of a topic of
JSON that becomes a table, spark_growth.py those about larger topics. All settings are the defaults. The jars
of the connector come from Maven (tests/spark_kafka/pom.xml)."""

import argparse
import contextlib
import datetime
import functools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from tests.bench import frames, loads
from tests.bench.connection import Connection
from tests.bench.driver import Driver
from tests.bench.figures import Sample
from tests.bench.goals import OURS, Goal
from tests.bench.loads import Limits, Target
from tests.bench.machine import machine, versions
from tests.bench.peers import Peer
from tests.bench.pictures import draw
from tests.bench.report import print_run, progress
from tests.bench.results import Run
from tests.bench.rows import Rounds, Row
from tests.bench.runner import run_row
from tests.bench.spark_growth import growth_rows
from tests.bench.spark_json import json_row
from tests.bench.spark_pipelines import pipeline_rows
from tests.bench.stage import Size, Stage, topic_on
from tests.spark_kafka.jars import JarsMissing, connector_jars

from barnabas.spark.session import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
RATE = "rows_per_second"
# Pipelines run for longer: they get so many times fewer records.
PIPELINE_SHARE = 5
STOCK, VALUE_ONLY = "stock connector", "barnabas, value only"
# Contestant: format, and the schema that narrows what is read.
SOURCES: dict[str, tuple[str, str | None]] = {
    OURS: ("barnabas", None),
    VALUE_ONLY: ("barnabas", "value binary"),
    STOCK: ("kafka", None),
}
SINKS = {OURS: "barnabas", STOCK: "kafka"}


def open_session(jars: list[str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python()
    settings = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(jars),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read_all(
    spark: "SparkSession", bootstrap: str, topic: str, how: tuple[str, str | None], rows: int
) -> Sample:
    form, schema = how
    reader = spark.read.format(form).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    if schema is not None:
        reader = reader.schema(schema)
    started = time.perf_counter()
    total = reader.load().selectExpr("sum(length(value))").first()
    seconds = time.perf_counter() - started
    if total is None or total[0] != rows * frames.RECORD_BYTES:
        raise RuntimeError(f"{form} read {total and total[0]} bytes, not {rows * frames.RECORD_BYTES}")
    return Sample({RATE: rows / seconds})


def write_all(spark: "SparkSession", bootstrap: str, topic: str, form: str, rows: int) -> Sample:
    before = records_in(bootstrap, topic)
    values = spark.range(0, rows, 1, PARTITIONS).selectExpr(
        "CAST(id AS STRING) AS key", f"repeat('x', {frames.RECORD_BYTES}) AS value"
    )
    writer = values.write.format(form).option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    started = time.perf_counter()
    writer.mode("append").save()
    seconds = time.perf_counter() - started
    if (written := records_in(bootstrap, topic) - before) != rows:
        raise RuntimeError(f"{form} wrote {written} rows, not {rows}")
    return Sample({RATE: rows / seconds})


def records_in(bootstrap: str, topic: str) -> int:
    total = 0
    with Connection(bootstrap) as connection:
        for partition in range(PARTITIONS):
            answer = connection.ask(frames.list_offsets_request(topic, partition, frames.LATEST))
            error, offset = frames.listed_offset(topic, answer)
            if error:
                raise RuntimeError(f"the end of partition {partition} was answered with error {error}")
            total += offset
    return total


def fill(driver: Driver, target: Target, topic: str, rows: int) -> int:
    """Write about so many records in batches of 16 KB; returns how many there are."""
    batch_bytes = len(frames.value_batch(frames.RECORDS_IN_16K))
    limits = Limits(600, rows // frames.RECORDS_IN_16K * batch_bytes)
    load = driver.run(loads.produce, target, topic, frames.RECORDS_IN_16K, limits, PARTITIONS)
    return load.requests * frames.RECORDS_IN_16K


def spark_rows(spark: "SparkSession", peer: Peer, rows: int, json_rows: int) -> list[Row]:
    bootstrap = peer.target.bootstrap

    @contextlib.contextmanager
    def sources(stage: Stage) -> Iterator[Rounds]:
        with topic_on(peer, "bench-spark", PARTITIONS) as topic:
            count = fill(stage.driver, peer.target, topic, rows)
            yield {
                name: functools.partial(read_all, spark, bootstrap, topic, how, count)
                for name, how in SOURCES.items()
            }

    @contextlib.contextmanager
    def sinks(stage: Stage) -> Iterator[Rounds]:
        with topic_on(peer, "bench-spark-sink", PARTITIONS) as topic:
            yield {
                name: functools.partial(write_all, spark, bootstrap, topic, form, rows)
                for name, form in SINKS.items()
            }

    return [
        Row("spark-source", "spark", f"sum(length(value)) of {rows:,} records", RATE, sources,
            (Goal(RATE, 2.0, STOCK), Goal(RATE, 2.0, STOCK, VALUE_ONLY))),
        Row("spark-sink", "spark", f"{rows:,} rows of 100 bytes with keys", RATE, sinks,
            (Goal(RATE, 1.0, STOCK),)),
        json_row(spark, peer, json_rows),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="records read and written per round")
    parser.add_argument("--json-records", type=int, default=3_000_000, help="orders that become a table")
    parser.add_argument(
        "--rows", nargs="+", help="only these rows, such as spark-json; growth: rows about larger topics"
    )
    parser.add_argument(
        "--growth-records", type=int, default=50_000_000, help="the largest topic of the row spark-rows"
    )
    parser.add_argument(
        "--growth-rounds", type=int, default=1, help="measured rounds of the rows about growth"
    )
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds, after the warm-up")
    options = parser.parse_args()
    try:
        jars = connector_jars()
    except JarsMissing as reason:
        sys.exit(str(reason))
    console = Console()
    date, about = datetime.datetime.now().isoformat(timespec="seconds"), machine()
    with Stage.open([OURS], Size(rounds=options.rounds)) as stage:
        spark = open_session(jars)
        every = spark_rows(spark, stage.peer(OURS), options.records, options.json_records)
        every += pipeline_rows(spark, stage.peer(OURS), options.records // PIPELINE_SHARE)
        growing = growth_rows(spark, stage.peer(OURS), options.growth_records, options.growth_rounds)
        chosen = options.rows or [row.name for row in every]
        rows = [row for row in every + growing if row.name in chosen or row.group in chosen]
        with progress(console, len(rows)) as (notify, _):
            results = [run_row(row, stage, notify) for row in rows]
        spark.stop()
    connector = {"stock connector": Path(next(jar for jar in jars if "spark-sql-kafka" in jar)).stem}
    settings = {
        "records": options.records,
        "json_records": options.json_records,
        "rounds": options.rounds,
    }
    run = Run(date, about, versions() | connector, settings, results)
    print_run(console, run)
    path = run.save()
    console.print("Written:", path, *draw(run, path))


if __name__ == "__main__":
    main()
