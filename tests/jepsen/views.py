"""What brokers and the metadata say about leaders, in-sync replicas and controllers during a run. These
questions do not pass any link."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterator

from tests.jepsen.stage import Stage, System

from barnabas.ids import TopicPartition
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.replaying import start_and_records
from barnabas.metadata.zookeeper.inspecting import read_metadata
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings

ELECTED = re.compile(r"broker \d+ is the controller, epoch (\d+)")
EXPIRED = re.compile(r"the session with ZooKeeper at .* has expired")


# ---- partitions


def leaders(stage: Stage) -> dict[TopicPartition, int]:
    """Who leads each partition of the run's topics; -1 is nobody."""
    with stage.system.admin() as admin:
        described = admin.describe_topics([stage.events.name, stage.copies.name])
    return {
        TopicPartition(name, each.partition): -1 if each.leader is None else each.leader.id
        for name, topic in described.items()
        for each in topic.partitions
    }


def partition_led(stage: Stage, by_controller: bool) -> tuple[TopicPartition, int]:
    """A partition that processes write to, and its leader: the controller, or somebody else. If there is
    none like that, any."""
    controller = stage.system.controller()
    led = [(place, leader) for place, leader in leaders(stage).items() if place.topic == stage.topic]
    wanted = [each for each in led if (each[1] == controller) == by_controller] or led
    return wanted[stage.seed // 2 % len(wanted)]


def in_sync(stage: Stage, partition: TopicPartition, seen_by: int | None = None) -> set[int]:
    with stage.system.admin(seen_by) as admin:
        topic = admin.describe_topics([partition.topic])[partition.topic]
    return {node.id for node in topic.partitions[partition.partition].in_sync_replicas}


# ---- the metadata log


def partition_states(zookeeper_connect: str) -> Iterator[tuple[TopicPartition, PartitionImage]]:
    """Every state of every partition in the metadata log, in its order."""
    cluster_id, updates = asyncio.run(read_metadata(ZooKeeperSettings(zookeeper_connect)))
    image = MetadataImage(cluster_id=cluster_id)
    for update in updates:
        start, records = start_and_records(image, [update])
        image = start.apply(records)
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                yield TopicPartition(topic.name, number), partition


def count_shrinks(zookeeper_connect: str, topics: Collection[str]) -> Counter[TopicPartition]:
    """How often replicas were removed from the ISR of each partition of these topics."""
    shrinks: Counter[TopicPartition] = Counter()
    before: dict[TopicPartition, frozenset[int]] = {}
    for place, partition in partition_states(zookeeper_connect):
        if place.topic in topics:
            isr = frozenset(partition.isr)
            shrinks[place] += bool(before.get(place, isr) - isr)
            before[place] = isr
    return shrinks


# ---- controllers and sessions, from what the brokers have printed


def elections(stage: Stage) -> list[int]:
    """The epochs of all controllers so far."""
    return sorted(int(epoch) for output in _outputs(stage.system) for epoch in ELECTED.findall(output))


def expirations(stage: Stage) -> int:
    """How many sessions of brokers with ZooKeeper have expired so far."""
    return sum(len(EXPIRED.findall(output)) for output in _outputs(stage.system))


def _outputs(system: System) -> list[str]:
    return [broker.output() for broker in system.brokers.values()]
