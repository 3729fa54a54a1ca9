"""Reads the fetched data on the polling thread: as records or as an Arrow table, one partition after
another."""

from functools import cache
from typing import Any

from barnabas.client.consumer.fetched import Fetched
from barnabas.client.consumer.records import ConsumerRecord
from barnabas.client.consumer.state import BUFFERS_MAX, Assignments, PartitionState
from barnabas.client.types import TopicPartition
from barnabas.records.arrow import RecordColumns, pyarrow

ARROW_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class BufferReader:
    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments
        self._records_total = 0
        self._bytes_total = 0

    def is_ready(self) -> bool:
        return any(state.buffers and not state.paused for state in list(self._assignments.states.values()))

    def records(self, room: int) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        taken: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = {}
        for state in self._ready():
            out: list[ConsumerRecord[Any, Any]] = []
            version = state.version
            while room > len(out) and state.buffers and state.version == version:
                fetched = state.buffers[0]
                try:
                    fetched.take(out, room - len(out))
                except Exception:
                    # Return the records before the bad one; the next poll raises the error.
                    if not (out or taken):
                        raise
                    break
                finally:
                    self._moved(state, version, fetched)
            if out:
                taken[state.partition] = out
                room -= len(out)
            if room <= 0:
                break
        self._records_total += sum(map(len, taken.values()))
        return taken

    def columns(self, room: int) -> RecordColumns | None:
        columns = RecordColumns(ARROW_COLUMNS, rows_max=room)
        for state in self._ready():
            version = state.version
            while not columns.is_full and state.buffers and state.version == version:
                fetched = state.buffers[0]
                try:
                    fetched.take_columns(columns)
                except Exception:
                    if not columns.count:
                        raise
                    break
                finally:
                    self._moved(state, version, fetched)
        self._records_total += columns.count
        return columns if columns.count else None

    def _ready(self) -> list[PartitionState]:
        return [
            state for state in list(self._assignments.states.values()) if state.buffers and not state.paused
        ]

    def _moved(self, state: PartitionState, version: int, fetched: Fetched) -> None:
        """Set the position to the next record of `fetched`, unless the user has changed the position."""
        with self._assignments.signal:
            if state.version != version:
                return
            state.offset = fetched.next_offset
            if fetched.leader_epoch >= 0:
                state.epoch = fetched.leader_epoch
            if not fetched.is_done:
                return
            was_full = len(state.buffers) >= BUFFERS_MAX
            state.buffers.popleft()
            self._bytes_total += fetched.size
            states = self._assignments.states
            # Move the partition to the end: the others are read first now.
            if states.get(state.partition) is state:
                states[state.partition] = states.pop(state.partition)
        if was_full:
            # If the buffers were not full, a fetch is in flight already, or the one in flight starts the
            # next.
            self._assignments.wake()

    def metrics(self, read_committed: bool) -> dict[str, Any]:
        states = list(self._assignments.states.values())
        partitions = {
            state.partition: {"records-lag": state.lag(read_committed), "records-lead": state.lead()}
            for state in states
        }
        lags = [each["records-lag"] for each in partitions.values() if each["records-lag"] is not None]
        leads = [each["records-lead"] for each in partitions.values() if each["records-lead"] is not None]
        return {
            "records-lag-max": max(lags, default=None),
            "records-lead-min": min(leads, default=None),
            "records-consumed-total": self._records_total,
            "bytes-consumed-total": self._bytes_total,
            "assigned-partitions": len(states),
            "partitions": partitions,
        }


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


def table_of(columns: RecordColumns | None) -> Any:
    """The pyarrow.Table that poll_arrow returns; it has no rows if there are no columns."""
    columns = RecordColumns(ARROW_COLUMNS) if columns is None else columns
    return pyarrow().Table.from_batches([columns.finish(schema=_schema())])
