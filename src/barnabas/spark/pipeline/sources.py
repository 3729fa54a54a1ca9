"""The sources of a pipeline as streams: topics are read and decoded, and duplicates are dropped.

A frame that has the undecodable records, too, lets one query read the source once for its rows and for its
dead letters. Frames are plans: nothing is read before a query runs."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from barnabas.spark.pipeline.definition import DECODED, Pipeline, Source
from barnabas.spark.pipeline.options import source_options
from barnabas.spark.pipeline.schemas import columns_of
from barnabas.spark.session import read_in_fewer_tasks

ERROR = "_error"
# Columns of the record that a decoded row keeps; and all columns of the record, which a dead letter needs.
ORIGIN = "_topic string, _partition int, _offset bigint, _timestamp timestamp"
RECORD = ("_key", "_value", "_headers")
WHOLE_RECORD = f"{ORIGIN}, _key binary, _value binary, _headers array<struct<key: string, value: binary>>"
# Null for rows, different for each undecodable record: so no such record is a duplicate of another.
BAD_PLACE = "_bad_place"


class Streams:
    """The sources as one query reads them: it commits its offsets for a group of its own."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, query: str) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._group = pipeline.group_of(query)

    def rows(self, name: str) -> DataFrame:
        """The rows of a source, without undecodable records that are dead letters."""
        source = self._pipeline.sources[name]
        return _deduplicated(self._rows(source), source, source.dedupe)

    def _rows(self, source: Source) -> DataFrame:
        frame = self._decoded(source, ORIGIN) if source.decode in DECODED else self._plain(source)
        if ERROR in frame.columns:
            if source.bad_records == "quarantine":
                frame = frame.filter(F.col(ERROR).isNull())
            frame = frame.drop(ERROR)
        return frame

    def undecodable(self, name: str) -> DataFrame:
        """The records of a source that cannot be decoded, with all columns of the record."""
        return undecodable_of(self._decoded(self._pipeline.sources[name], WHOLE_RECORD))

    def shared(self, name: str, *, has_bad: bool) -> DataFrame:
        """A source for a shared query. With `has_bad` it also has the undecodable records, with all columns
        of the record: rows_of() and undecodable_of() separate them."""
        source = self._pipeline.sources[name]
        if not has_bad:
            rows = self._rows(source).withColumn(BAD_PLACE, F.lit(None).cast("string"))
        else:
            rows = self._decoded(source, WHOLE_RECORD)
            is_bad = F.col(ERROR).isNotNull()
            place = F.concat_ws("/", "_topic", "_partition", "_offset")
            # Only dead letters need the record: the batch that is kept for all sinks becomes smaller.
            record = {name: F.when(is_bad, F.col(name)) for name in RECORD}
            rows = rows.withColumns({**record, BAD_PLACE: F.when(is_bad, place)})
        # The place is always a part of the state, so that bad_records may be changed in the file.
        columns = (*source.dedupe, BAD_PLACE) if source.dedupe else ()
        return _deduplicated(rows, source, columns).drop(BAD_PLACE)

    def _decoded(self, source: Source, record: str) -> DataFrame:
        """The columns of the value, those of `record`, and `_error`, which is null for good records."""
        columns = columns_of(source, f"{record}, {ERROR} string")
        return self._reader(source).schema(columns).load()

    def _plain(self, source: Source) -> DataFrame:
        frame = self._reader(source).load()
        if source.decode == "text":
            texts = [F.col(name).cast("string").alias(name) for name in ("key", "value")]
            return frame.select(*texts, *[name for name in frame.columns if name not in ("key", "value")])
        return frame

    def _reader(self, source: Source) -> DataStreamReader:
        options = source_options(self._pipeline, source, self._group)
        options = read_in_fewer_tasks(self._spark, options)
        return self._spark.readStream.format("barnabas").options(**options)


def _deduplicated(frame: DataFrame, source: Source, columns: tuple[str, ...]) -> DataFrame:
    if source.watermark is not None:
        frame = frame.withWatermark(source.watermark.column, source.watermark.delay)
    return frame.dropDuplicatesWithinWatermark(list(columns)) if columns else frame


def rows_of(whole: DataFrame) -> DataFrame:
    """The rows of a frame that has undecodable records, too."""
    return whole.filter(F.col(ERROR).isNull()).drop(ERROR, *RECORD)


def undecodable_of(whole: DataFrame) -> DataFrame:
    return whole.filter(F.col(ERROR).isNotNull())
