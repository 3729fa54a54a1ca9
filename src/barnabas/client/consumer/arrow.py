"""Arrow tables from the buffers that the decode kernel fills. pyarrow is imported here and only here."""

from importlib import import_module
from typing import Any

from barnabas.kernels.record_decode import Columns, packed_flags


def table_of(found: tuple[Columns, list[str]] | None) -> Any:
    """The pyarrow.Table of what was taken; without rows where nothing was."""
    try:
        arrow = import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            "poll_arrow needs pyarrow: pip install 'barnabas[spark]' or pyarrow itself"
        ) from error
    columns, topics = found or (Columns(), [])
    count = columns.count
    numbers = _fixed(arrow, arrow.int32(), count, columns.topics)
    header_count = len(columns.header_value_flags)
    pairs = arrow.StructArray.from_arrays(
        [
            _variable(arrow, arrow.string(), header_count, columns.header_name_ends, columns.header_names),
            _variable(
                arrow,
                arrow.binary(),
                header_count,
                columns.header_value_ends,
                columns.header_values,
                columns.header_value_flags,
            ),
        ],
        names=["key", "value"],
    )
    return arrow.table(
        {
            "topic": arrow.DictionaryArray.from_arrays(numbers, arrow.array(topics, arrow.string())),
            "partition": _fixed(arrow, arrow.int32(), count, columns.partitions),
            "offset": _fixed(arrow, arrow.int64(), count, columns.offsets),
            "timestamp": _fixed(arrow, arrow.timestamp("ms"), count, columns.timestamps),
            "key": _variable(arrow, arrow.binary(), count, columns.key_ends, columns.keys, columns.key_flags),
            "value": _variable(
                arrow, arrow.binary(), count, columns.value_ends, columns.values, columns.value_flags
            ),
            "headers": arrow.ListArray.from_arrays(
                _fixed(arrow, arrow.int32(), count + 1, columns.header_ends), pairs
            ),
        }
    )


def _fixed(arrow: Any, kind: Any, count: int, values: Any) -> Any:
    return arrow.Array.from_buffers(kind, count, [None, arrow.py_buffer(values)])


def _variable(
    arrow: Any, kind: Any, count: int, ends: Any, data: bytearray, flags: bytearray | None = None
) -> Any:
    """Strings by their end offsets; `flags` is 0 where a row is null, and absent where none is."""
    validity = None if flags is None or 0 not in flags else arrow.py_buffer(packed_flags(flags))
    return arrow.Array.from_buffers(kind, count, [validity, arrow.py_buffer(ends), arrow.py_buffer(data)])
