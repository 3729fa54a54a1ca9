"""Who leads a partition and at which address, for answers to clients whose metadata is old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.call import Call
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.parts import PartitionImage


def leader_of(call: Call, topic: str, index: int) -> tuple[int, int]:
    """Leader and leader epoch, both -1 if the partition does not exist."""
    partition = call.broker.image.partition(topic, index)
    return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)


def endpoints_of(call: Call, nodes: Iterable[int]) -> Iterator[tuple[int, str, int, str | None]]:
    """Node, host, port and rack of those nodes that are alive, for the listener that the client uses."""
    for node in sorted(nodes):
        broker = call.broker.image.brokers.get(node)
        if broker is None or broker.fenced:
            continue
        for listener in broker.listeners:
            if listener.name == call.listener.name:
                yield node, listener.host, listener.port, broker.rack


def reachable_brokers(call: Call) -> frozenset[int]:
    """The living brokers that have an address for clients of this listener."""
    name = call.listener.name
    return frozenset(
        node
        for node, broker in call.broker.image.brokers.items()
        if not broker.fenced and broker.listener(name) is not None
    )


def offline_replicas(image: MetadataImage, part: PartitionImage, reachable: frozenset[int]) -> list[int]:
    """The replicas that clients of a listener cannot use: their broker is not reachable, or the directory
    has failed that they are in."""
    offline = [node for node in part.replicas if node not in reachable]
    for node, directory in zip(part.replicas, part.directories, strict=False):
        broker = image.brokers.get(node)
        if broker is not None and directory in broker.offline_directories and node not in offline:
            offline.append(node)
    return offline
