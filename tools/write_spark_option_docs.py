"""Write docs/spark-options.md from the table: `python -m tools.write_spark_option_docs`."""

from collections.abc import Iterable
from pathlib import Path

from barnabas.spark.options import REFUSED_SETTINGS, SOURCE_OPTIONS, Option

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
    }
)


def document() -> str:
    return "".join([INTRODUCTION, "\n## Reading\n\n", _table(SOURCE_OPTIONS), "\n## Refused\n\n", _refused()])


def _table(options: Iterable[Option]) -> str:
    lines = ["| option | meaning | value | default | used in |", "|---|---|---|---|---|"]
    for option in options:
        name = f"`{option.name}`" + (" *ours*" if option.name in NEW else "")
        default = "" if option.default is None else f"`{str(option.default).lower()}`"
        cells = (name, option.doc, option.kind.allowed, default, option.used_in)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _refused() -> str:
    lines = [
        f"- `kafka.{name}`: {reason}."
        for name, reason in REFUSED_SETTINGS.items()
        if "write it" not in reason
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    TARGET.write_text(document())


if __name__ == "__main__":
    main()
