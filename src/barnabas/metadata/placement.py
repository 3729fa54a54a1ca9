"""Where replicas go: Kafka's striped placement. Pure functions; randomness is passed in.

Racks take turns, and within a rack its brokers take turns; both start at a random place, and each partition
begins one further than the one before. So leaders and followers spread evenly, and no partition has two
replicas in one rack while another rack has none. Brokers without a rack count as one rack of their own; Kafka
treats them so, too. Living brokers come first; a fenced one may follow, but never lead, a new partition."""

import random
from collections.abc import Iterable
from itertools import islice

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import BrokerImage


class _Ring:
    """Some brokers in a circle; each round begins one place further."""

    def __init__(self, brokers: list[int], start: int) -> None:
        self._brokers = sorted(brokers)
        self._start = start

    def round(self) -> list[int]:
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

    def round(self) -> list[int]:
        return self._living.round() + self._fenced.round()


def place_replicas(
    brokers: Iterable[BrokerImage], partitions: int, replication_factor: int, chooser: random.Random
) -> list[tuple[int, ...]]:
    """The replicas of each of the new partitions, the preferred leader first.

    Raises INVALID_REPLICATION_FACTOR when there are not enough brokers, or none that can lead."""
    by_rack: dict[str | None, list[BrokerImage]] = {}
    for broker in brokers:
        by_rack.setdefault(broker.rack, []).append(broker)
    count = sum(map(len, by_rack.values()))
    if replication_factor > count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs as many brokers, and the cluster has {count}",
        )
    racks = [
        _Rack(by_rack[name], chooser)
        for name in sorted(by_rack, key=lambda rack: (rack is not None, rack or ""))
    ]
    leading = [index for index, rack in enumerate(racks) if rack.has_living]
    if not leading:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "no broker is alive to lead a new partition")
    start = chooser.randrange(len(leading))
    # The first replica leads, so every stripe begins in a rack with a living broker.
    starts = (leading[(start + number) % len(leading)] for number in range(partitions))
    return [_stripe(racks[first:] + racks[:first], replication_factor) for first in starts]


def _stripe(racks: list[_Rack], replication_factor: int) -> tuple[int, ...]:
    rounds = [rack.round() for rack in racks]
    depth = max(map(len, rounds))
    turns = (ring[turn] for turn in range(depth) for ring in rounds if turn < len(ring))
    return tuple(islice(turns, replication_factor))
