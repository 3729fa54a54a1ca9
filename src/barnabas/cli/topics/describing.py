"""Lists and describes topics, as text in Kafka's format or as JSON."""

import argparse
from typing import Any, NamedTuple

from barnabas.cli.failures import ToolError, print_errors, results_and_errors
from barnabas.cli.output import print_json
from barnabas.cli.partition_states import (
    Moves,
    PartitionStates,
    in_sync_min_of,
    replication_factor,
    running_moves,
    states_of,
)
from barnabas.cli.topic_filter import chosen
from barnabas.cli.topics.changing import existing
from barnabas.client.admin import (
    Admin,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    PartitionReassignment,
)
from barnabas.client.types import Node, TopicDescription, TopicPartition, TopicPartitionInfo
from barnabas.config.definition import Source
from barnabas.ids import ZERO_UUID, uuid_from_string, uuid_to_string


class Described(NamedTuple):
    """A topic with its settings and the partitions to print."""

    topic: TopicDescription
    configs: dict[str, str | None]
    replication_factor: int
    partitions: list[TopicPartitionInfo]


def list_names(admin: Admin, options: argparse.Namespace) -> int:
    listings = admin.list_topics(include_internal=True)
    names = chosen(listings, options.topic, exclude_internal=options.exclude_internal)
    if options.json:
        print_json(
            [
                {
                    "topic": name,
                    "topicId": uuid_to_string(listings[name].topic_id),
                    "isInternal": listings[name].is_internal,
                }
                for name in names
            ]
        )
    else:
        print("\n".join(names))
    return 0


def describe(admin: Admin, options: argparse.Namespace) -> int:
    by_id = _named_by_id(admin, options)
    names = existing(admin, options) if by_id is None else by_id
    topics, errors = results_and_errors(
        lambda: admin.describe_topics(
            names, partition_size_limit_per_response=options.partition_size_limit_per_response
        )
    )
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
    entries, config_errors = results_and_errors(
        lambda: admin.describe_configs(resources, include_synonyms=False)
    )
    errors |= {resource.name: error for resource, error in config_errors.items()}
    partitions = [
        TopicPartition(topic.name, info.partition) for topic in topics.values() for info in topic.partitions
    ]
    moves = running_moves(admin, partitions)
    live = {node.id for node in admin.describe_cluster().nodes}
    shown = [
        _described(topics[resource.name], configs, moves, live, options)
        for resource, configs in sorted(entries.items())
    ]
    if options.topics_with_overrides:
        shown = [each for each in shown if each.configs]
    if options.json:
        print_json([_as_json(each) for each in shown])
    else:
        for each in shown:
            _print(each, moves, options)
    return print_errors(errors)


def _named_by_id(admin: Admin, options: argparse.Namespace) -> list[str] | None:
    """The topic with --topic-id, which wins over --topic. None without an id; the zero id counts as none."""
    if options.topic_id is None:
        return None
    try:
        topic_id = uuid_from_string(options.topic_id)
    except ValueError as error:
        raise ToolError(str(error)) from error
    if topic_id == ZERO_UUID:
        return None
    listings = admin.list_topics(include_internal=not options.exclude_internal)
    names = [name for name, listing in listings.items() if listing.topic_id == topic_id]
    if not names and not options.if_exists:
        raise ToolError(f"TopicId '{options.topic_id}' does not exist as expected")
    return names


def _described(
    topic: TopicDescription,
    entries: dict[str, ConfigEntry],
    moves: Moves,
    live: set[int],
    options: argparse.Namespace,
) -> Described:
    own = {entry.name: entry.value for entry in entries.values() if entry.source != Source.DEFAULT}
    in_sync_min = in_sync_min_of(entries)

    def move_of(info: TopicPartitionInfo) -> PartitionReassignment | None:
        return moves.get(TopicPartition(topic.name, info.partition))

    partitions = [
        info
        for info in topic.partitions
        if _is_chosen(states_of(info, move_of(info), in_sync_min, live), options)
    ]
    first = topic.partitions[0]
    return Described(topic, own, replication_factor(first, move_of(first)), partitions)


def reports(options: argparse.Namespace) -> bool:
    """Whether only partitions in a certain state are printed."""
    return bool(
        options.under_replicated_partitions
        or options.under_min_isr_partitions
        or options.at_min_isr_partitions
        or options.unavailable_partitions
    )


def _is_chosen(states: PartitionStates, options: argparse.Namespace) -> bool:
    pairs = (
        (options.under_replicated_partitions, states.is_under_replicated),
        (options.under_min_isr_partitions, states.is_under_min_isr),
        (options.at_min_isr_partitions, states.is_at_min_isr),
        (options.unavailable_partitions, states.is_unavailable),
    )
    return not reports(options) or any(is_set and holds for is_set, holds in pairs)


def _print(described: Described, moves: Moves, options: argparse.Namespace) -> None:
    topic = described.topic
    if not reports(options):
        topic_id = "" if topic.topic_id == ZERO_UUID else f"\tTopicId: {uuid_to_string(topic.topic_id)}"
        configs = ",".join(f"{name}={_java(value)}" for name, value in described.configs.items())
        print(
            f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {described.replication_factor}\tConfigs: {configs}"
        )
    if not options.topics_with_overrides:
        for info in described.partitions:
            print(partition_line(topic.name, info, moves.get(TopicPartition(topic.name, info.partition))))


def partition_line(topic: str, info: TopicPartitionInfo, move: PartitionReassignment | None) -> str:
    fields = [
        f"\tTopic: {topic}",
        f"Partition: {info.partition}",
        f"Leader: {'none' if info.leader is None else info.leader.id}",
        f"Replicas: {_ids(info.replicas)}",
        f"Isr: {_ids(info.in_sync_replicas)}",
    ]
    if move is not None:
        fields.append(f"Adding Replicas: {','.join(map(str, move.adding_replicas))}")
        fields.append(f"Removing Replicas: {','.join(map(str, move.removing_replicas))}")
    fields.append(f"Elr: {_ids(info.eligible_leader_replicas)}")
    fields.append(f"LastKnownElr: {_ids(info.last_known_eligible_leader_replicas)}")
    return "\t".join(fields)


def _ids(nodes: tuple[Node, ...] | None) -> str:
    return "N/A" if nodes is None else ",".join(str(node.id) for node in nodes)


def _java(value: str | None) -> str:
    return "null" if value is None else value


def _as_json(described: Described) -> dict[str, Any]:
    topic = described.topic
    return {
        "topic": topic.name,
        "topicId": uuid_to_string(topic.topic_id),
        "isInternal": topic.is_internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": described.replication_factor,
        "configs": described.configs,
        "partitions": [
            {
                "partition": info.partition,
                "leader": None if info.leader is None else info.leader.id,
                "leaderEpoch": info.leader_epoch,
                "replicas": _id_list(info.replicas),
                "isr": _id_list(info.in_sync_replicas),
                "elr": _id_list(info.eligible_leader_replicas),
                "lastKnownElr": _id_list(info.last_known_eligible_leader_replicas),
            }
            for info in described.partitions
        ],
    }


def _id_list(nodes: tuple[Node, ...] | None) -> list[int] | None:
    return None if nodes is None else [node.id for node in nodes]
