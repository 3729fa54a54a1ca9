"""Which files can hold given keys, by the smallest and largest values of their columns. Touches no files."""

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as compute

from barnabas.spark.tables.versions import StoredFile


def possible_files(files: Sequence[StoredFile], keys: pyarrow.Table) -> list[int]:
    """The numbers of the files that may hold one of the keys; `keys` has only the key columns.

    A file is ruled out if one of its columns has no value of the keys within its bounds. Bounds say nothing
    about nulls and NaN, so keys with those rule out no file."""
    possible = numpy.ones(len(files), dtype=bool)
    for name in keys.column_names:
        known = [number for number, file in enumerate(files) if possible[number] and name in file.bounds]
        values = _sorted_values(keys.column(name))
        if values is None or not known:
            continue
        limits = [files[number].bounds[name] for number in known]
        first = numpy.searchsorted(values, _comparable([low for low, _ in limits], keys, name), side="left")
        last = numpy.searchsorted(values, _comparable([high for _, high in limits], keys, name), side="right")
        possible[known] = first < last
    return [int(number) for number in numpy.flatnonzero(possible)]


def _sorted_values(column: pyarrow.ChunkedArray) -> Any:
    """The values in ascending order, as NumPy compares them; None if no file may be ruled out."""
    if column.null_count or pyarrow.types.is_floating(column.type):
        return None
    values = compute.unique(column)
    return _array(values.take(compute.sort_indices(values)))


def _comparable(values: list[Any], keys: pyarrow.Table, name: str) -> Any:
    return _array(pyarrow.array(values, keys.schema.field(name).type))


def _array(values: pyarrow.Array) -> Any:
    if pyarrow.types.is_integer(values.type):
        return values.to_numpy(zero_copy_only=False)
    array = numpy.empty(len(values), dtype=object)
    array[:] = values.to_pylist()
    return array
