"""Write docs/spark-options.md from the table: `python -m tools.write_spark_option_docs`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.spark.options import REFUSED_SETTINGS, SINK_OPTIONS, SOURCE_OPTIONS, Option
from barnabas.spark.sink.settings import REFUSED_SETTINGS as REFUSED_FOR_SINKS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "spark-options.md"

INTRODUCTION = """\
# Options of the Spark data source

Written by `python -m tools.write_spark_option_docs` from the table in `src/barnabas/spark/options.py`; change
that.

```python
orders = (
    spark.read.format("barnabas")  # or spark.readStream
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", "orders")
    .load()
)
```

Spark finds the format if the package is installed for the Python that runs Spark's workers
(`PYSPARK_PYTHON`); no jar is needed. Columns and options are those of Spark's own Kafka connector, so to move
a query you only change the name of its format. New options are marked *ours*. A wrong or unknown option is an
error.

- **Columns**: `key`, `value` (binary), `topic`, `partition`, `offset`, `timestamp`, `timestampType`, and
  `headers` if requested. Reading fewer columns is faster: set `columns`, or give a schema (`.schema("value
  binary, offset long")`).
- **Settings of the client** are options that begin with `kafka.`, such as `kafka.request.timeout.ms`.
- **Security**: `kafka.security.protocol`, `kafka.sasl.jaas.config`, `kafka.ssl.truststore.location` and so
  on, as for Spark's own connector; see [security.md](security.md). The driver and all executors need the
  files that they name.
- **With `decode`** the columns are those of the value. The record's own columns are `_key`, `_offset` and so
  on, if the schema names them; `_error` says why a value could not be decoded (`badRecords=null`). Arrow
  reads JSON in whole batches: a value is bad if a field does not have the type of its column, fields without
  a column are ignored, and times are ISO 8601. CSV, Avro and Protobuf are read value by value.
- **Dead letters** (`badRecords=dlq:<topic>`) are written by tasks: a task that is tried again, or a query
  that reads its source twice (as for a sort), writes them again. Their headers are `barnabas.error`,
  `barnabas.topic`, `barnabas.partition`, `barnabas.offset` and `barnabas.timestamp`.
- **A stream that fails in its first batch** reads the same offsets when it is started again. With
  `commitOffsets` it also begins at the same offsets if it was stopped before that batch was planned.
- **Streams that start at the same moment** can make Spark 4 fail with "Task not serializable" until it is
  started again: all streams share one data source, and each writes into it when it starts. Call
  `register_own_source(spark)` of `barnabas.spark.session` before you load each stream. Pipelines do so.
- **Records that were deleted** before the query had read them make it fail with an error that names them,
  unless `failOnDataLoss` is false.
"""

NEW = frozenset(
    {
        "commitOffsets",
        "maxBytesPerTrigger",
        "columns",
        "isolation.level",
        "decode",
        "envelope",
        "csvDelimiter",
        "protobufDescriptors",
        "protobufMessage",
        "protobufFraming",
        "metadataPrefix",
        "avroSchema",
        "avroFraming",
        "schema.registry.url",
        "schema.registry.subject",
        "schema.registry.basic.auth.user.info",
        "badRecords",
        "batchRows",
        "batchBytes",
        "fetchBytes",
        "pushFilters",
        "includeTimestamp",
        "delivery",
        "transactional.id",
        "runId",
        "queryId",
        "batchId",
        "markerTopic",
        "onMissingMarker",
        "onForeignMarker",
        "stagingBytes",
        "stagingDir",
    }
)

WRITING = """
## Writing

```python
(
    enriched.selectExpr("order_id AS key", "to_json(struct(*)) AS value")
    .writeStream.format("barnabas")  # or .write, with .mode("append")
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("topic", "enriched")
    .option("delivery", "exactly-once")
    .option("transactional.id", "orders-enriched")
    .option("checkpointLocation", "state/enriched")
    .start()
)
```

- **Columns**: `value` and, if you like, `key` (string or binary; a null value is a tombstone), `headers`
  (array of struct of key and value), `topic` (if the option is not set), and `partition` (int). If
  `partition` is null, the murmur2 hash of the key chooses the partition, as in Kafka's own clients; rows
  without a key are spread over the partitions, a batch each. `offset` and `timestampType` are ignored,
  `timestamp` is used with `includeTimestamp`, and other columns are an error.
- **At least once**: tasks write with idempotent producers while the query runs. A task, batch or job that is
  tried again writes its rows again.
- **Exactly once**: tasks only encode their rows. When a batch is complete, the driver fences earlier users of
  its transactional.id and reads the marker (the committed offset and metadata of the group with that name,
  for partition 0 of the topic). If the marker shows that the batch was written, it is skipped; otherwise all
  rows and the new marker are written in one transaction. So the rows of a batch become visible together, and
  once, to consumers with `read_committed`, whichever process is killed at any time, even if a batch that is
  tried again has different rows. A job (`df.write`) is one transaction; if it runs twice, it writes twice,
  unless it has a runId, or in foreachBatch a queryId and a batchId.
- **Output modes** of streams are `append` and `complete`: Spark does not allow `update` for sinks written in
  Python.
- **The group of the marker** appears in the list of groups; its lag means nothing. If you delete it or its
  offset, the marker is lost.
- **Permissions** for exactly once, if the cluster checks them: use the transactional.id, read the group with
  the same name, and write to the topics.
- If a driver dies, consumers with `read_committed` wait at the first record of its transaction until the
  driver is started again or `kafka.transaction.timeout.ms` has passed.
- All rows of a batch go through the driver, at about 100 MB/s encoded: compress them
  (`kafka.compression.type`), and limit batches with `maxOffsetsPerTrigger` or `maxBytesPerTrigger`.

"""


def document() -> str:
    parts = [INTRODUCTION, "\n## Reading\n\n", _table(SOURCE_OPTIONS), WRITING, _table(SINK_OPTIONS)]
    parts += ["\n## Refused\n\nWhen reading:\n\n", _refused(REFUSED_SETTINGS)]
    return "".join([*parts, "\nWhen writing:\n\n", _refused(REFUSED_FOR_SINKS)])


def _table(options: Iterable[Option]) -> str:
    lines = ["| option | meaning | value | default | used in |", "|---|---|---|---|---|"]
    for option in options:
        name = f"`{option.name}`" + (" *ours*" if option.name in NEW else "")
        default = "" if option.default is None else f"`{str(option.default).lower()}`"
        cells = (name, option.doc, option.kind.allowed, default, option.used_in)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _refused(settings: Mapping[str, str]) -> str:
    own = ("bootstrap.servers", "group.id")
    lines = [f"- `kafka.{name}`: {reason}." for name, reason in settings.items() if name not in own]
    return "\n".join(lines) + "\n"


def main() -> None:
    TARGET.write_text(document())


if __name__ == "__main__":
    main()
