"""Turns batches of records into batches of decoded columns, and applies the policy for bad values."""

from collections.abc import Collection, Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.spark.columns import BadRecords, metadata_columns, payload_of
from barnabas.spark.decode.dead_letters import DeadLetters
from barnabas.spark.settings import DEAD_LETTER, FAIL, Decoding, ReadSettings

# A dead letter keeps everything of its record.
_LETTER_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_ORIGIN_COLUMNS = ("topic", "partition", "offset")


class Payload(NamedTuple):
    """A table with a row for each value (nulls for null and for bad values), the errors of bad values, by
    row, and the rows of values that are no rows of the result."""

    table: Any
    errors: dict[int, str]
    skipped: frozenset[int] = frozenset()


class Decoder(Protocol):
    def decode(self, values: Any) -> Payload:
        """`values` is a binary pyarrow.Array."""


class BadRecordError(ValueError):
    """A value cannot be decoded, and badRecords is fail."""


class Decoded:
    """The projection of a query with decode."""

    def __init__(self, settings: ReadSettings, schema: StructType, bad: BadRecords | None = None) -> None:
        decoding = settings.decoding
        self._policy = decoding.bad_records
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._own = metadata_columns(decoding)
        self._decoder = decoder_of(decoding, payload_of(decoding, schema))
        self._letters: BadRecords | None = DeadLetters(settings) if self._policy == DEAD_LETTER else bad
        # The reader deals with bad records after each batch, so it also needs batches that have nothing else.
        self._hands_over = bad is not None
        requested = {self._own[name] for name in self._schema.names if self._own.get(name)}
        always = _LETTER_COLUMNS if self._letters is not None else ("value", *_ORIGIN_COLUMNS)
        self.kafka_columns = tuple(dict.fromkeys((*always, *sorted(requested))))

    def apply(self, batch: Any) -> Iterator[Any]:
        payload = self._decoder.decode(batch.column("value"))
        if payload.errors and self._letters is None and self._policy == FAIL:
            raise _failure(batch, payload.errors)
        decoded = self._batch(batch, payload)
        if payload.errors and self._letters is not None:
            self._letters.send(batch, payload.errors)
            decoded = decoded.filter(_without({*payload.errors, *payload.skipped}, len(batch)))
        elif payload.skipped:
            decoded = decoded.filter(_without(payload.skipped, len(batch)))
        if len(decoded) or self._hands_over:
            yield decoded

    def finish(self) -> None:
        if self._letters is not None:
            self._letters.flush()

    def _batch(self, batch: Any, payload: Payload) -> Any:
        arrow = import_module("pyarrow")
        arrays = []
        for field in self._schema:
            source = self._own.get(field.name)
            if source is None:
                arrays.append(_flat(payload.table.column(field.name)))
            elif source:
                arrays.append(batch.column(source))
            elif payload.errors:
                texts = [payload.errors.get(row) for row in range(len(batch))]
                arrays.append(arrow.array(texts, arrow.string()))
            else:
                arrays.append(arrow.nulls(len(batch), arrow.string()))
        return arrow.RecordBatch.from_arrays(arrays, schema=self._schema)


def decoder_of(decoding: Decoding, payload: StructType) -> Decoder:
    if decoding.envelope == "debezium":
        from barnabas.spark.decode.envelopes import DebeziumDecoder

        return DebeziumDecoder(decoding, lambda envelope: _value_decoder(decoding, envelope), payload)
    return _value_decoder(decoding, payload)


def _value_decoder(decoding: Decoding, payload: StructType) -> Decoder:
    if decoding.format == "json":
        from barnabas.spark.decode.json import JsonDecoder

        return JsonDecoder(payload)
    if decoding.format == "csv":
        from barnabas.spark.decode.csv import CsvDecoder

        return CsvDecoder(decoding.delimiter, payload)
    if decoding.format == "protobuf":
        from barnabas.spark.decode.protobuf import ProtobufDecoder

        return ProtobufDecoder(decoding, payload)
    from barnabas.spark.decode.avro import AvroDecoder

    return AvroDecoder(decoding, payload)


def _flat(column: Any) -> Any:
    """A column of a table as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _without(rows: Collection[int], count: int) -> Any:
    return import_module("pyarrow").array([row not in rows for row in range(count)])


def _failure(batch: Any, errors: dict[int, str]) -> BadRecordError:
    row = min(errors)
    topic, partition, offset = (batch.column(name)[row].as_py() for name in _ORIGIN_COLUMNS)
    return BadRecordError(
        f"The value of {topic}-{partition} at offset {offset} cannot be decoded: {errors[row]}. Set"
        " badRecords to null or dlq:<topic> to go on without it (in a pipeline, bad_records to quarantine)."
    )
