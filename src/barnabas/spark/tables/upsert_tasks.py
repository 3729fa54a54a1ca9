"""Upserts in Spark's tasks: no row passes through the driver.

1. The newest row of each key is found.
2. By the bounds of the table's files, tasks find those that may hold a key; other tasks read the key columns
   of these files, and a join finds the place of each key: a file and a position in it.
3. Each row is sent to the task that rewrites its file. Rows of new keys go to tasks that write new files.
4. The driver gets the names of all new files and commits them.

After a conflict, the new files stay if the other writer changed none of the rewritten files and added no row
with one of the keys. Otherwise 2 to 4 are done again on the new version of the table.

The number of partitions is always given here: in a streaming query Spark does not choose it by the size of
the data. The key of a row is one column, a struct, since two structs with the same nulls are equal."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy
import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from barnabas.spark.tables.bounds import possible_files
from barnabas.spark.tables.files import DataFile, FileWriter
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.rewriting import POSITION, WRITES, by_file, insert, rewrite
from barnabas.spark.tables.store import patiently
from barnabas.spark.tables.target import DELETED
from barnabas.spark.tables.upserting import Upsert
from barnabas.spark.tables.versions import FileReader, StoredFile, Version

FILE = "__file"
KEY = "__key"
PLACES = "__places"
PLACE = "__place"
NUMBER = "__number"
ROW = "__row"
SLOT = "__slot"
NEW = -1
# About how many rows of the batch, and how many bytes of the batch or of files, are one partition.
ROWS_PER_TASK = 250_000
BYTES_PER_TASK = 64 << 20
# Up to so many keys are sent to all tasks that read the keys of files.
BROADCAST_KEYS_MAX = 100_000
TASKS_MAX = 2000
Batches = Iterator[pyarrow.RecordBatch]


def upsert_in_tasks(upsert: Upsert, frame: DataFrame, rows: int, size: int) -> None:
    """`rows` and `size` are those of the batch; they need not be exact."""
    partitions = min(TASKS_MAX, 1 + max(rows // ROWS_PER_TASK, size // BYTES_PER_TASK))
    newest = newest_rows(frame, upsert, partitions).persist()
    try:
        patiently(_Attempts(upsert, Newest(newest, partitions)))
    finally:
        newest.unpersist()


def newest_rows(frame: DataFrame, upsert: Upsert, partitions: int) -> DataFrame:
    """For each key the row with the largest `order_by`, or the last of those that are equal; with KEY."""
    order_by = upsert.target.order_by
    order = [NUMBER] if order_by is None else [order_by, NUMBER]
    return (
        frame.withColumn(NUMBER, F.monotonically_increasing_id())
        .withColumn(KEY, F.struct(*_columns(upsert.target.key)).cast(_key_type(upsert)))
        .repartition(partitions, KEY)
        .groupBy(KEY)
        .agg(F.max_by(F.struct(*_columns(frame.columns)), F.struct(*_columns(order))).alias(ROW))
        .select(KEY, f"{ROW}.*")
    )


def _key_type(upsert: Upsert) -> StructType:
    """The types of the key in the table, which may be wider than those of the batch."""
    types = {column.name: column.type for column in upsert.fitting.columns}
    return StructType([StructField(name, from_arrow_type(types[name])) for name in upsert.target.key])


class Newest(NamedTuple):
    """The newest row of each key, and how many partitions they have."""

    rows: DataFrame
    partitions: int


def _columns(names: Sequence[str]) -> list[Column]:
    return [F.col(f"`{name}`") for name in names]


class _Work(NamedTuple):
    """What tasks have written, for a version of the table."""

    version: Version
    removed: list[StoredFile]
    added: list[DataFile]


class _Attempts:
    """Each call tries to commit; the first, and those after changes that matter, let the tasks work."""

    def __init__(self, upsert: Upsert, newest: Newest) -> None:
        self._upsert = upsert
        self._newest = newest
        self._work: _Work | None = None

    def __call__(self) -> None:
        version = self._upsert.store.version()
        if self._upsert.is_done(version):
            return
        if self._work is None or not _holds(self._work, version, self._upsert, self._newest):
            self._work = _work(self._upsert, version, self._newest)
        version.replace(self._work.removed, self._work.added, self._upsert.mark)


def _work(upsert: Upsert, version: Version, newest: Newest) -> _Work:
    search = _search(upsert, version.files, newest)
    places = _places(upsert, version, newest, search).persist() if search.files else None
    try:
        return _Work(version, *_rewritten(upsert, version, newest, search._replace(places=places)))
    finally:
        if places is not None:
            places.unpersist()


def _holds(work: _Work, version: Version, upsert: Upsert, newest: Newest) -> bool:
    """Whether the tasks would do the same work on another version."""
    known = {file.path for file in work.version.files}
    present = {file.path: file for file in version.files}
    if version.schema != work.version.schema or any(present.get(file.path) != file for file in work.removed):
        return False
    search = _search(upsert, [file for file in version.files if file.path not in known], newest)
    return not search.files or _places(upsert, version, newest, search).isEmpty()


def _search(upsert: Upsert, files: Sequence[StoredFile], newest: Newest) -> "Search":
    """Those of the files that may hold a key, by their bounds."""
    if not files:
        return Search(0, (), None)
    keys = newest.rows.select(*_columns(upsert.target.key))
    search = BoundsSearch(files, upsert.fitting, upsert.target.key)
    answers = keys.mapInArrow(search, "rows long, files array<int>").collect()
    numbers = sorted({number for answer in answers for number in answer["files"]})
    return Search(sum(answer["rows"] for answer in answers), [files[number] for number in numbers], None)


class Search(NamedTuple):
    """The number of keys, the files that may hold one of them, and the places where they were found: KEY,
    FILE (a number of these files) and POSITION."""

    keys: int
    files: Sequence[StoredFile]
    places: DataFrame | None


class BoundsSearch:
    """In a task: which files may hold keys of these rows, by their bounds."""

    def __init__(self, files: Sequence[StoredFile], fitting: Fitting, key: Sequence[str]) -> None:
        self._files = list(files)
        self._fitting = Fitting(tuple(column for column in fitting.columns if column.name in key), ())

    def __call__(self, batches: Batches) -> Batches:
        rows = 0
        found: set[int] = set()
        for batch in batches:
            rows += batch.num_rows
            rest = [number for number in range(len(self._files)) if number not in found]
            possible = possible_files([self._files[number] for number in rest], self._fitting.fit(batch))
            found.update(rest[number] for number in possible)
        numbers = pyarrow.array([sorted(found)], pyarrow.list_(pyarrow.int32()))
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array([rows], pyarrow.int64()), numbers], names=["rows", "files"]
        )


def _places(upsert: Upsert, version: Version, newest: Newest, search: Search) -> DataFrame:
    """The keys that are in the files, with their places."""
    names = upsert.target.key
    place = [StructField(FILE, IntegerType()), StructField(POSITION, LongType())]
    schema = StructType([*_key_type(upsert), *place])
    files = search.files
    reading = KeyReading(version.reader(files), [file.path for file in files], names, schema)
    numbers = newest.rows.sparkSession.range(0, len(files), 1, numPartitions=min(len(files), TASKS_MAX))
    found = numbers.mapInArrow(reading, schema).select(
        F.struct(*_columns(names)).alias(KEY), F.col(FILE), F.col(POSITION)
    )
    keys = newest.rows.select(KEY)
    if search.keys <= BROADCAST_KEYS_MAX:
        return found.join(F.broadcast(keys), KEY, "left_semi")
    size = sum(file.size for file in files)
    partitions = min(TASKS_MAX, max(newest.partitions, 1 + size // BYTES_PER_TASK))
    return found.repartition(partitions, KEY).join(keys.repartition(partitions, KEY), KEY, "left_semi")


class KeyReading:
    """In a task: the keys in files, with their places."""

    def __init__(
        self, reader: FileReader, paths: Sequence[str], names: Sequence[str], schema: StructType
    ) -> None:
        self._reader = reader
        self._paths = paths
        self._names = names
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._keys(number)

    def _keys(self, number: int) -> Batches:
        start = 0
        for batch in self._reader.batches(self._paths[number], self._names):
            count = batch.num_rows
            files = pyarrow.repeat(pyarrow.scalar(number, pyarrow.int32()), count)
            positions = pyarrow.array(numpy.arange(start, start + count))
            keys = [
                column.cast(field.type) for column, field in zip(batch.columns, self._schema, strict=False)
            ]
            yield pyarrow.RecordBatch.from_arrays([*keys, files, positions], schema=self._schema)
            start += count


def _rewritten(
    upsert: Upsert, version: Version, newest: Newest, search: Search
) -> tuple[list[StoredFile], list[DataFile]]:
    """The files that are removed and those that take their place."""
    counts: dict[int, int] = {}
    if search.places is not None:
        counts = {row[FILE]: row["count"] for row in search.places.groupBy(FILE).count().collect()}
    changed = sorted(counts)
    changes = _changes(upsert, newest, None if not changed else search.places)
    slots = _Slots.of(changed, search.keys - sum(counts.values()))
    rewriting = Rewriting(
        version.reader([search.files[number] for number in changed]),
        {number: search.files[number].path for number in changed},
        version.schema,
        upsert.fitting,
        upsert.writers(),
    )
    done = (
        slots.spread(changes)
        .sortWithinPartitions(FILE, POSITION)
        .drop(SLOT, KEY)
        .mapInArrow(rewriting, "files binary")
        .collect()
    )
    added = [file for row in done for file in pickle.loads(row["files"])]
    return [search.files[number] for number in changed], added


def _changes(upsert: Upsert, newest: Newest, places: DataFrame | None) -> DataFrame:
    """A row for each place of a key, or for a new key; with FILE, POSITION, and whether it is written.

    If a key is in the table several times, its row is written only once."""
    rows = newest.rows
    is_kept = ~F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in rows.columns else F.lit(True)
    own = [F.col(KEY), *_columns([column.name for column in upsert.fitting.columns])]
    if places is None:
        no_place = [F.lit(NEW).alias(FILE), F.lit(0).cast("long").alias(POSITION)]
        return rows.select(*own, *no_place, is_kept.alias(WRITES)).filter(F.col(WRITES))
    by_key = (
        places.repartition(newest.partitions, KEY)
        .groupBy(KEY)
        .agg(F.collect_list(F.struct(FILE, POSITION)).alias(PLACES))
    )
    placed = rows.join(by_key, KEY, "left").select(
        *_columns(rows.columns), F.posexplode_outer(PLACES).alias(NUMBER, PLACE)
    )
    return placed.select(
        *own,
        F.coalesce(F.col(f"{PLACE}.{FILE}"), F.lit(NEW)).alias(FILE),
        F.coalesce(F.col(f"{PLACE}.{POSITION}"), F.lit(0)).alias(POSITION),
        ((F.coalesce(F.col(NUMBER), F.lit(0)) == 0) & is_kept).alias(WRITES),
    ).filter((F.col(FILE) != NEW) | F.col(WRITES))


class _Slots(NamedTuple):
    """Tasks that rewrite files: one for each file, and some for rows of new keys."""

    files: list[int]
    for_files: int
    for_new: int

    @classmethod
    def of(cls, files: list[int], new_rows: int) -> "_Slots":
        for_new = 1 + max(0, new_rows) // ROWS_PER_TASK
        return cls(files, min(len(files), TASKS_MAX), min(for_new, TASKS_MAX))

    def spread(self, changes: DataFrame) -> DataFrame:
        new = F.lit(self.for_files) + F.pmod(F.hash(KEY), F.lit(self.for_new))
        if not self.files:
            return changes.withColumn(SLOT, new).repartitionById(self.for_new, SLOT)
        rows = [(file, number % self.for_files) for number, file in enumerate(self.files)]
        slots = changes.sparkSession.createDataFrame(rows, f"{FILE} int, {SLOT} int")
        return (
            changes.join(F.broadcast(slots), FILE, "left")
            .withColumn(SLOT, F.coalesce(F.col(SLOT), new))
            .repartitionById(self.for_files + self.for_new, SLOT)
        )


class Rewriting:
    """In a task: rewrites files with their changes, which come in the order of files and positions."""

    def __init__(
        self,
        reader: FileReader,
        paths: dict[int, str],
        schema: pyarrow.Schema,
        fitting: Fitting,
        writers: Callable[[], FileWriter],
    ) -> None:
        self._reader = reader
        self._paths = paths
        self._schema = schema
        self._fitting = fitting
        self._writers = writers

    def __call__(self, batches: Batches) -> Batches:
        added: list[DataFile] = []
        parts = by_file((self._fitted(batch) for batch in batches), FILE)
        for number, group in groupby(parts, key=lambda part: part[0]):
            changes = (changes for _, changes in group)
            writer = self._writers()
            if number == NEW:
                insert(self._schema, changes, writer.write)
            else:
                rewrite(self._reader, self._paths[number], self._schema, changes, writer.write)
            added += writer.close()
        yield pyarrow.RecordBatch.from_pydict({"files": [pickle.dumps(added)]})

    def _fitted(self, batch: Any) -> pyarrow.Table:
        """The changes with the columns of the table."""
        rows = self._fitting.fit(batch)
        for name in (FILE, POSITION, WRITES):
            rows = rows.append_column(name, batch.column(name))
        return rows
