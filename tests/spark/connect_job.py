"""A job for a Spark Connect server, run by a test in a process of its own: python connect_job.py SERVERS
TOPIC DIR"""

import sys

from pyspark.sql import SparkSession


def main(servers: str, topic: str, folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    counted = spark.read.format("barnabas").options(**options).load().selectExpr("count(value)").first()
    assert counted is not None
    print("batch", counted[0])
    stream = spark.readStream.format("barnabas").options(**options, startingOffsets="earliest").load()
    query = (
        stream.writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("stream", spark.read.parquet(f"{folder}/out").count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
