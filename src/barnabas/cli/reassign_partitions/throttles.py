"""Limits of the bytes per second that moves of partitions may use: settings of the topics and the brokers.

A topic's settings name the replicas that are limited, as partition:broker. The brokers have the rates."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.reassign_partitions.files import joined
from barnabas.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    PartitionReassignment,
)
from barnabas.client.types import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class Move(NamedTuple):
    """A partition that moves: the brokers that have it, and those that get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = dict[TopicPartition, Move]


def all_moves(
    running: Mapping[TopicPartition, PartitionReassignment],
    proposed: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
) -> Moves:
    """The moves that run already, and the proposed ones."""
    moves = {
        partition: Move(
            frozenset(move.replicas) - frozenset(move.adding_replicas), frozenset(move.adding_replicas)
        )
        for partition, move in running.items()
    }
    for partition, brokers in proposed.items():
        sources = moves[partition].sources if partition in moves else frozenset(current[partition])
        moves[partition] = Move(sources, frozenset(brokers) - sources)
    return moves


def limit_moves(admin: Admin, moves: Moves, bytes_per_second: int) -> None:
    configs: dict[ConfigResource, Iterable[AlterConfigOp]] = {}
    for topic in sorted({partition.topic for partition in moves}):
        own = {partition.partition: move for partition, move in moves.items() if partition.topic == topic}
        sources = {f"{number}:{broker}" for number, move in own.items() for broker in move.sources}
        destinations = {f"{number}:{broker}" for number, move in own.items() for broker in move.destinations}
        configs[ConfigResource(ConfigResourceType.TOPIC, topic)] = [
            AlterConfigOp(LEADER_REPLICAS, ",".join(sorted(sources))),
            AlterConfigOp(FOLLOWER_REPLICAS, ",".join(sorted(destinations))),
        ]
    admin.incremental_alter_configs(configs)
    brokers = {broker for move in moves.values() for broker in move.sources | move.destinations}
    rates = [AlterConfigOp(name, str(bytes_per_second)) for name in (LEADER_RATE, FOLLOWER_RATE)]
    admin.incremental_alter_configs(_for_brokers(brokers, rates))
    print(f"The inter-broker throttle limit was set to {bytes_per_second} B/s")


def limit_directory_moves(admin: Admin, brokers: Collection[int], bytes_per_second: int) -> None:
    rate = [AlterConfigOp(DIRECTORY_RATE, str(bytes_per_second))]
    admin.incremental_alter_configs(_for_brokers(brokers, rate))
    print(f"The replica-alter-dir throttle limit was set to {bytes_per_second} B/s")


def clear_throttles(admin: Admin, replicas: Iterable[tuple[TopicPartition, Sequence[int]]]) -> None:
    """Remove all limits: which brokers the finished moves came from is not known any more."""
    listed = list(replicas)
    # A broker that is down cannot be asked. Its rates limit nothing without the settings of the topics.
    brokers = {node.id for node in admin.describe_cluster().nodes}
    print(f"Clearing broker-level throttles on broker{_plural(brokers)} {joined(sorted(brokers))}")
    rates = [_removed(name) for name in (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE)]
    admin.incremental_alter_configs(_for_brokers(brokers, rates))
    topics = {partition.topic for partition, _ in listed}
    print(f"Clearing topic-level throttles on topic{_plural(topics)} {','.join(sorted(topics))}")
    admin.incremental_alter_configs(
        {
            ConfigResource(ConfigResourceType.TOPIC, topic): [
                _removed(LEADER_REPLICAS),
                _removed(FOLLOWER_REPLICAS),
            ]
            for topic in sorted(topics)
        }
    )


def _for_brokers(
    brokers: Collection[int], operations: list[AlterConfigOp]
) -> dict[ConfigResource, list[AlterConfigOp]]:
    return {ConfigResource(ConfigResourceType.BROKER, str(broker)): operations for broker in sorted(brokers)}


def _removed(name: str) -> AlterConfigOp:
    return AlterConfigOp(name, None, ConfigOperation.DELETE)


def _plural(items: Collection[object]) -> str:
    return "" if len(items) == 1 else "s"
