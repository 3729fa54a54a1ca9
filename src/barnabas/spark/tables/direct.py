"""From topics to a table without Spark in between: for rows that Spark need not change.

Spark plans the batches, stores the offsets and runs the tasks as for every query, but its rows are only the
ranges of offsets (ranges.py). The tasks of the sink read and decode the records and write them to files, as
Arrow batches from the broker to the file. Offsets, marks and files are the same as when the rows go through
Spark, so a query may change from one way to the other and keep its checkpoint."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import StructType

from barnabas.spark.columns import check_schema
from barnabas.spark.ranges import ranges_in
from barnabas.spark.session import in_fewer_tasks, read_in_fewer_tasks
from barnabas.spark.settings import read_settings
from barnabas.spark.tables.quarantine import Letters, Quarantine, commit_letters, encode_letters, letters_in
from barnabas.spark.tables.sink import StreamTableWriter, Written, file_writer, query_of_now
from barnabas.spark.tables.target import TableTarget, member_query
from barnabas.spark.tables.writing import FORMAT
from barnabas.spark.tasks import read_ranges

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import WriterCommitMessage

    from barnabas.spark.tables.files import FileWriter

PREFIX, SCHEMA, MEMBER = "read.", "rows", "member"


class TopicRows(NamedTuple):
    """The rows of a query: the options of the data source `barnabas`, and the columns. With `letters`,
    records that cannot be decoded become dead letters. In a query that several sinks share, `member` is the
    name of the table."""

    options: Mapping[str, str]
    schema: StructType
    letters: Letters | None = None
    member: str = ""

    def as_options(self) -> dict[str, str]:
        """The rows as options of the sink. Options keep their names, by which Spark hides passwords."""
        read = {PREFIX + name: text for name, text in self.options.items()}
        letters = {} if self.letters is None else self.letters.as_options()
        return {SCHEMA: self.schema.json(), MEMBER: self.member, **read, **letters}


def rows_in(options: Mapping[str, str]) -> TopicRows | None:
    """The rows from options of the sink; None if Spark passes the rows themselves."""
    given = {name.lower(): text for name, text in options.items()}
    if SCHEMA not in given:
        return None
    read = {name.removeprefix(PREFIX): text for name, text in given.items() if name.startswith(PREFIX)}
    schema = StructType.fromJson(json.loads(given[SCHEMA]))
    return TopicRows(read, schema, letters_in(given), given[MEMBER])


def write_topic(
    spark: "SparkSession",
    rows: TopicRows,
    target: TableTarget,
    checkpoint: str,
    name: str,
    trigger: dict[str, Any],
) -> Any:
    """Start a query that appends the rows of topics to a table."""
    options = read_in_fewer_tasks(spark, rows.options)
    ranges = spark.readStream.format("barnabas").options(**options).option("rangesOnly", "true").load()
    writer = in_fewer_tasks(ranges).writeStream.queryName(name).trigger(**trigger)
    writer = writer.option("checkpointLocation", checkpoint)
    return writer.format(FORMAT).options(**target.as_options(), **rows.as_options()).start()


class TopicTableWriter(StreamTableWriter):
    """Its tasks get ranges and read them."""

    def __init__(self, target: TableTarget, rows: TopicRows) -> None:
        self._rows = rows
        self._settings = read_settings(rows.options, is_stream=True)
        check_schema(self._settings, rows.schema)
        super().__init__(target, rows.schema)

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        letters, encoded = self._rows.letters, None
        if letters is None:
            files = super().write(self._read(iterator, None)).files
        else:
            writer = file_writer(self._target)
            encoded = encode_letters(letters, self._bad(iterator, writer, Quarantine(letters)))
            files = writer.close()
        return Written(member_query(query_of_now(), self._rows.member), files, encoded)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        super().commit(messages, batchId)
        if self._rows.letters is not None:
            encoded = [each.letters for each in messages if isinstance(each, Written) and each.letters]
            commit_letters(self._rows.letters, encoded, batchId)

    def _bad(
        self, ranges: "Iterator[RecordBatch]", writer: "FileWriter", quarantine: Quarantine
    ) -> "Iterator[RecordBatch]":
        """The bad records of the ranges; the good ones are written to files on the way."""
        for batch in self._read(ranges, quarantine):
            if batch.num_rows:
                writer.write(self._fitting.fit(batch))
            yield from quarantine.taken()

    def _read(
        self, ranges: "Iterator[RecordBatch]", quarantine: Quarantine | None
    ) -> "Iterator[RecordBatch]":
        return read_ranges(self._settings, self._rows.schema, ranges_in(ranges), quarantine)
