"""Which partition a record goes to: by key, round robin, at random, or by a custom callable."""

import pytest

from barnabas.client.errors import ConfigError
from barnabas.client.producer.accumulator import TopicQueues
from barnabas.client.producer.partitioners import (
    key_partition,
    partitioner_of,
    random_partitioner,
    round_robin_partitioner,
)


def test_a_key_always_goes_to_the_same_partition_as_in_java() -> None:
    assert key_partition(b"foobar", 10) == (-790332482 & 0x7FFFFFFF) % 10
    assert key_partition(b"21", 3) == (-973932308 & 0x7FFFFFFF) % 3


def test_round_robin_counts_each_topic_separately() -> None:
    choose = round_robin_partitioner()
    assert [choose("a", b"k", None, 3) for _ in range(4)] == [0, 1, 2, 0]
    assert choose("b", None, None, 3) == 0


def test_random_uses_all_partitions() -> None:
    choose = random_partitioner()
    assert {choose("a", None, None, 3) for _ in range(500)} == {0, 1, 2}


def test_the_setting_is_a_partitioner_or_the_name_of_one() -> None:
    assert partitioner_of(None) is None
    assert partitioner_of(key_partition) is key_partition
    by_java_name = partitioner_of("org.apache.kafka.clients.producer.RoundRobinPartitioner")
    assert by_java_name is not None
    assert [by_java_name("t", None, None, 2) for _ in range(3)] == [0, 1, 0]
    with pytest.raises(ConfigError, match=r"partitioner\.class"):
        partitioner_of("murmur9")


def test_the_sticky_partition_moves_on_to_one_with_a_leader() -> None:
    topic = TopicQueues("t", 3)
    for _ in range(20):
        before = topic.sticky
        topic.choose_sticky([0, 2])
        assert topic.sticky in (0, 2)
        assert topic.sticky != before
    topic.choose_sticky([1])
    topic.choose_sticky([1])
    assert topic.sticky == 1
    topic.choose_sticky([])
    assert topic.sticky in (0, 1, 2)
