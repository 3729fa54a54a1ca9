"""What transactions have left in the partitions of a topic, for tests of faults. Links do not delay these
questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.faults import GroupCoordinator, Leader, Role, System, TransactionCoordinator
from tests.jepsen.network import PRODUCE
from tests.jepsen.probes import client_of
from tests.support.raw_calls import Topic, fetch_partition
from tests.support.raw_client import RawClient
from tests.support.raw_groups import OFFSET_FETCH
from tests.support.raw_transactions import TXN_OFFSET_COMMIT

import barnabas
from barnabas.client.admin import OffsetSpec
from barnabas.ids import TopicPartition
from barnabas.records.batch import BatchHeader, iter_headers
from barnabas.wire.message import Message

READ_SECONDS_MAX = 30.0
READ_COMMITTED = "read_committed"


def places_of(topic: str, partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(partitions)]


def ends(system: System, places: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """The last stable offset and the high watermark of each."""
    spec = dict.fromkeys(places, OffsetSpec.LATEST)
    with system.admin() as admin:
        stable = admin.list_offsets(spec, isolation_level=READ_COMMITTED)
        high = admin.list_offsets(spec)
    return {place: (stable[place].offset, high[place].offset) for place in places}


def undecided(system: System, places: Sequence[TopicPartition]) -> set[TopicPartition]:
    """Those with a transaction that has not ended."""
    return {place for place, (stable, high) in ends(system, places).items() if stable < high}


def wait_until_decided(system: System, places: Sequence[TopicPartition]) -> None:
    system.wait_until(lambda: not undecided(system, places), f"no transaction is open in {places[0].topic}")


def committed_values(system: System, places: Sequence[TopicPartition]) -> dict[TopicPartition, list[bytes]]:
    """All that a reader of committed records gets."""
    values: dict[TopicPartition, list[bytes]] = {place: [] for place in places}
    address = f"127.0.0.1:{next(each for each in system.brokers.values() if each.is_answering).port}"
    with barnabas.Consumer(
        bootstrap_servers=address, isolation_level=READ_COMMITTED, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        stable = consumer.end_offsets(places)
        deadline = time.monotonic() + READ_SECONDS_MAX
        while any(consumer.position(place) < stable[place] for place in places):
            assert time.monotonic() < deadline, f"the end of {places[0].topic} is not reached"
            for record in consumer.poll(0.2):
                values[TopicPartition(record.topic, record.partition)].append(record.value or b"")
    return values


def batches(system: System, place: TopicPartition) -> list[BatchHeader]:
    """The headers of all batches up to the high watermark, markers and aborted ones included."""
    found: list[BatchHeader] = []
    with RawClient("127.0.0.1", system.brokers[system.leader_of(place)].port) as client:
        while True:
            position = found[-1].next_offset if found else 0
            data = fetch_partition(client, Topic(place.topic, bytes(16)), position, partition=place.partition)
            assert data.error_code == 0, f"fetch of {place} at {position}: error {data.error_code}"
            assert data.records is None or isinstance(data.records, bytes | memoryview)
            new = [header for _, header in iter_headers(data.records or b"")]
            if not new:
                return found
            found += new


def transaction_state(system: System, transactional_id: str) -> str:
    """As its coordinator describes it."""
    TransactionCoordinator(transactional_id).find(system)
    with system.admin() as admin:
        return admin.describe_transactions([transactional_id])[transactional_id].state


class RoutingClient(RawClient):
    """Sends each request of a transactional producer to the broker that serves it, over a new connection."""

    def __init__(self, system: FaultyCluster, transactional_id: str, group: str = "") -> None:
        self._system = system
        self._coordinator = TransactionCoordinator(transactional_id)
        self._group = GroupCoordinator(group)

    def call(self, api_key: int, version: int, message: Message) -> Any:
        with self.connected(api_key, message) as client:
            return client.call(api_key, version, message)

    def connected(self, api_key: int, message: Any) -> RawClient:
        role: Role = self._coordinator
        if api_key == PRODUCE:
            (topic,) = message.topic_data
            role = Leader(topic.name, topic.partition_data[0].index)
        elif api_key in (TXN_OFFSET_COMMIT, OFFSET_FETCH):
            role = self._group
        (broker_id,) = role.find(self._system)
        return client_of(self._system, broker_id)
