"""Replication as it is: the end of every replica, its watermark and lag, the epochs of leaders, and what
happened."""

import asyncio
from typing import Any

from barnabas.client.admin.epochs import EpochHistory
from barnabas.client.admin.replicas import ReplicaData
from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition, TopicPartitionInfo
from barnabas.console.calls import Call
from barnabas.console.overview import is_under_replicated
from barnabas.console.routing import Route
from barnabas.console.sampling import Sampler
from barnabas.console.shapes import Whole
from barnabas.console.workspace import Workspace

Item = dict[str, Any]

PARTITIONS_MAX = 200
EVENTS_MAX = 500
ROWS_MAX = 1000
ANSWER_SECONDS = 5.0


async def topic_replication(call: Call) -> Item:
    """Asks every broker that has a replica, so a broker that is down costs some seconds at most."""
    sampler = call.workspace.sampler
    await sampler.ready()
    name = call.path["topic"]
    described = (await call.workspace.admin.describe_topics([name]))[name]
    first = (call.query["page"] - 1) * call.query["size"]
    shown = described.partitions[first : first + call.query["size"]]
    look = _Look(call.workspace, name, shown)
    await look.take()
    return {
        "partitions": [look.partition(info) for info in shown],
        "timeline": sampler.timeline.newest(EVENTS_MAX, name),
        "total": len(described.partitions),
        "page": call.query["page"],
        "size": call.query["size"],
    }


class _Look:
    """What the brokers say about their replicas of some partitions."""

    def __init__(self, workspace: Workspace, topic: str, infos: tuple[TopicPartitionInfo, ...]) -> None:
        self._admin = workspace.admin
        self._sampler = workspace.sampler
        self._topic = topic
        self._infos = infos
        self._ends: dict[tuple[int, TopicPartition], int] = {}
        self._watermarks: dict[tuple[int, TopicPartition], int] = {}
        self._epochs: dict[TopicPartition, EpochHistory] = {}

    async def take(self) -> None:
        by_broker: dict[int, list[TopicPartition]] = {}
        for info in self._infos:
            for node in info.replicas:
                if self._sampler.is_alive(node.id):
                    by_broker.setdefault(node.id, []).append(TopicPartition(self._topic, info.partition))
        await asyncio.gather(*(self._ask(*item) for item in by_broker.items()), self._ask_epochs())

    async def _ask(self, broker: int, partitions: list[TopicPartition]) -> None:
        try:
            ends = await self._admin.replica_ends(broker, partitions, timeout=ANSWER_SECONDS)
            known = {each: end for each, end in ends.items() if isinstance(end, int)}
            self._ends |= {(broker, each): end for each, end in known.items()}
            # Nothing is there to read at the end of a log, so the answer has only the watermark.
            data = await self._admin.read_replicas(broker, known, bytes_max=1, timeout=ANSWER_SECONDS)
        except KafkaError:
            # The broker is down: its replicas are shown without numbers.
            return
        self._watermarks |= {
            (broker, each): found.high_watermark
            for each, found in data.items()
            if isinstance(found, ReplicaData) and found.high_watermark >= 0
        }

    async def _ask_epochs(self) -> None:
        led = [TopicPartition(self._topic, info.partition) for info in self._infos if info.leader is not None]
        try:
            self._epochs = await self._admin.leader_epochs(led, timeout=ANSWER_SECONDS)
        except KafkaError:
            self._epochs = {}

    def partition(self, info: TopicPartitionInfo) -> Item:
        partition = TopicPartition(self._topic, info.partition)
        leader = -1 if info.leader is None else info.leader.id
        start = self._sampler.starts.get(partition, 0)
        epochs = self._epochs.get(partition)
        return {
            "index": info.partition,
            "leader": None if leader < 0 else leader,
            "leader_epoch": info.leader_epoch,
            "high_watermark": self._watermarks.get((leader, partition)),
            "replicas": [self._replica(info, node.id, leader) for node in info.replicas],
            "epochs": []
            if epochs is None
            else [{"epoch": each.epoch, "start": max(start, each.start)} for each in epochs.epochs],
        }

    def _replica(self, info: TopicPartitionInfo, broker: int, leader: int) -> Item:
        partition = TopicPartition(self._topic, info.partition)
        end = self._ends.get((broker, partition))
        leader_end = self._ends.get((leader, partition))
        size, is_future = _size(self._sampler, broker, partition)
        return {
            "broker": broker,
            "end": end,
            "high_watermark": self._watermarks.get((broker, partition)),
            "lag": None if end is None or leader_end is None else max(0, leader_end - end),
            "in_sync": any(node.id == broker for node in info.in_sync_replicas),
            "is_leader": broker == leader,
            "is_future": is_future,
            "size_bytes": size,
            "alive": self._sampler.is_alive(broker),
        }


def _size(sampler: Sampler, broker: int, partition: TopicPartition) -> tuple[int | None, bool]:
    """The size of a replica, and whether it is moving to another directory."""
    found = [
        info
        for directory in sampler.log_dirs.get(broker, {}).values()
        if (info := directory.replicas.get(partition)) is not None
    ]
    sizes = [info.size for info in found if not info.is_future]
    return (sizes[0] if sizes else None), any(info.is_future for info in found)


async def replication(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    behind = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "leader": None if each.leader is None else each.leader.id,
            "replicas": [node.id for node in each.replicas],
            "isr": [node.id for node in each.in_sync_replicas],
        }
        for topic in sampler.metadata.topics.values()
        for each in topic.partitions
        if is_under_replicated(each) or each.leader is None
    ]
    moving = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "replicas": list(move.replicas),
            "adding": list(move.adding_replicas),
            "removing": list(move.removing_replicas),
        }
        for each, move in sorted(sampler.reassignments.items())
    ]
    return {
        "timeline": sampler.timeline.newest(EVENTS_MAX),
        "under_replicated": behind[:ROWS_MAX],
        "under_replicated_total": len(behind),
        "reassignments": moving[:ROWS_MAX],
        "reassignments_total": len(moving),
        "stale_since_ms": sampler.stale_since_ms,
    }


ROUTES = (
    Route(
        "GET",
        "/api/topics/{topic}/replication",
        topic_replication,
        "Every replica of a topic as it is",
        query={
            "page": Whole("the page, from 1", default=1, least=1, most=1_000_000),
            "size": Whole("partitions on a page", default=100, least=1, most=PARTITIONS_MAX),
        },
    ),
    Route("GET", "/api/replication", replication, "What happened, what is behind, what is moving"),
)
