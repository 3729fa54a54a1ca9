"""`barnabas backfill`: sends the rows of a table, or of a query on it, to a topic."""

import argparse
import uuid

from barnabas.cli.connecting import add_connection, await_broker, client_settings
from barnabas.cli.failures import ToolError
from barnabas.cli.spark_session import add_spark, spark_session

DESCRIPTION = """\
Send the rows of a table (Delta, Iceberg, Parquet), or of a query on it, to a topic. All records become
visible at once, in one transaction. With --run-id, a run that has succeeded is not sent again: repeat the
same command until it succeeds. It runs on Spark. See docs/jobs.md."""
EXAMPLES = """\
  barnabas backfill --table ./tables/orders --bootstrap-server localhost:9092 --topic orders \\
      --key order_id --run-id 2024-06-01
  barnabas backfill --table ./tables/orders --bootstrap-server localhost:9092 --topic large \\
      --sql "SELECT * FROM source WHERE amount > 1000" --key order_id --timestamp at
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--table", required=True, metavar="PATH", help="the path of the table")
    add("--format", choices=("delta", "iceberg", "parquet"), help="its format (detected)")
    add("--sql", metavar="QUERY", help="send the result of this query; the table is called source in it")
    add_connection(parser)
    add("--topic", required=True, help="the topic to write to; it must exist")
    add("--key", metavar="COLUMN", help="the column for the key, as text (none)")
    add(
        "--value",
        default="json",
        metavar="HOW",
        help="json (all columns), text:COLUMN, or columns: the rows have the columns key, value, headers,"
        " partition and timestamp of records (json)",
    )
    add("--timestamp", metavar="COLUMN", help="the column for the timestamp (now)")
    add("--run-id", metavar="NAME", help="the name of this run; a run is sent only once")
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    from barnabas.client.config import producer_config
    from barnabas.client.keys import PRODUCER_KEYS

    client = client_settings(options, keys=PRODUCER_KEYS)
    await_broker(producer_config(client).servers)
    run_id = options.run_id or uuid.uuid4().hex
    with spark_session(options, f"backfill {options.topic}") as spark:
        from barnabas.spark.jobs.backfill import Backfill, backfill, rows_of
        from barnabas.spark.jobs.clients import JobError
        from barnabas.spark.jobs.table_frames import read_table

        job = Backfill(client, options.topic, run_id, options.key, options.value, options.timestamp)
        try:
            table = read_table(spark, options.table, options.format)
            sent = backfill(rows_of(spark, table, options.sql), job)
        except JobError as error:
            raise ToolError(str(error)) from error
    if sent.was_done:
        print(f"Run {run_id} was sent before, so nothing was sent now.")
    else:
        print(f"{sent.rows:,} records sent to {options.topic} (run {run_id}).")
    return 0
