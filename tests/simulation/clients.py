"""Clients of a simulation: they write and read, and remember what they were promised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.network import CLIENT
from tests.simulation.world import BROKER_IDS, World

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import TopicImage
from barnabas.records.batch import iter_headers
from barnabas.records.builder import build_batch, read_records
from barnabas.wire.messages import create_topics, fetch, list_offsets, produce
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "events"
PARTITIONS = 2
LATEST = -1
REQUEST_SECONDS = 5.0
# After these a client asks for the leader again, and goes on.
RETRIED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
# The records were not written. After all other errors they may have been.
NOT_WRITTEN = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_ID})


@dataclass(slots=True)
class History:
    """What clients were told. An acknowledged value is at its offset for ever; a value that was read at an
    offset is there for ever, too."""

    acknowledged: dict[int, dict[int, bytes]] = field(
        default_factory=lambda: {index: {} for index in range(PARTITIONS)}
    )
    read: dict[int, dict[int, bytes]] = field(
        default_factory=lambda: {index: {} for index in range(PARTITIONS)}
    )
    sent: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class Client:
    def __init__(self, world: World, history: History, name: str) -> None:
        self._world = world
        self._history = history
        self._name = name
        self._count = 0
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._leader_epochs = dict.fromkeys(range(PARTITIONS), -1)
        self._positions = dict.fromkeys(range(PARTITIONS), 0)
        self.is_stopped = False

    # ---- asking

    async def _ask_leader(
        self, index: int, api_key: int, request_of: Callable[[TopicImage, int], Any]
    ) -> Any:
        """The answer of whom a random broker takes for the leader; None if there is no answer.

        `request_of` makes the request from the topic and the leader epoch. As real clients do, this one
        ignores a leader that is older than one that it has known."""
        brokers = self._world.brokers()
        topic = self._world.random.choice(brokers).image.topic(TOPIC) if brokers else None
        partition = None if topic is None else topic.partitions[index]
        if topic is None or partition is None or not partition.has_leader:
            return None
        if partition.leader_epoch < self._leader_epochs[index]:
            return None
        self._leader_epochs[index] = partition.leader_epoch
        return await self._ask(partition.leader, api_key, request_of(topic, partition.leader_epoch))

    async def _ask(self, broker_id: int, api_key: int, message: Any) -> Any:
        try:
            return await self._world.network.send(CLIENT, broker_id, api_key, message, REQUEST_SECONDS)
        except (KafkaError, OSError):
            return None

    async def create_topic(self) -> None:
        topic = CreatableTopic(
            name=TOPIC,
            num_partitions=PARTITIONS,
            replication_factor=len(BROKER_IDS),
            configs=[create_topics.CreatableTopicConfig(name="min.insync.replicas", value="2")],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        while True:
            answer = await self._ask(self._world.random.choice(BROKER_IDS), create_topics.API_KEY, request)
            if answer is not None and answer.topics[0].error_code in (
                ErrorCode.NONE,
                ErrorCode.TOPIC_ALREADY_EXISTS,
            ):
                return
            await asyncio.sleep(0.2)

    # ---- writing

    async def write_until_stopped(self) -> None:
        while not self.is_stopped:
            await asyncio.sleep(self._world.random.expovariate(20.0))
            await self._write(self._world.random.randrange(PARTITIONS))

    async def _write(self, index: int) -> None:
        """One record, sent once: a retry would be another record."""
        self._count += 1
        value = f"{self._name}-{self._count}".encode()
        self._history.sent.add(value)
        batch = build_batch([(self._world.clock.now_ms(), None, value, ())])

        def request(topic: TopicImage, _: int) -> ProduceRequest:
            data = PartitionProduceData(index=index, records=memoryview(batch))
            topic_data = TopicProduceData(topic_id=topic.id, partition_data=[data])
            return ProduceRequest(acks=-1, timeout_ms=3000, topic_data=[topic_data])

        answer = await self._ask_leader(index, produce.API_KEY, request)
        if answer is None:
            return
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            self._acknowledged(index, result.base_offset, value)
        elif result.error_code in NOT_WRITTEN:
            self._history.refused.add(value)

    def _acknowledged(self, index: int, offset: int, value: bytes) -> None:
        other = self._history.acknowledged[index].setdefault(offset, value)
        if other != value:
            self._history.problems.append(
                f"offset {offset} of partition {index} was acknowledged for {other!r} and {value!r}"
            )

    # ---- reading

    async def read_until_stopped(self) -> None:
        while not self.is_stopped:
            await asyncio.sleep(self._world.random.expovariate(20.0))
            index = self._world.random.randrange(PARTITIONS)
            if self._world.random.random() < 0.2:
                await self._look_at_end(index)
            else:
                await self._read(index)

    async def _read(self, index: int) -> None:
        position = self._positions[index]

        def request(topic: TopicImage, leader_epoch: int) -> FetchRequest:
            requested = FetchPartition(
                partition=index,
                current_leader_epoch=leader_epoch,
                fetch_offset=position,
                partition_max_bytes=1 << 20,
            )
            topics = [FetchTopic(topic_id=topic.id, partitions=[requested])]
            return FetchRequest(max_wait_ms=200, min_bytes=1, max_bytes=1 << 20, topics=topics)

        answer = await self._ask_leader(index, fetch.API_KEY, request)
        if answer is None or not answer.responses:
            return
        result = answer.responses[0].partitions[0]
        if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._history.problems.append(
                f"{self._name} has read partition {index} up to {position}, which is out of range now"
            )
        elif result.error_code == ErrorCode.NONE:
            for offset, value in records_of(result.records):
                if offset >= position:
                    self._seen(index, offset, value)
                    self._positions[index] = offset + 1
        elif result.error_code not in RETRIED:
            self._history.problems.append(f"a fetch got error {result.error_code}")

    def _seen(self, index: int, offset: int, value: bytes) -> None:
        other = self._history.read[index].setdefault(offset, value)
        if other != value:
            self._history.problems.append(
                f"offset {offset} of partition {index} was read as {other!r} and as {value!r}"
            )
        if offset != self._positions[index]:
            self._history.problems.append(
                f"{self._name} skipped from {self._positions[index]} to {offset} of partition {index}"
            )

    async def _look_at_end(self, index: int) -> None:
        def request(_: TopicImage, leader_epoch: int) -> ListOffsetsRequest:
            requested = ListOffsetsPartition(
                partition_index=index, current_leader_epoch=leader_epoch, timestamp=LATEST
            )
            topics = [ListOffsetsTopic(name=TOPIC, partitions=[requested])]
            return ListOffsetsRequest(replica_id=-1, topics=topics)

        answer = await self._ask_leader(index, list_offsets.API_KEY, request)
        if answer is None:
            return
        result = answer.topics[0].partitions[0]
        if result.error_code == ErrorCode.NONE:
            if result.offset < self._ends[index]:
                self._history.problems.append(
                    f"the end of partition {index} went back from {self._ends[index]} to {result.offset}"
                )
            self._ends[index] = max(self._ends[index], result.offset)


def records_of(data: Any) -> list[tuple[int, bytes]]:
    """The offsets and values in a record set."""
    view = memoryview(data or b"")
    return [
        (record.offset, bytes(record.value or b""))
        for position, header in iter_headers(view)
        if not header.is_control
        for record in read_records(view[position : position + header.size])
    ]
