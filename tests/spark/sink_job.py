"""A streaming query that copies numbers from topic to topic, exactly once; run by tests in its own process
group, which they kill: python sink_job.py SERVERS SOURCE TARGET DIR ROWS-PER-BATCH STAGING-BYTES"""

import sys

from pyspark.sql import SparkSession


def main(servers: str, source: str, target: str, folder: str, rows: str, staging: str) -> None:
    spark = (
        SparkSession.builder.master("local[2,4]")  # a task is tried four times
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    stream = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows)
        .option("columns", "key,value")
        .load()
    )
    query = (
        stream.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("delivery", "exactly-once")
        .option("transactional.id", f"copy to {target}")
        .option("stagingBytes", staging)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
