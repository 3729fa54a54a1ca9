"""The table that poll_arrow gives."""

from functools import cache
from typing import Any

from barnabas.records.arrow import RecordColumns, pyarrow

POLLED = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@cache
def _schema() -> Any:
    arrow = pyarrow()
    pair = arrow.struct([("key", arrow.string()), ("value", arrow.binary())])
    return arrow.schema(
        [
            ("topic", arrow.dictionary(arrow.int32(), arrow.string())),
            ("partition", arrow.int32()),
            ("offset", arrow.int64()),
            ("timestamp", arrow.timestamp("ms")),
            ("key", arrow.binary()),
            ("value", arrow.binary()),
            arrow.field("headers", arrow.list_(pair), nullable=False),
        ]
    )


def table_of(found: RecordColumns | None) -> Any:
    """The pyarrow.Table of what was taken; without rows where nothing was."""
    columns = RecordColumns(POLLED) if found is None else found
    return pyarrow().Table.from_batches([columns.finish(schema=_schema())])
