"""Records of a direct query (direct.py) that cannot be decoded: they become dead letters, exactly once, with
the same headers as those of other queries (pipeline/dead_letters.py)."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.records.arrow import kafka_schema
from barnabas.spark.dead_letter_headers import (
    ERROR_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    PIPELINE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)
from barnabas.spark.sink.committing import commit_batch
from barnabas.spark.sink.encoding import Encoded, Encoder, task_of_now
from barnabas.spark.sink.settings import WriteSettings, write_settings
from barnabas.spark.sink.staging import batch_file
from barnabas.spark.tables.target import member_query

LETTER_COLUMNS = ("value", "key", "headers")
PREFIX, PIPELINE, STEP, MEMBER = "letters.", "letters_pipeline", "letters_step", "letters_member"


class Letters(NamedTuple):
    """Where dead letters go: the options of the sink `barnabas`, and the names for their headers. In a query
    that several sinks share, `member` is the name of the letters."""

    options: Mapping[str, str]
    pipeline: str
    step: str
    member: str = ""

    def as_options(self) -> dict[str, str]:
        named = {PREFIX + name: text for name, text in self.options.items()}
        return {PIPELINE: self.pipeline, STEP: self.step, MEMBER: self.member, **named}


def letters_in(options: Mapping[str, str]) -> Letters | None:
    """From options of the table's sink; None if they have none."""
    given = {name.lower(): text for name, text in options.items()}
    if PIPELINE not in given:
        return None
    inner = {name.removeprefix(PREFIX): text for name, text in given.items() if name.startswith(PREFIX)}
    return Letters(inner, given[PIPELINE], given[STEP], given[MEMBER])


class Quarantine:
    """Collects the bad records of a task; `taken` returns those that came since the last call."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self._waiting: list[Any] = []

    def send(self, batch: Any, errors: Mapping[int, str]) -> None:
        """Keep the bad rows of a batch; `errors` has the reason for each."""
        arrow = import_module("pyarrow")
        rows = sorted(errors)
        records = batch.take(arrow.array(rows, arrow.int64())).to_pylist()
        headers = [self._headers(record, errors[row]) for row, record in zip(rows, records, strict=True)]
        letters = [{**record, "headers": each} for record, each in zip(records, headers, strict=True)]
        schema = kafka_schema(columns=LETTER_COLUMNS)
        self._waiting.append(arrow.RecordBatch.from_pylist(letters, schema=schema))

    def flush(self) -> None:
        """Nothing is sent before the commit."""

    def taken(self) -> Iterator[Any]:
        waiting, self._waiting = self._waiting, []
        yield from waiting

    def _headers(self, record: Mapping[str, Any], error: str) -> list[dict[str, Any]]:
        ours = {
            ERROR_HEADER: error,
            PIPELINE_HEADER: self._letters.pipeline,
            STEP_HEADER: self._letters.step,
            TOPIC_HEADER: record["topic"],
            PARTITION_HEADER: str(record["partition"]),
            OFFSET_HEADER: str(record["offset"]),
        }
        added = [{"key": name, "value": text.encode()} for name, text in ours.items()]
        return [*(record["headers"] or ()), *added]


def encode_letters(letters: Letters, batches: Iterator[Any]) -> Encoded:
    """The message of a task for the driver."""
    settings = _settings(letters)
    task = task_of_now()
    task = task._replace(query=member_query(task.query, letters.member))
    encoder = Encoder(settings, LETTER_COLUMNS, task, lambda: batch_file(settings, task.batch))
    return encoder.encode(batches)


def commit_letters(letters: Letters, messages: list[Encoded], batch: int) -> None:
    """Write the dead letters of a batch, unless they were written before."""
    commit_batch(_settings(letters), messages, batch)


def _settings(letters: Letters) -> WriteSettings:
    return write_settings(letters.options, is_stream=True)
