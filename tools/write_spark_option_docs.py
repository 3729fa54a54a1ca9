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

Spark finds the format by itself once the package is installed for the Python that runs Spark's workers
(`PYSPARK_PYTHON`): there is no jar. Columns, options and their meaning are those of Spark's own Kafka
connector, so a query is moved by changing the name of its format; what is new is marked by *ours*. A wrong or
unknown option is an error.

- **Columns**: `key`, `value` (binary), `topic`, `partition`, `offset`, `timestamp`, `timestampType`, and
  `headers` on request. Reading fewer is faster: give `columns`, or a schema (`.schema("value binary, offset
  long")`).
- **Settings of the client** are given with `kafka.` before their names: `kafka.request.timeout.ms`.
- **With `decode`** the columns are those of the value, and the record's own are `_key`, `_offset` and so on,
  where the schema names them; `_error` says why a value could not be decoded (`badRecords=null`). JSON is
  read by Arrow, whole batches at a time: a field that is no value of its column's type makes a value bad,
  fields without a column are passed over, and times are ISO 8601. Avro is read value by value.
- **Dead letters** (`badRecords=dlq:<topic>`) are written by the tasks that find them: a task that is tried
  again, or a query that reads its source twice (a sort does), writes them again. Their headers are
  `barnabas.error`, `barnabas.topic`, `barnabas.partition`, `barnabas.offset` and `barnabas.timestamp`.
- **A stream that fails in its first batch** reads the very same offsets when it is started again. With
  `commitOffsets` it also begins where it began before, if it was stopped before that batch was planned.
- **Records that are gone** before they were read make a query fail with a sentence that names them, unless
  `failOnDataLoss` is false.
"""

NEW = frozenset(
    {
        "commitOffsets",
        "maxBytesPerTrigger",
        "columns",
        "isolation.level",
        "decode",
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

- **Columns**: `value` and perhaps `key` (string or binary; a null value is a tombstone), `headers`
  (array of struct of key and value), `topic` (where the option is not given), `partition` (int; where it is
  null, the murmur2 hash of the key decides, as with Kafka's own clients, and without a key the partitions
  have their turns, a batch each). Other columns are an error, but for `offset` and `timestampType`, which are
  passed over, and `timestamp`, which counts with `includeTimestamp`.
- **At least once**: tasks write with idempotent producers, while the query runs. A task, batch or job that is
  tried again writes its rows again.
- **Exactly once**: tasks only encode their rows. When all of a batch is there, the driver fences whoever had
  its transactional.id before, looks at the marker (the offset and metadata that the group of that name has
  for partition 0 of the topic), and passes over a batch that it names; else all rows and the new marker are
  written in one transaction. So the rows of a batch appear together, and once, to readers with
  `read_committed`, whatever is killed when, and no matter whether a batch would come out the same when it is
  tried again. A job (`df.write`) is one transaction; if it is run twice it writes twice.
- **Output modes** of streams are `append` and `complete`: Spark offers sinks written in Python no `update`.
- **The group of the marker** is listed with the others; what tools say of its lag means nothing. Deleting it,
  or its offset, is losing the marker.
- **Permissions** for exactly once, where there are any: to use the transactional.id and to read the group of
  the same name, beside writing to the topics.
- Until a transaction whose driver died is ended, by the driver's next start or after
  `kafka.transaction.timeout.ms`, readers with `read_committed` wait at its first record.
- All rows of a batch pass through the driver, about 100 MB/s as encoded: compress them
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
