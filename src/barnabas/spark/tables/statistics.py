"""The smallest and largest values of the columns of a Parquet file, from its metadata. Readers and upserts
skip files by them. Touches no files."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow

# As many columns as other writers of Delta tables have statistics for.
COLUMNS_MAX = 32
# Longer values would make the log of a table large.
LENGTH_MAX = 256
# Writers of Delta tables may cut timestamps to milliseconds.
CUT = timedelta(milliseconds=1)


class Statistics(NamedTuple):
    """The statistics of one column of a file; nulls are only counted."""

    low: Any
    high: Any
    nulls: int


def has_bounds(kind: pyarrow.DataType) -> bool:
    """Whether bounds of this type are used. Those of floats are not: they do not count NaN."""
    types = pyarrow.types
    kinds = (types.is_integer, types.is_string, types.is_large_string, types.is_date, types.is_timestamp)
    return any(is_kind(kind) for is_kind in kinds)


def statistics_of(metadata: Any) -> dict[str, Statistics]:
    """The statistics of the first columns of a file, from pyarrow.parquet.FileMetaData; without those of
    nested columns and of columns that have only nulls."""
    schema = metadata.schema.to_arrow_schema()
    found: dict[str, Statistics] = {}
    places = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    for field in list(schema)[:COLUMNS_MAX]:
        if field.name in places and has_bounds(field.type):
            groups = [
                metadata.row_group(group).column(places[field.name]).statistics
                for group in range(metadata.num_row_groups)
            ]
            column = _joined(groups)
            if column is not None:
                found[field.name] = column
    return found


def _joined(groups: list[Any]) -> Statistics | None:
    if any(group is None or not group.has_null_count for group in groups):
        return None
    nulls = sum(group.null_count for group in groups)
    filled = [group for group in groups if group.num_values]
    if not filled or not all(group.has_min_max for group in filled):
        return None
    low, high = min(group.min for group in filled), max(group.max for group in filled)
    is_long = isinstance(high, str) and max(len(low), len(high)) > LENGTH_MAX
    return None if is_long else Statistics(low, high, nulls)


def as_delta(rows: int, columns: Mapping[str, Statistics]) -> dict[str, Any]:
    """The statistics of a file as they are in the log of a Delta table."""
    return {
        "numRecords": rows,
        "minValues": {name: _as_json(column.low) for name, column in columns.items()},
        "maxValues": {name: _as_json(column.high) for name, column in columns.items()},
        "nullCount": {name: column.nulls for name, column in columns.items()},
    }


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        zone = "" if value.tzinfo is None else "Z"
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") + zone
    return value.isoformat() if isinstance(value, date) else value


def widened(high: Any) -> Any:
    """An upper bound from the log of a Delta table, so that no value is above it."""
    return high + CUT if isinstance(high, datetime) else high
