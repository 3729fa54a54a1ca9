"""Looks at a cluster during a run, as consumers see it: what each leader serves, and who leads when.

A batch that a consumer could read once never changes: not its bytes, not its offset, not its epoch. And a
leader epoch has one leader."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.records.batch import iter_headers
from barnabas.wire.messages import fetch, metadata

SAMPLE_SECONDS = 0.25
ANSWER_SECONDS_MAX = 1.0
METADATA_VERSION, FETCH_VERSION = 12, 12
FETCH_BYTES = 1 << 20
# A new leader is asked again for so many offsets that others have served before.
OFFSETS_AGAIN = 20_000
BATCHES_MAX = 100_000


class Batch(NamedTuple):
    """What must not change."""

    last_offset: int
    leader_epoch: int
    crc: int


class WatchedBroker(Protocol):
    port: int

    @property
    def is_answering(self) -> bool: ...


@dataclass
class Watched:
    """What was seen of one partition."""

    batches: dict[int, Batch] = field(default_factory=dict)  # by base offset
    leaders: dict[int, set[int]] = field(default_factory=dict)  # by epoch
    end: int = 0

    def add(self, base_offset: int, batch: Batch) -> str | None:
        """What is wrong with it, if anything."""
        before = self.batches.setdefault(base_offset, batch)
        self.end = max(self.end, batch.last_offset + 1)
        if len(self.batches) > BATCHES_MAX:
            self.batches.pop(next(iter(self.batches)))
        return None if before == batch else f"the batch at offset {base_offset} was {before} and is {batch}"


class _View:
    """One broker: its connection, and how far it was read."""

    def __init__(self, broker: WatchedBroker) -> None:
        self.broker = broker
        self.positions: dict[tuple[TopicPartition, int], int] = {}  # by partition and epoch
        self._client: RawClient | None = None

    def client(self) -> RawClient:
        if self._client is None:
            self._client = RawClient("127.0.0.1", self.broker.port, timeout_seconds=ANSWER_SECONDS_MAX)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class Watcher:
    """`problems` has what may never happen. Use it in a `with` block."""

    def __init__(self, brokers: Mapping[int, WatchedBroker], topics: Collection[str]) -> None:
        self._brokers = brokers
        self._topics = topics
        self._views: dict[int, _View] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self.partitions: dict[TopicPartition, Watched] = {}
        self.problems: list[str] = []
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for view in self._views.values():
            view.close()
        if self.failure is not None:
            raise AssertionError("the watcher of the run has failed") from self.failure

    def _run(self) -> None:
        try:
            while not self._stopping.wait(SAMPLE_SECONDS):
                for broker_id, broker in dict(self._brokers).items():
                    if broker.is_answering:
                        self._look(broker_id, self._views.setdefault(broker_id, _View(broker)))
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure

    def _look(self, broker_id: int, view: _View) -> None:
        try:
            for partition, epoch in self._led_by(broker_id, view):
                self._read(view, partition, epoch)
        except OSError:
            # It is being killed, paused or started.
            view.close()

    def _led_by(self, broker_id: int, view: _View) -> Iterator[tuple[TopicPartition, int]]:
        """The partitions that the broker says it leads, and in which epoch."""
        topics = [metadata.MetadataRequestTopic(name=name) for name in self._topics]
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = view.client().call(metadata.API_KEY, METADATA_VERSION, request)
        for topic in answer.topics:
            for each in topic.partitions if topic.error_code == 0 else ():
                partition = TopicPartition(topic.name, each.partition_index)
                watched = self.partitions.setdefault(partition, Watched())
                if each.leader_id >= 0:
                    leaders = watched.leaders.setdefault(each.leader_epoch, set())
                    if each.leader_id not in leaders:
                        leaders.add(each.leader_id)
                        self._check_leaders(partition, each.leader_epoch, leaders)
                if each.leader_id == broker_id:
                    yield partition, each.leader_epoch

    def _check_leaders(self, partition: TopicPartition, epoch: int, leaders: set[int]) -> None:
        if len(leaders) > 1:
            self.problems.append(f"{partition} has the leaders {sorted(leaders)} in epoch {epoch}")

    def _read(self, view: _View, partition: TopicPartition, epoch: int) -> None:
        watched = self.partitions[partition]
        position = view.positions.setdefault((partition, epoch), max(0, watched.end - OFFSETS_AGAIN))
        topic = fetch.FetchTopic(
            topic=partition.topic,
            partitions=[
                fetch.FetchPartition(
                    partition=partition.partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
                )
            ],
        )
        request = fetch.FetchRequest(max_bytes=FETCH_BYTES, topics=[topic])
        answer = view.client().call(fetch.API_KEY, FETCH_VERSION, request)
        for data in (data for topic in answer.responses for data in topic.partitions):
            if data.error_code == ErrorCode.NONE:
                for _, header in iter_headers(data.records or b""):
                    batch = Batch(header.last_offset, header.leader_epoch, header.crc)
                    self._add(partition, header.base_offset, batch)
                    view.positions[partition, epoch] = header.next_offset

    def _add(self, partition: TopicPartition, base_offset: int, batch: Batch) -> None:
        problem = self.partitions[partition].add(base_offset, batch)
        if problem is not None:
            self.problems.append(f"{partition}: {problem}")
