"""Short questions to a cluster, for tests of faults: one record, one request, one state of a process."""

import uuid
from pathlib import Path

from tests.cluster.reading import values_of
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.faults.roles import Leader, TransactionCoordinator
from tests.support.raw_client import RawClient

import barnabas
from barnabas.client.admin import ElectionType, NewTopic
from barnabas.client.types import RecordMetadata
from barnabas.ids import TRANSACTIONS_TOPIC
from barnabas.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 18
PATIENCE_SECONDS = 30.0
NAMES_TRIED_MAX = 200


def write(system: FaultyCluster, topic: str, value: bytes = b"value") -> RecordMetadata:
    """One record to partition 0, acknowledged by all replicas that are in sync."""
    with barnabas.Producer(bootstrap_servers=system.bootstrap) as producer:
        written: RecordMetadata = producer.send(topic, value=value, partition=0).result(PATIENCE_SECONDS)
    return written


def values_at(system: FaultyCluster, topic: str, broker_id: int | None = None) -> list[bytes]:
    """All records of partition 0. Links do not concern this reader."""
    broker = system.brokers[broker_id or system.leader_of((topic, 0))]
    return values_of("barnabas", broker.address, topic, 0)


def client_of(system: FaultyCluster, broker_id: int) -> RawClient:
    """A client that reaches one broker as all clients do: through its link."""
    host, _, port = system.bootstrap_of(broker_id).partition(":")
    return RawClient(host, int(port), timeout_seconds=PATIENCE_SECONDS)


def leader_client(system: FaultyCluster, topic: str, partition: int = 0) -> RawClient:
    """A client of the broker that leads a partition; links do not concern it."""
    (leader,) = Leader(topic, partition).find(system)
    return RawClient("127.0.0.1", system.brokers[leader].port, timeout_seconds=PATIENCE_SECONDS)


def transactional_id_at(system: FaultyCluster, broker_id: int) -> str:
    """A new transactional id whose coordinator is this broker."""
    TransactionCoordinator("any").find(system)
    system.wait_until_in_sync(TRANSACTIONS_TOPIC)
    with system.admin() as admin:
        # After restarts, a broker may lead nothing.
        admin.elect_leaders(ElectionType.PREFERRED)
    names = (uuid.uuid4().hex for _ in range(NAMES_TRIED_MAX))
    return next(name for name in names if TransactionCoordinator(name).find(system) == [broker_id])


def use_transactions(system: FaultyCluster) -> None:
    """One transaction for each coordinator, with records for each leader. Brokers connect to each other at
    first use, and stay connected: after this, connections before and after a load can be compared."""
    topic = f"used-{uuid.uuid4().hex[:8]}"
    with system.admin() as admin:
        admin.create_topics([NewTopic(topic, len(system.brokers), len(system.brokers))])
    system.wait_until_in_sync(topic)
    for broker_id in system.brokers:
        name = transactional_id_at(system, broker_id)
        with barnabas.Producer(bootstrap_servers=system.bootstrap, transactional_id=name) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(len(system.brokers)):
                producer.send(topic, b"value", partition=number).result(PATIENCE_SECONDS)
            producer.commit_transaction()
    with system.admin() as admin:
        admin.delete_topics([topic])


def is_answered(client: RawClient) -> bool:
    return int(client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code) == 0


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return "T" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def in_sync(system: FaultyCluster, topic: str) -> set[int]:
    with system.admin() as admin:
        return {node.id for node in admin.describe_topics([topic])[topic].partitions[0].in_sync_replicas}
