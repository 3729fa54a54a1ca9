"""Views are not stored; sinks are written exactly once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
BOOTSTRAP = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
TABLE = os.environ.get("ORDERS_TABLE", "/tmp/barnabas-declarative/orders")


@dp.temporary_view
def orders():
    return (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("isolation.level", "read_committed")
        .option("decode", "json")
        .schema("id long, category string, amount double")
        .load()
    )


dp.create_sink("orders_table", "barnabas_table", {"path": TABLE, "format": "delta"})


@dp.append_flow(target="orders_table")
def write_orders():
    return spark.readStream.table("orders")


dp.create_sink(
    "large_orders",
    "barnabas",
    {
        "kafka.bootstrap.servers": BOOTSTRAP,
        "topic": "large-orders",
        "delivery": "exactly-once",
        # A name for the flow that stays the same.
        "transactional.id": "declarative-large-orders",
    },
)


@dp.append_flow(target="large_orders")
def write_large_orders():
    large = spark.sql("SELECT * FROM STREAM(orders) WHERE amount >= 10")
    return large.select(F.col("id").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))
