"""Consumer groups that this broker coordinates: how many in which state, and how far they are behind.

The lag of a partition is its high watermark minus the committed offset. It is given per group and topic, and
for each partition as long as there are not too many of them: a scraper keeps every series it has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.metrics.families import PAUSE, ROWS_PER_STEP, Collected, Family, gauge, gauges, labels
from barnabas.groups.consumer.group import ConsumerGroup

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.groups.directory import AnyGroup
    from barnabas.groups.offsets import CommittedOffset
    from barnabas.ids import TopicPartition

PARTITION_SERIES_MAX = 20_000
# States of classic groups that Kafka has a gauge of its own for.
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")


def collect(broker: Broker) -> Collected:
    states: Counter[tuple[str, str]] = Counter()
    lags = _Lags(broker)
    for number, item in enumerate(_items(broker)):
        if number % ROWS_PER_STEP == 0:
            yield PAUSE
        if isinstance(item, _Commit):
            lags.add(item)
        else:
            protocol = "consumer" if isinstance(item, ConsumerGroup) else "classic"
            states[protocol, item.state_name] += 1
    yield from _states(states)
    yield from lags.families()


class _Commit(NamedTuple):
    group_id: str
    place: TopicPartition
    committed: CommittedOffset


def _items(broker: Broker) -> Iterator[AnyGroup | _Commit]:
    """All groups and all committed offsets, from copies: others change them while a scrape pauses."""
    for shard in list(broker.groups.shards()):
        yield from shard.machine.groups
        offsets = shard.machine.groups.offsets
        for group_id in offsets.group_ids():
            for place, committed in list(offsets.of_group(group_id)):
                yield _Commit(group_id, place, committed)


def _states(states: Counter[tuple[str, str]]) -> Iterator[Family]:
    yield gauges(
        "kafka_server_group_coordinator_metrics_group_count",
        "Groups by protocol and state",
        ((labels(protocol=protocol, state=state), count) for (protocol, state), count in states.items()),
    )
    prefix = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    yield gauge(prefix, "Groups", states.total())
    for state in CLASSIC_STATES:
        yield gauge(prefix + state.lower(), f"Classic groups in the state {state}", states["classic", state])


class _Lags:
    def __init__(self, broker: Broker) -> None:
        self._replicas = broker.replicas
        self._count = 0
        self._rows: list[tuple[str, int, int]] = []
        self._sums: Counter[tuple[str, str]] = Counter()

    def add(self, commit: _Commit) -> None:
        group_id, place, committed = commit
        self._count += 1
        partition = self._replicas.get(*place)
        if partition is None or not committed.is_of_topic(partition.topic_id):
            return
        lag = max(0, partition.high_watermark - committed.offset)
        self._sums[group_id, place.topic] += lag
        if len(self._rows) < PARTITION_SERIES_MAX:
            row = labels(consumergroup=group_id, topic=place.topic, partition=place.partition)
            self._rows.append((row, lag, committed.offset))

    def families(self) -> Iterator[Family]:
        yield gauge(
            "kafka_coordinator_group_groupmetadatamanager_numoffsets", "Committed offsets", self._count
        )
        yield gauges(
            "kafka_consumergroup_lag_sum",
            "Records of a topic that a group has not committed yet",
            ((labels(consumergroup=group, topic=topic), lag) for (group, topic), lag in self._sums.items()),
        )
        yield gauges(
            "kafka_consumergroup_lag",
            f"Records of a partition that a group has not committed yet, for {PARTITION_SERIES_MAX} at most",
            ((row, lag) for row, lag, _ in self._rows),
        )
        yield gauges(
            "kafka_consumergroup_current_offset",
            f"Committed offset of a group for a partition, for {PARTITION_SERIES_MAX} at most",
            ((row, offset) for row, _, offset in self._rows),
        )
