"""Brokers in one process that replicate one topic: real logs, partitions and followers; the test carries the
fetches between them one by one, and says who leads."""

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.fetch_sessions import FetchPartition, FetchSessions
from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import DisconnectedError, ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.log.disk import RealDisk
from barnabas.log.log import Log
from barnabas.log.manager import LogManager, LogSettings
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import BrokerRecord, MetadataRecord, PartitionRecord, TopicRecord
from barnabas.records.batch import iter_headers
from barnabas.records.builder import build_batch, read_records
from barnabas.records.validation import validate
from barnabas.replication.following.manager import FollowerManager
from barnabas.replication.following.ports import FollowingSettings, LogBounds, WhenAnswered
from barnabas.replication.gate import Asker
from barnabas.replication.partition import Partition
from barnabas.replication.ports import Surroundings
from barnabas.replication.replicas import Replicas
from barnabas.wire.codec import decode_request, encode_response
from barnabas.wire.messages import fetch
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TOPIC = "orders"
CONFIG = TopicConfig(segment_bytes=100_000, index_interval_bytes=200, file_delete_delay_ms=0)
BYTES_MAX = 10_000


class Exchange(NamedTuple):
    """A request of a follower that is not answered yet."""

    follower: int
    leader: int
    request: FetchRequest
    answer: asyncio.Future[FetchResponse]


class Node:
    """One broker. It can be stopped (its files stay) and started again."""

    def __init__(self, cluster: "SmallCluster", broker_id: int, directory: Path) -> None:
        self.cluster = cluster
        self.id = broker_id
        self.directory = directory
        self.is_running = False

    def start(self) -> None:
        self.is_running = True
        clock = self.cluster.clock
        self.logs = LogManager([self.directory], LogSettings("a-cluster", self.id), RealDisk(), clock)
        self.logs.load(lambda topic: self.cluster.config)
        settings = FollowingSettings(
            self.id,
            partition_bytes_max=BYTES_MAX,
            backoff_seconds_max=0.01,
            interrupt_seconds=self.cluster.interrupt_seconds,
        )
        self.following = FollowerManager(Wire(self), settings, clock)
        self.replicas = Replicas(
            self.id,
            self.logs,
            lambda topic, image: self.cluster.config,
            Surroundings(self.id, clock),
            self.following,
        )
        self.sessions = FetchSessions(clock, 100, 120.0)
        self.image = MetadataImage()

    def take(self, image: MetadataImage) -> None:
        old, self.image = self.image, image
        self.replicas.follow(image, image.difference(old))

    async def stop(self, *, clean: bool = True) -> None:
        self.is_running = False
        await self.following.stop()
        self.replicas.finish()
        if clean:
            self.logs.shutdown()
        else:
            self.logs.checkpoint()
            for log in self.logs.logs():
                log.abandon()
            for directory in self.logs.directories:
                directory.release()

    # ---- what it has

    def partition(self, index: int = 0, topic: str = TOPIC) -> Partition:
        partition = self.replicas.get(topic, index)
        assert partition is not None
        return partition

    @property
    def log(self) -> Log:
        return self.partition().log

    @property
    def state(self) -> tuple[int, int]:
        """High watermark and log end offset of the first partition."""
        return self.log.high_watermark, self.log.log_end_offset

    def append(self, *values: bytes, index: int = 0) -> None:
        partition, now_ms = self.partition(index), self.cluster.clock.now_ms()
        data = build_batch([(now_ms, b"key", value, []) for value in values])
        partition.append(validate(memoryview(data), partition.rules, now_ms))

    def append_as_producer(
        self, producer_id: int, sequence: int, value: bytes, *, transactional: bool = False
    ) -> None:
        partition, now_ms = self.partition(), self.cluster.clock.now_ms()
        data = build_batch(
            [(now_ms, b"key", value, [])],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
        partition.append(validate(memoryview(data), partition.rules, now_ms))

    def values(self, index: int = 0) -> list[bytes]:
        log = self.partition(index).log
        values: list[bytes] = []
        offset: int = log.log_start_offset
        while offset < log.log_end_offset:
            data = self._read(log, offset, 1 << 20)
            for position, header in iter_headers(data):
                records = read_records(data[position : position + header.size])
                values += [record.value or b"" for record in records if record.offset >= offset]
                offset = header.next_offset
        return values

    @staticmethod
    def _read(log: Log, offset: int, bytes_max: int) -> bytes:
        piece = log.read(offset, bytes_max, upper_offset=log.log_end_offset, at_least_one=True)
        return os.pread(piece.file.fileno(), piece.size, piece.position) if piece.file else b""

    # ---- as the leader

    def answer(self, follower: int, request: FetchRequest) -> FetchResponse:
        """What a leader answers to a follower, without waiting for records."""
        requested = {
            (topic.topic_id, part.partition): FetchPartition(
                topic.topic,
                topic.topic_id,
                part.partition,
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
                replica_log_start=part.log_start_offset,
            )
            for topic in request.topics
            for part in topic.partitions
        }
        asker = Asker("internal", None, 17, follower, request.replica_state.replica_epoch)
        try:
            if request.session_epoch == 0:
                session = self.sessions.start(asker, requested, uses_topic_ids=True)
            else:
                session = self.sessions.resume(
                    request.session_id, request.session_epoch, asker, uses_topic_ids=True
                )
                gone = [(t.topic_id, i) for t in request.forgotten_topics_data for i in t.partitions]
                self.sessions.update(session, requested, gone)
        except KafkaError as error:
            return FetchResponse(error_code=error.code)
        assert session is not None
        topics: dict[Uuid, FetchableTopicResponse] = {}
        for wanted in session.partitions.values():
            topic = topics.setdefault(wanted.topic_id, FetchableTopicResponse(topic_id=wanted.topic_id))
            topic.partitions.append(self._answer_one(asker, wanted))
        return FetchResponse(session_id=session.id, responses=list(topics.values()))

    def _answer_one(self, asker: Asker, wanted: FetchPartition) -> PartitionData:
        try:
            return self._read_one(asker, wanted)
        except KafkaError as error:
            return PartitionData(partition_index=wanted.index, error_code=error.code)

    def _read_one(self, asker: Asker, wanted: FetchPartition) -> PartitionData:
        name = self.image.topic_names.get(wanted.topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self.replicas.leader(name, wanted.index)
        partition.check_epoch(wanted.current_leader_epoch)
        log = partition.log
        data = PartitionData(partition_index=wanted.index, log_start_offset=log.log_start_offset)
        if wanted.last_fetched_epoch >= 0:
            last = log.end_offset_for_epoch(wanted.last_fetched_epoch)
            if last.start_offset < 0 or wanted.fetch_offset < log.log_start_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if last.epoch < wanted.last_fetched_epoch or last.start_offset < wanted.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=last.epoch, end_offset=last.start_offset)
                return data
        if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        partition.record_fetch(
            asker.replica_id, asker.broker_epoch, wanted.fetch_offset, wanted.replica_log_start
        )
        data.high_watermark = partition.high_watermark
        if wanted.fetch_offset < log.log_end_offset:
            data.records = self._read(log, wanted.fetch_offset, wanted.partition_bytes_max)
        return data


class Wire:
    """The port LeaderTransport of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def broker_epoch(self) -> int:
        return self._node.image.brokers[self._node.id].epoch

    async def fetch(self, leader_id: int, connection: str, request: FetchRequest) -> FetchResponse:
        answer = asyncio.get_running_loop().create_future()
        self._node.cluster.exchanges.append(Exchange(self._node.id, leader_id, request, answer))
        self._node.cluster.arrived.set()
        return await answer

    def plain_channel(self, leader_id: int, connection: str) -> "WireChannel | None":
        return WireChannel(self._node, leader_id) if SmallCluster.has_plain_channels else None

    async def log_bounds(self, leader_id: int, partition: TopicPartition, leader_epoch: int) -> LogBounds:
        leader = self._node.cluster.nodes[leader_id].replicas.leader(*partition)
        leader.check_epoch(leader_epoch)
        return LogBounds(leader.log.log_start_offset, leader.log.log_end_offset)


class WireChannel:
    """The port PlainChannel: the frames of the short way become exchanges like the others."""

    fetch_version = 17
    client_id = b"follower"
    timeout_seconds = 3600.0

    def __init__(self, node: Node, leader_id: int) -> None:
        self._node = node
        self._leader_id = leader_id

    def exchange(self, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered) -> None:
        request = decode_request(bytes(write(1))[4:]).message
        answer: asyncio.Future[FetchResponse] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: when_answered(self._frame(done)))
        self._node.cluster.exchanges.append(Exchange(self._node.id, self._leader_id, request, answer))
        self._node.cluster.arrived.set()

    def _frame(self, answer: asyncio.Future[FetchResponse]) -> bytes | Exception:
        error = answer.exception()
        if error is not None:
            assert isinstance(error, Exception)
            return error
        chunks = encode_response(fetch.API_KEY, self.fetch_version, 1, answer.result())
        return b"".join(bytes(chunk) for chunk in chunks)[4:]  # type: ignore[arg-type]

    def close(self, reason: str) -> None: ...


class SmallCluster:
    # Whether followers may take the short way.
    has_plain_channels = True

    def __init__(self, directory: Path, brokers: int = 2, **config: object) -> None:
        self.clock = FakeClock()
        self.config = dataclasses.replace(CONFIG, **config)  # type: ignore[arg-type]
        # Nothing is interrupted unless a test says so.
        self.interrupt_seconds = 3600.0
        self.exchanges: list[Exchange] = []
        self.arrived = asyncio.Event()
        self.nodes = {each: Node(self, each, directory / str(each)) for each in range(1, brokers + 1)}
        self.image = MetadataImage()
        self._leader_epoch = 0
        self._isr = tuple(self.nodes)

    async def start(self, *, leader: int = 1, partitions: int = 1, topic_id: Uuid = b"o" * 16) -> None:
        for node in self.nodes.values():
            node.start()
        brokers = [
            BrokerRecord(each, epoch=10 + each, incarnation=b"i" * 16, listeners=()) for each in self.nodes
        ]
        self.apply(*brokers, *self.topic(topic_id, partitions, leader))
        await self.settle()

    def topic(self, topic_id: Uuid, partitions: int, leader: int) -> list[MetadataRecord]:
        replicas = tuple(self.nodes)
        return [
            TopicRecord(TOPIC, topic_id),
            *(
                PartitionRecord(topic_id, index, replicas, replicas, leader, self._leader_epoch)
                for index in range(partitions)
            ),
        ]

    def apply(self, *records: MetadataRecord, to: tuple[int, ...] | None = None) -> None:
        """Change the metadata; brokers that are not in `to` learn it with a later change."""
        self.image = self.image.apply(records)
        for node in self.nodes.values():
            if node.is_running and (to is None or node.id in to):
                node.take(self.image)

    async def elect(self, leader: int, isr: tuple[int, ...] | None = None) -> None:
        """A new leader of all partitions, in the next leader epoch."""
        self._leader_epoch += 1
        topic = self.image.topics[TOPIC]
        self.apply(
            *(
                PartitionRecord(
                    topic.id,
                    index,
                    old.replicas,
                    tuple(self.nodes) if isr is None else isr,
                    leader,
                    self._leader_epoch,
                    old.partition_epoch + 1,
                )
                for index, old in enumerate(topic.partitions)
            )
        )
        await self.settle()

    # ---- the network

    async def settle(self) -> None:
        """Let every task run until it waits for an answer or for the clock."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def fetch(self, times: int = 1) -> None:
        """Every follower that has sent a fetch gets its answer, and sends its next fetch."""
        for _ in range(times):
            waiting, self.exchanges = self.exchanges, []
            for exchange in waiting:
                self.deliver(exchange)
            await self.settle()

    async def retry(self, follower: int) -> None:
        """Let the time pass after which the follower tries again, until it has sent a fetch."""
        self.clock.advance(1000)
        async with asyncio.timeout(10):
            while not any(each.follower == follower for each in self.exchanges):
                self.arrived.clear()
                await self.arrived.wait()

    def deliver(self, exchange: Exchange) -> None:
        leader = self.nodes[exchange.leader]
        if exchange.answer.done():
            return
        if leader.is_running:
            exchange.answer.set_result(leader.answer(exchange.follower, exchange.request))
        else:
            exchange.answer.set_exception(DisconnectedError("the broker is not there"))

    async def stop(self, broker_id: int, *, clean: bool = True) -> None:
        await self.nodes[broker_id].stop(clean=clean)
        self.exchanges = [each for each in self.exchanges if each.follower != broker_id]

    async def restart(self, broker_id: int, *, clean: bool = True) -> None:
        """Stop the broker and start it again with the newest metadata."""
        if self.nodes[broker_id].is_running:
            await self.stop(broker_id, clean=clean)
        self.nodes[broker_id].start()
        self.nodes[broker_id].take(self.image)
        await self.settle()

    async def close(self) -> None:
        for node in self.nodes.values():
            if node.is_running:
                await node.stop()


def story(cluster: SmallCluster, tell: Callable[[], Awaitable[None]], **start: int) -> None:
    async def run() -> None:
        await cluster.start(**start)  # type: ignore[arg-type]
        try:
            await tell()
        finally:
            await cluster.close()

    asyncio.run(run())
