"""Connects the followers of partitions (replication/following/) with the broker: its settings, and requests
to the brokers that lead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.kernels.replica_frames import PLAIN_VERSION_MAX, PLAIN_VERSION_MIN
from barnabas.net.broker_connection import BrokerConnection
from barnabas.replication.following.manager import FollowerManager
from barnabas.replication.following.ports import FollowingSettings, LogBounds, PlainChannel, WhenAnswered
from barnabas.replication.healing import Healer
from barnabas.replication.throttling import RateLimit
from barnabas.wire.messages import fetch, list_offsets
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.values import BrokerConfig
    from barnabas.ids import TopicPartition
    from barnabas.replication.partition import Partition

LATEST, EARLIEST = -1, -2


class _PeerChannel:
    """The port PlainChannel over a connection to another broker."""

    def __init__(self, connection: BrokerConnection, timeout_seconds: float) -> None:
        self._connection = connection
        self.fetch_version = connection.version_of(fetch.API_KEY)
        self.client_id = (connection.client_id or "").encode()
        self.timeout_seconds = timeout_seconds

    def exchange(self, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered) -> None:
        self._connection.exchange(fetch.API_KEY, write, when_answered)

    def close(self, reason: str) -> None:
        self._connection.close(reason)


def _is_plain(connection: BrokerConnection) -> bool:
    return PLAIN_VERSION_MIN <= connection.version_of(fetch.API_KEY) <= PLAIN_VERSION_MAX


class PeerTransport:
    """The ports LeaderTransport and ReplicaReader over the connections to other brokers; each fetcher has its
    own connection."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def broker_epoch(self) -> int:
        return self._broker.metadata.broker_epoch

    async def fetch(self, leader_id: int, connection: str, request: FetchRequest) -> FetchResponse:
        answer = await self._broker.peers.send(
            leader_id, fetch.API_KEY, request, purpose=connection, within_seconds=self._timeout_seconds
        )
        return cast(FetchResponse, answer)

    def plain_channel(self, leader_id: int, connection: str) -> PlainChannel | None:
        try:
            opened = self._broker.peers.existing(leader_id, connection)
        except KafkaError:
            # The broker is gone; the ordinary way says so.
            return None
        if opened is None or not opened.supports(fetch.API_KEY):
            return None
        return _PeerChannel(opened, self._timeout_seconds) if _is_plain(opened) else None

    async def read(self, broker_id: int, partition: Partition, offset: int, bytes_max: int) -> bytes:
        """The port ReplicaReader: fetches as a client, which followers serve, too."""
        topic, index = partition.topic_partition
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=bytes_max)
        request = FetchRequest(
            max_bytes=bytes_max,
            topics=[FetchTopic(topic_id=partition.topic_id, topic=topic, partitions=[wanted])],
        )
        response: FetchResponse = await self._broker.peers.send(
            broker_id, fetch.API_KEY, request, purpose="heal", within_seconds=self._timeout_seconds
        )
        codes = [
            response.error_code,
            *(part.error_code for each in response.responses for part in each.partitions),
        ]
        if any(codes) or len(codes) != 2:
            raise KafkaError(error_of(max(codes)))
        records = response.responses[0].partitions[0].records
        return bytes(cast(memoryview, records or b""))

    async def log_bounds(self, leader_id: int, partition: TopicPartition, leader_epoch: int) -> LogBounds:
        start = await self._offset(leader_id, partition, leader_epoch, EARLIEST)
        end = await self._offset(leader_id, partition, leader_epoch, LATEST)
        return LogBounds(start, end)

    async def _offset(
        self, leader_id: int, partition: TopicPartition, leader_epoch: int, timestamp: int
    ) -> int:
        requested = ListOffsetsPartition(
            partition_index=partition.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._broker.id,
            topics=[ListOffsetsTopic(name=partition.topic, partitions=[requested])],
        )
        answer: ListOffsetsResponse = await self._broker.peers.send(
            leader_id,
            list_offsets.API_KEY,
            request,
            purpose="offsets",
            within_seconds=self._timeout_seconds,
        )
        result = answer.topics[0].partitions[0]
        if result.error_code != ErrorCode.NONE:
            raise KafkaError(error_of(result.error_code))
        return result.offset

    @property
    def _timeout_seconds(self) -> float:
        seconds: float = self._broker.config["replica.socket.timeout.ms"] / 1000
        return seconds


def following_settings(config: BrokerConfig) -> FollowingSettings:
    return FollowingSettings(
        broker_id=config.node_id,
        fetchers_per_leader=config["num.replica.fetchers"],
        wait_ms_max=config["replica.fetch.wait.max.ms"],
        bytes_min=config["replica.fetch.min.bytes"],
        partition_bytes_max=config["replica.fetch.max.bytes"],
        response_bytes_max=config["replica.fetch.response.max.bytes"],
        backoff_seconds_max=config["replica.fetch.backoff.ms"] / 1000,
    )


def follower_manager(broker: Broker) -> FollowerManager:
    config = broker.config
    throttle = RateLimit(
        broker.clock,
        config["replication.quota.window.num"],
        config["replication.quota.window.size.seconds"],
    )
    throttle.bytes_per_second = config["follower.replication.throttled.rate"]
    return FollowerManager(PeerTransport(broker), following_settings(config), broker.clock, throttle)


def reconfigure_following(broker: Broker) -> None:
    """Take changed settings of the broker."""
    broker.following.reconfigure(following_settings(broker.config))
    broker.following.throttle.bytes_per_second = broker.config["follower.replication.throttled.rate"]


def healer(broker: Broker) -> Healer:
    return Healer(broker.id, PeerTransport(broker))
