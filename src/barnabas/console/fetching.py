"""Reads messages as the log has them: with transactions, control records, producers and compression.

A consumer leaves all of that out, so the console reads batches itself. Before the last stable offset, the
broker says which transactions were aborted; after it, the leader says which are open."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.client.admin import OffsetSpec
from barnabas.client.admin.replicas import ReplicaData
from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.metadata import TopicMetadata
from barnabas.client.types import TopicPartition
from barnabas.records.batch import BatchHeader, iter_headers
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, read_marker, read_records
from barnabas.records.compression import NAMES

CHUNK_BYTES_MAX = 1 << 20
CHUNK_BYTES_MIN = 64 << 10
ROUND_BYTES_MAX = 8 << 20
BATCH_BYTES_MAX = 128 << 20
ATTEMPTS = 4
PAUSE_SECONDS = 0.2

_MARKERS = {COMMIT_MARKER: "commit", ABORT_MARKER: "abort"}
_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


class Message(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    header: BatchHeader
    transaction: str
    control: str | None

    @property
    def size(self) -> int:
        size = len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:
            size += len(name) + len(value or b"")
        return size

    @property
    def sequence(self) -> int | None:
        base = self.header.base_sequence
        return None if base < 0 else (base + self.offset - self.header.base_offset) & 0x7FFFFFFF

    def facts(self) -> dict[str, Any]:
        header = self.header
        return {
            "partition": self.partition,
            "offset": self.offset,
            "time_ms": self.timestamp if self.timestamp >= 0 else None,
            "time_type": "append" if self.is_append_time else "create",
            "size": self.size,
            "compression": NAMES[header.compression] if header.compression < len(NAMES) else "unknown",
            "producer_id": header.producer_id if header.has_producer_id else None,
            "producer_epoch": header.producer_epoch if header.has_producer_id else None,
            "sequence": self.sequence,
            "transaction": self.transaction,
            "control": self.control,
        }


class Chunk(NamedTuple):
    """Batches of one partition from an offset on. `open_producers` is None if all of them are decided."""

    partition: int
    first: int
    data: ReplicaData
    open_producers: frozenset[int] | None = None

    @property
    def next_offset(self) -> int:
        """Where the next read begins: after the last batch, or where this one began."""
        end = self.first
        for _, header in iter_headers(self.data.records):
            end = max(end, header.next_offset)
        return end

    def messages(self) -> Iterator[Message]:
        """All records from the first offset on, control records too."""
        view = memoryview(self.data.records)
        transactions = _Transactions(self.data.aborted, self.open_producers)
        for position, header in iter_headers(view):
            batch = view[position : position + header.size]
            marker = read_marker(batch) if header.is_control else None
            control = None
            if header.is_control:
                control = "other" if marker is None else _MARKERS[marker.kind]
            state = transactions.state_of(header, control)
            if header.last_offset < self.first:
                continue
            for record in read_records(batch, BATCH_BYTES_MAX):
                if record.offset >= self.first:
                    yield Message(
                        self.partition,
                        record.offset,
                        record.timestamp,
                        header.is_log_append_time,
                        record.key,
                        record.value,
                        record.headers,
                        header,
                        state,
                        control,
                    )


class _Transactions:
    """Whether transactional batches are committed, aborted or open, as they pass by in the order of the
    log."""

    def __init__(self, aborted: Iterable[tuple[int, int]], open_producers: frozenset[int] | None) -> None:
        self._aborted = sorted(((offset, producer) for producer, offset in aborted), reverse=True)
        self._producers: set[int] = set()
        self._open = open_producers

    def state_of(self, header: BatchHeader, control: str | None) -> str:
        if not header.is_transactional:
            return "none"
        while self._aborted and self._aborted[-1][0] <= header.last_offset:
            self._producers.add(self._aborted.pop()[1])
        if control is not None:
            is_abort = control == "abort"
            if is_abort:
                self._producers.discard(header.producer_id)
            return "aborted" if is_abort else "committed"
        if self._open is not None:
            return "open" if header.producer_id in self._open else "unknown"
        return "aborted" if header.producer_id in self._producers else "committed"


class Fetcher:
    """Reads the partitions of one topic from their leaders."""

    def __init__(self, admin: AsyncAdmin, topic: str) -> None:
        self._admin = admin
        self.topic = topic
        self._metadata = TopicMetadata(topic)
        self.without_leader: list[int] = []

    async def open(self) -> list[int]:
        """Find the leaders. Returns the numbers of all partitions."""
        await self._refresh()
        self.without_leader = [info.partition for info in self._metadata.partitions if info.leader is None]
        return [info.partition for info in self._metadata.partitions]

    async def _refresh(self) -> None:
        found = (await self._admin.fetch_metadata([self.topic])).topics.get(self.topic)
        if found is None or found.error is not ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error
            raise error_from(code, f"topic {self.topic!r}: {code.text}")
        self._metadata = found

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[int, int]:
        found = await self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {each.partition: listed.offset for each, listed in found.items()}

    async def read(self, offsets: Mapping[int, int], *, committed: bool) -> list[Chunk]:
        """What is there from these offsets on, for each partition at least one batch if there is one."""
        chunks: dict[int, Chunk] = {}
        for attempt in range(1, ATTEMPTS + 1):
            left = {number: offset for number, offset in offsets.items() if number not in chunks}
            failure = await self._read_from_leaders(left, committed, chunks)
            if failure is None:
                break
            if attempt == ATTEMPTS:
                raise failure
            await asyncio.sleep(PAUSE_SECONDS)
            await self._refresh()
        return list(chunks.values())

    async def _read_from_leaders(
        self, offsets: Mapping[int, int], committed: bool, chunks: dict[int, Chunk]
    ) -> KafkaError | None:
        by_leader: dict[int, dict[int, int]] = {}
        failure: KafkaError | None = None
        for number, offset in offsets.items():
            info = self._metadata.partition(number)
            if info is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self.topic!r} has no partition {number}"
                )
            if info.leader is None:
                failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{self.topic}-{number} has no leader")
            else:
                by_leader.setdefault(info.leader.id, {})[number] = offset
        answers = await asyncio.gather(
            *(self._read_from(leader, own, committed) for leader, own in by_leader.items())
        )
        for found in answers:
            for number, outcome in found.items():
                if not isinstance(outcome, KafkaError):
                    chunks[number] = outcome
                elif outcome.retriable or outcome.code in _MOVED:
                    failure = outcome
                else:
                    raise outcome
        return failure

    async def _read_from(
        self, leader: int, offsets: dict[int, int], committed: bool
    ) -> dict[int, Chunk | KafkaError]:
        bytes_max = min(CHUNK_BYTES_MAX, max(CHUNK_BYTES_MIN, ROUND_BYTES_MAX // len(offsets)))
        asked = {TopicPartition(self.topic, number): offset for number, offset in offsets.items()}
        try:
            found = await self._admin.read_replicas(
                leader, asked, bytes_max=bytes_max, isolation_level="read_committed"
            )
            chunks: dict[int, Chunk | KafkaError] = {
                each.partition: data
                if isinstance(data, KafkaError)
                else Chunk(each.partition, asked[each], data)
                for each, data in found.items()
            }
            if not committed:
                await self._add_undecided(leader, asked, chunks, bytes_max)
        except KafkaError as error:
            return dict.fromkeys(offsets, error)
        return chunks

    async def _add_undecided(
        self,
        leader: int,
        asked: Mapping[TopicPartition, int],
        chunks: dict[int, Chunk | KafkaError],
        bytes_max: int,
    ) -> None:
        """Read on after the last stable offset, where nothing was found before it."""
        beyond = {}
        for partition, offset in asked.items():
            chunk = chunks.get(partition.partition)
            if isinstance(chunk, Chunk) and not chunk.data.records and offset < chunk.data.high_watermark:
                beyond[partition] = offset
        if not beyond:
            return
        found = await self._admin.read_replicas(leader, beyond, bytes_max=bytes_max)
        states = await self._admin.describe_producers(list(beyond))
        for partition, data in found.items():
            if isinstance(data, KafkaError):
                chunks[partition.partition] = data
                continue
            open_producers = frozenset(
                state.producer_id
                for state in states.get(partition, ())
                if state.current_transaction_start_offset >= 0
            )
            chunks[partition.partition] = Chunk(partition.partition, beyond[partition], data, open_producers)
