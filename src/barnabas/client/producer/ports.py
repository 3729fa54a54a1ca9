"""What the sender needs from outside: its settings, the cluster, and the state of a transaction."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from barnabas.client.errors import KafkaError
from barnabas.client.metadata import Leader
from barnabas.client.producer.accumulator import PartitionQueue
from barnabas.client.producer.batch import Packing, ProducerBatch
from barnabas.client.types import Node, TopicPartition
from barnabas.net.broker_connection import BrokerConnection

# The longest pause after CONCURRENT_TRANSACTIONS, as in Java's client: the last transaction is still being
# completed, which takes a moment.
CONCURRENT_TRANSACTIONS_SECONDS = 0.02


# The batches of a request.
Sent = list[tuple[PartitionQueue, ProducerBatch]]


class BrokerNode:
    """A broker: the connection to it, and the requests without an answer with the time when they were sent,
    oldest first."""

    def __init__(self) -> None:
        self.connection: BrokerConnection | None = None
        self.in_flight: deque[tuple[float, Sent]] = deque()
        self.timer: asyncio.TimerHandle | None = None


class ClusterView(Protocol):
    """The cluster's metadata and connections, as the sender uses them."""

    def leader_of(self, partition: TopicPartition) -> int | None: ...
    def learn_leaders(self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]) -> None: ...
    async def refresh(self) -> None: ...
    async def connection(self, node_id: int) -> BrokerConnection: ...
    async def any(self) -> BrokerConnection: ...
    def avoid(self, node_id: int) -> None: ...


class TransactionView(Protocol):
    """The producer's transaction, as the sender uses it."""

    # Whether the first batch that is sent to a partition also adds the partition to the transaction.
    adds_implicitly: bool

    def may_send(self, queue: PartitionQueue) -> bool: ...
    def batch_failed(self, error: KafkaError) -> KafkaError: ...


class SenderSettings(NamedTuple):
    acks: int
    retries: int
    in_flight_max: int
    request_bytes_max: int
    request_seconds: float
    delivery_seconds: float
    backoff_seconds: float
    backoff_seconds_max: float
    transactional_id: str | None
    is_idempotent: bool
    packing: Packing
