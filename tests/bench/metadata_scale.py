"""What the metadata of a large cluster cost: `python -m tests.bench.metadata_scale`.

A real ZooKeeper holds the metadata of a cluster whose brokers are only sessions. The controller is the real
one. docs/scaling.md shows the results. Times are those of this machine; bytes and writes do not depend on
it."""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.config.values import BrokerConfig
from barnabas.ids import random_uuid
from barnabas.metadata.candidacy import Candidacy
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller
from barnabas.metadata.follower import Follower
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr_changes import IsrProposal
from barnabas.metadata.records import BrokerRecord, Listener, MetadataRecord, PartitionRecord, TopicRecord
from barnabas.metadata.store import BrokerRegistration, Session
from barnabas.metadata.zookeeper.adoption import adopt_image
from barnabas.metadata.zookeeper.documents import encode_snapshot
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore
from barnabas.testing.zookeeper import ZooKeeper

PARTITIONS_PER_TOPIC = 100
REPLICATION_FACTOR = 3
ISR_CHANGES = 200
LOST_BROKER = 7


@dataclass
class Writes:
    """Counts what a store sends to ZooKeeper."""

    transactions: int = 0
    nodes: int = 0
    size: int = 0

    def watch(self, store: ZooKeeperStore) -> None:
        transaction, call = store.connection.transaction, store.connection.call

        async def counted(operations: Sequence[tuple[Any, ...]]) -> list[Any]:
            self.transactions += 1
            for name, *arguments in operations:
                self.nodes += name in ("create", "set_data")
                self.size += sum(len(value) for value in arguments if isinstance(value, bytes))
            return await transaction(operations)

        async def counted_call(name: str, *arguments: Any, **options: Any) -> Any:
            if name == "create":
                self.transactions += 1
                self.nodes += 1
                self.size += sum(len(value) for value in arguments if isinstance(value, bytes))
            return await call(name, *arguments, **options)

        store.connection.transaction = counted  # type: ignore[method-assign]
        store.connection.call = counted_call  # type: ignore[method-assign]

    def take(self) -> str:
        text = f"{self.transactions} writes, {self.nodes} nodes, {self.size:,} bytes"
        self.transactions = self.nodes = self.size = 0
        return text


def cluster_image(brokers: int, partitions: int) -> MetadataImage:
    records: list[MetadataRecord] = [
        BrokerRecord(number, number, random_uuid(), (Listener("PLAINTEXT", f"broker-{number}", 9092),))
        for number in range(brokers)
    ]
    for topic in range(partitions // PARTITIONS_PER_TOPIC):
        topic_id = random_uuid()
        records.append(TopicRecord(f"topic-{topic:05d}", topic_id))
        for index in range(PARTITIONS_PER_TOPIC):
            first = topic * PARTITIONS_PER_TOPIC + index
            # The second and third replica have a changing distance, so that all brokers share the failover.
            distance = 1 + first // brokers % (brokers // 2 - 1)
            replicas = tuple((first + distance * step) % brokers for step in range(REPLICATION_FACTOR))
            records.append(PartitionRecord(topic_id, index, replicas, replicas, replicas[0]))
    return MetadataImage(cluster_id="SCALESCALESCALESCALE22").apply(records)


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def load(settings: ZooKeeperSettings) -> dict[str, float]:
    """What a broker does at its start: read the snapshot and the log, and build the image."""
    store = await ZooKeeperStore.open(settings)
    gc.disable()
    before, started = memory_bytes(), time.perf_counter()
    follower = Follower(store)
    await follower.start()
    seconds = time.perf_counter() - started
    gc.collect()
    size = memory_bytes() - before
    await store.close()
    return {"seconds": seconds, "bytes": size, "offset": follower.image.offset}


async def measure(zookeeper: ZooKeeper, brokers: int, partitions: int) -> None:
    settings = ZooKeeperSettings(f"{zookeeper.connect}/scale", session_timeout_ms=30_000)
    image = cluster_image(brokers, partitions)
    started = time.perf_counter()
    snapshot = encode_snapshot(image.offset, image.records())
    row("encode a snapshot", f"{time.perf_counter() - started:.2f} s, {len(snapshot):,} bytes compressed")
    started = time.perf_counter()
    await adopt_image(settings, image, 0)
    row("encode and store it in ZooKeeper", f"{time.perf_counter() - started:.2f} s")
    loaded = await asyncio.to_thread(load_in_process, settings)
    row("a start: load the image", f"{loaded['seconds']:.2f} s, {loaded['bytes'] / 1e6:.0f} MB of memory")
    await lead(settings, image, brokers)


def load_in_process(settings: ZooKeeperSettings) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.metadata_scale", "--load", settings.connect]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


async def lead(settings: ZooKeeperSettings, image: MetadataImage, brokers: int) -> None:
    broker_store, store = await ZooKeeperStore.open(settings), await ZooKeeperStore.open(settings)
    writes = Writes()
    writes.watch(store)
    follower = Follower(store)
    await follower.start()
    controller = Controller(store, follower, ConfigRules(lambda: BrokerConfig({})))
    sessions: dict[int, Session] = {}
    for broker in image.brokers.values():
        registration = BrokerRegistration(broker.id, broker.incarnation, broker.listeners, broker.rack)
        sessions[broker.id] = await broker_store.register_broker(registration)
    candidacy = Candidacy(store, controller, 0)
    started = time.perf_counter()
    candidacy.start()
    await follower.until(lambda newer: newer.controller_id == 0)
    row("a new controller is announced", f"{time.perf_counter() - started:.2f} s; {writes.take()}")
    await failover(follower, sessions[LOST_BROKER], writes)
    await isr_changes(controller, follower, writes)
    await entries(settings)
    await candidacy.stop()
    for closing in (store, broker_store):
        await closing.close()


async def entries(settings: ZooKeeperSettings) -> None:
    """How fast a start reads the changes since the last snapshot, and how much a change costs to follow."""
    store = await ZooKeeperStore.open(settings)
    head = await store._reader.newest_head()
    started = time.perf_counter()
    await store._reader.batches(head.first, head.next)
    rate = (head.next - head.first) / (time.perf_counter() - started)
    row("read and decode changes since the snapshot", f"{rate:,.0f} per second")
    await store.close()


async def failover(follower: Follower, session: Session, writes: Writes) -> None:
    places = [
        (topic.name, index, partition.leader == LOST_BROKER)
        for topic in follower.image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if LOST_BROKER in partition.isr
    ]
    led = sum(is_leader for _, _, is_leader in places)
    # Partitions are changed in the order of the image, so the last one says that all are done.
    last_topic, last_index, _ = places[-1]

    def is_over(image: MetadataImage) -> bool:
        return LOST_BROKER not in image.topics[last_topic].partitions[last_index].isr

    started = time.perf_counter()
    await session.close()
    await follower.until(is_over)
    seconds = time.perf_counter() - started
    row(f"failover of a broker that leads {led} partitions", f"{seconds:.2f} s; {writes.take()}")
    row("  partitions that had it in their ISR", str(len(places)))


async def isr_changes(controller: Controller, follower: Follower, writes: Writes) -> None:
    """Shrink and expand the ISR of one partition, one change after the other; then of 1,000 at once."""
    image = follower.image
    topic = next(iter(image.topics.values()))
    leader = topic.partitions[0].leader
    started = time.perf_counter()
    for number in range(ISR_CHANGES):
        size = 2 if number % 2 == 0 else 3
        await controller.alter_partitions(
            leader, image.brokers[leader].epoch, [proposal(follower, 0, 0, size)]
        )
    seconds = time.perf_counter() - started
    row(
        f"{ISR_CHANGES} ISR changes, one at a time",
        f"{seconds / ISR_CHANGES * 1000:.1f} ms each; {writes.take()}",
    )
    places = [
        (number, index)
        for number, topic in enumerate(follower.image.topics.values())
        for index, partition in enumerate(topic.partitions)
        if partition.leader == leader and len(partition.isr) == REPLICATION_FACTOR
    ][:1000]
    proposals = [proposal(follower, number, index, 2) for number, index in places]
    started = time.perf_counter()
    results = await controller.alter_partitions(leader, image.brokers[leader].epoch, proposals)
    seconds = time.perf_counter() - started
    assert not any(isinstance(result, int) for result in results)
    row(f"{len(places)} ISR changes in one request", f"{seconds * 1000:.0f} ms; {writes.take()}")


def proposal(follower: Follower, number: int, index: int, size: int) -> IsrProposal:
    topic = list(follower.image.topics.values())[number]
    partition = topic.partitions[index]
    members = [replica for replica in partition.replicas if follower.image.alive(replica)][:size]
    isr = tuple((member, follower.image.brokers[member].epoch) for member in members)
    return IsrProposal(topic.id, index, partition.leader_epoch, partition.partition_epoch, isr)


def row(what: str, result: str) -> None:
    print(f"{what:58} {result}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--load", metavar="CONNECT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        print(json.dumps(asyncio.run(load(ZooKeeperSettings(options.load)))))
        return
    with ZooKeeper() as zookeeper:
        row("cluster", f"{options.brokers} brokers, {options.partitions:,} partitions, 3 replicas each")
        asyncio.run(measure(zookeeper, options.brokers, options.partitions))
        size = next(
            line for line in Path(f"/proc/{zookeeper.pid}/status").read_text().splitlines() if "VmRSS" in line
        )
        row("memory of ZooKeeper", f"{int(size.split()[1]) / 1024:.0f} MB")


if __name__ == "__main__":
    main()
