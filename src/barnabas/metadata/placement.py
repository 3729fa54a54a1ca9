"""Chooses brokers for replicas, in Kafka's striped way. Pure functions; randomness is a parameter.

Racks take turns, and within a rack its brokers take turns. Both start at a random position, and each
partition begins one position after the one before. So leaders and followers spread evenly, and no
partition has two replicas in one rack while another rack has none. As in Kafka, all brokers without a rack
form one rack. Living brokers come first. A fenced broker may have a follower of a new partition, but never
its leader."""

import random
from collections.abc import Iterable
from itertools import islice

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import BrokerImage


class _Ring:
    """Brokers in a circle; each call of `next_order` begins one position later."""

    def __init__(self, brokers: list[int], start: int) -> None:
        self._brokers = sorted(brokers)
        self._start = start

    def next_order(self) -> list[int]:
        if not self._brokers:
            return []
        start = self._start % len(self._brokers)
        self._start += 1
        return self._brokers[start:] + self._brokers[:start]


class _Rack:
    def __init__(self, brokers: list[BrokerImage], chooser: random.Random) -> None:
        living = [broker.id for broker in brokers if not broker.fenced]
        fenced = [broker.id for broker in brokers if broker.fenced]
        self.has_living = bool(living)
        self._living = _Ring(living, chooser.randrange(max(1, len(living))))
        self._fenced = _Ring(fenced, chooser.randrange(max(1, len(fenced))))

    def next_order(self) -> list[int]:
        return self._living.next_order() + self._fenced.next_order()


def place_replicas(
    brokers: Iterable[BrokerImage], partitions: int, replication_factor: int, chooser: random.Random
) -> list[tuple[int, ...]]:
    """The replicas of each of the new partitions, the preferred leader first.

    Raises INVALID_REPLICATION_FACTOR if there are not enough brokers, or none that can lead."""
    by_rack: dict[str | None, list[BrokerImage]] = {}
    for broker in brokers:
        # As in Kafka, a broker that shuts down gets nothing; one that is fenced may come back soon.
        if not broker.in_controlled_shutdown:
            by_rack.setdefault(broker.rack, []).append(broker)
    count = sum(map(len, by_rack.values()))
    if replication_factor > count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is larger than the number of brokers, {count}",
        )
    racks = [
        _Rack(by_rack[name], chooser)
        for name in sorted(by_rack, key=lambda rack: (rack is not None, rack or ""))
    ]
    leading = [index for index, rack in enumerate(racks) if rack.has_living]
    if not leading:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "no broker is alive, so a new partition would have no leader",
        )
    start = chooser.randrange(len(leading))
    # The first replica leads, so every stripe begins in a rack with a living broker.
    starts = (leading[(start + number) % len(leading)] for number in range(partitions))
    return [_stripe(racks[first:] + racks[:first], replication_factor) for first in starts]


def _stripe(racks: list[_Rack], replication_factor: int) -> tuple[int, ...]:
    orders = [rack.next_order() for rack in racks]
    depth = max(map(len, orders))
    turns = (order[turn] for turn in range(depth) for order in orders if turn < len(order))
    return tuple(islice(turns, replication_factor))
