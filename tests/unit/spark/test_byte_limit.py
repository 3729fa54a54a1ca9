"""Batches of at most so many bytes."""

from collections.abc import Mapping

from barnabas.ids import TopicPartition
from barnabas.spark.byte_limit import ByteLimit

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Log:
    """Records of these sizes; counts how often they are measured."""

    def __init__(self, sizes: dict[TopicPartition, float]) -> None:
        self.sizes = sizes
        self.samples = 0

    def sample(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        self.samples += 1
        return {partition: self.sizes[partition] for partition in offsets}


def test_a_backlog_is_cut() -> None:
    limit = ByteLimit(Log({ONE: 100.0, TWO: 300.0}), 4_000)
    ends = limit.ends({ONE: 0, TWO: 0}, {ONE: 1_000, TWO: 1_000})
    assert ends == {ONE: 10, TWO: 10}
    assert limit.bytes({ONE: 0, TWO: 0}, ends) == 4_000


def test_small_batches_are_measured_once() -> None:
    log = Log({ONE: 100.0})
    limit = ByteLimit(log, 1_000_000)
    for begin in range(0, 100, 10):
        assert limit.ends({ONE: begin}, {ONE: begin + 10}) == {ONE: begin + 10}
    assert log.samples == 1
    assert limit.bytes({ONE: 0}, {ONE: 10}) == 1_000


def test_large_batches_are_measured_each_time() -> None:
    log = Log({ONE: 100.0})
    limit = ByteLimit(log, 1_000)
    assert limit.ends({ONE: 0}, {ONE: 100}) == {ONE: 10}
    log.sizes[ONE] = 500.0
    assert limit.ends({ONE: 10}, {ONE: 100}) == {ONE: 12}


def test_without_records_nothing_is_measured() -> None:
    log = Log({})
    assert ByteLimit(log, 1_000).ends({ONE: 5}, {ONE: 5}) == {ONE: 5}
    assert log.samples == 0
