"""Creates topics, adds partitions, deletes topics."""

import argparse
from collections.abc import Mapping

from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.topic_filter import chosen
from barnabas.client.admin import Admin, NewPartitions, NewTopic
from barnabas.errors import ErrorCode, KafkaError

REPLICATION_FACTOR_MAX = 32_767


def create(admin: Admin, options: argparse.Namespace) -> int:
    name = options.topic
    topic = new_topic(options)
    if "." in name or "_" in name:
        print(
            "WARNING: a topic is refused if its name differs from another only in '.' and '_'; "
            "it is best to use only one of the two characters."
        )
    _, errors = results_and_errors(lambda: admin.create_topics([topic]))
    exists = errors.get(name)
    if exists is not None and exists.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
        return 0
    _raise_if_failed(errors, 1)
    print(f"Created topic {name}.")
    return 0


def new_topic(options: argparse.Namespace) -> NewTopic:
    factor, partitions = options.replication_factor, options.partitions
    if factor is not None and not 1 <= factor <= REPLICATION_FACTOR_MAX:
        raise ToolError(f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    return NewTopic(
        options.topic,
        -1 if partitions is None else partitions,
        -1 if factor is None else factor,
        configs_of(options.config),
        dict(enumerate(assignment_of(options.replica_assignment))),
    )


def configs_of(pairs: list[str]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ToolError(f"--config {pair} must be in the format KEY=VALUE")
        configs[key.strip()] = value.strip()
    return configs


def assignment_of(text: str | None) -> list[list[int]]:
    """The brokers of each partition: "1:2,2:1" gives [[1, 2], [2, 1]]."""
    if not text:
        return []
    try:
        partitions = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise ToolError(f"--replica-assignment {text} must name brokers by number, as in 1:2,2:1") from None
    for number, brokers in enumerate(partitions):
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            named = ",".join(map(str, twice))
            raise ToolError(f"Partition replica lists may not contain duplicate entries: {named}")
        if len(brokers) != len(partitions[0]):
            raise ToolError(f"Partition {number} has different replication factor: {brokers}")
    return partitions


def alter(admin: Admin, options: argparse.Namespace) -> int:
    names = existing(admin, options)
    assignment = assignment_of(options.replica_assignment)
    added: dict[str, NewPartitions | int] = dict.fromkeys(names, options.partitions)
    if assignment:
        for name, topic in admin.describe_topics(names).items():
            added[name] = NewPartitions(options.partitions, assignment[len(topic.partitions) :])
    _, errors = results_and_errors(lambda: admin.create_partitions(added))
    _raise_if_failed(errors, len(names))
    return 0


def delete(admin: Admin, options: argparse.Namespace) -> int:
    names = existing(admin, options)
    _, errors = results_and_errors(lambda: admin.delete_topics(names))
    _raise_if_failed(errors, len(names))
    return 0


def existing(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The topics that match --topic. No match is an error, except with --if-exists."""
    listings = admin.list_topics(include_internal=True)
    names = chosen(listings, options.topic, exclude_internal=options.exclude_internal)
    if not names and options.topic and not options.if_exists:
        raise ToolError(f"Topic '{options.topic}' does not exist as expected")
    return names


def _raise_if_failed(errors: Mapping[str, KafkaError], topic_count: int) -> None:
    """Raise one error for all failures. It names the topics if there is more than one."""
    if errors:
        raise ToolError(
            "; ".join(
                error.message if topic_count == 1 else f"{name}: {error.message}"
                for name, error in errors.items()
            )
        )
