"""Who leads a partition and at which address, for answers to clients whose metadata is old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.call import Call


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
