"""Which partition a record goes to when the caller does not name one.

By default the murmur2 hash of the key decides, as in Kafka's own clients. Records without a key go to one
partition, the sticky one, until it has received batch.size bytes, and then to another
(`TopicQueues.choose_sticky` in the accumulator). A custom partitioner is any callable of (topic, key, value,
number of partitions) that returns a partition."""

import itertools
import random
from collections.abc import Callable
from threading import Lock

from barnabas.client.errors import ConfigError
from barnabas.kernels.hashing import murmur2

__all__ = ["Partitioner", "key_partition", "partitioner_of", "random_partitioner", "round_robin_partitioner"]

Partitioner = Callable[[str, bytes | None, bytes | None, int], int]


def key_partition(key: bytes, partitions: int) -> int:
    return murmur2(key) % partitions


def random_partitioner() -> Partitioner:
    """A random partition for every record, with or without a key."""

    def choose(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        return random.randrange(partitions)

    return choose


def round_robin_partitioner() -> Partitioner:
    """The partitions of each topic in turn, whatever the keys."""
    counters: dict[str, itertools.count[int]] = {}
    lock = Lock()

    def choose(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        with lock:
            counter = counters.setdefault(topic, itertools.count())
        return next(counter) % partitions

    return choose


def partitioner_of(setting: object) -> Partitioner | None:
    """The partitioner that `partitioner.class` is or names. None means the default one."""
    if setting is None or callable(setting):
        return setting
    by_name = {"random": random_partitioner, "round_robin": round_robin_partitioner}
    name = str(setting).rpartition(".")[2]
    if name == "RoundRobinPartitioner":
        name = "round_robin"
    if name not in by_name:
        raise ConfigError(
            f"partitioner.class is {setting!r}: it must be a callable, 'random' or 'round_robin'."
        )
    return by_name[name]()
