"""`python -m tests.bench.spark`: rows a second through Spark, by our source and by the stock Kafka connector.

One topic of four partitions with values of 100 bytes, read on local[2] by turns; the figure is
sum(length(value)), which needs every row. With --stock the connector's jars are asked of Maven."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, PARTITIONS, VALUE_BYTES = "orders", 4, 100
# Resolved one by one: their own dependencies are Spark's already.
JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
# Name, format, schema.
OURS = [("barnabas, 7 columns", "barnabas", None), ("barnabas, value only", "barnabas", "value binary")]
STOCK = [("stock Kafka connector", "kafka", None)]


def fill(bootstrap: str, rows: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1_000_000, "acks": 1}
    producer = Producer(settings | {"queue.buffering.max.messages": 1_000_000})
    values = [os.urandom(VALUE_BYTES) for _ in range(1000)]
    for number in range(rows):
        while True:
            try:
                producer.produce(TOPIC, values[number % 1000], b"%d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def stock_jars(folder: Path) -> Iterator[str]:
    for artifact in JARS:
        command = [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={artifact}",
            f"-DoutputDirectory={folder}",
        ]
        subprocess.run(command, check=True)
    yield from map(str, folder.glob("*.jar"))


def session(jars: list[str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.jars", ",".join(jars))
    found = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def seconds(spark: "SparkSession", bootstrap: str, name: str, schema: str | None, rows: int) -> float:
    reader = spark.read.format(name).option("kafka.bootstrap.servers", bootstrap).option("subscribe", TOPIC)
    started = time.monotonic()
    found = (
        (reader if schema is None else reader.schema(schema)).load().selectExpr("sum(length(value))").first()
    )
    taken = time.monotonic() - started
    assert found is not None and found[0] == rows * VALUE_BYTES, "every row counts"
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=5, help="the first one warms up and is left out")
    parser.add_argument("--stock", action="store_true", help="the stock connector as well (needs mvn)")
    given = parser.parse_args()
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="barnabas-spark-"))
    try:
        with Broker({"num.partitions": str(PARTITIONS)}, subprocess=True) as broker:
            console.print(f"writing {given.rows} records of {VALUE_BYTES} bytes")
            fill(broker.bootstrap, given.rows)
            spark = session(list(stock_jars(folder)) if given.stock else [])
            readers = OURS + (STOCK if given.stock else [])
            taken: dict[str, list[float]] = {name: [] for name, _, _ in readers}
            for turn in range(given.rounds):
                console.print(f"round {turn + 1} of {given.rounds}, load {os.getloadavg()[0]:.1f}")
                for name, form, schema in readers:
                    taken[name].append(seconds(spark, broker.bootstrap, form, schema, given.rows))
            spark.stop()
    finally:
        shutil.rmtree(folder)
    table = Table("reader", "median rows/s", "best rows/s")
    for name, times in taken.items():
        best, middle = given.rows / min(times), given.rows / statistics.median(times[1:] or times)
        table.add_row(name, f"{middle / 1e6:.2f} M", f"{best / 1e6:.2f} M")
    console.print(table)


if __name__ == "__main__":
    main()
