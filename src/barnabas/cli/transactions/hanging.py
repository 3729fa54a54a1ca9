"""find-hanging: finds transactions that are open in a partition but that no coordinator knows.

Such a transaction never ends by itself, and consumers with read_committed cannot read past it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.connecting import admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json, print_tabbed, progress
from barnabas.cli.transactions.describing import now_ms
from barnabas.client.admin.types import ProducerState, TransactionDescription
from barnabas.client.types import TopicPartition
from barnabas.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.client import Admin

# The number of partitions per call.
PARTITIONS_PER_CALL = 500
_MINUTE_MS = 60_000
_HEADERS = (
    *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset"),
    *("LastTimestamp", "Duration(min)"),
)
_NAMES = (
    *("topic", "partition", "producerId", "producerEpoch", "coordinatorEpoch", "startOffset"),
    *("lastTimestamp", "durationMinutes"),
)


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerState


def find(options: argparse.Namespace) -> int:
    if options.topic is None and options.broker_id is None:
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the "
            "search."
        )
    if options.partition is not None and options.topic is None:
        raise ToolError("The --partition argument requires --topic to be provided.")
    with admin_of(options) as admin:
        partitions = _partitions(admin, options)
        hanging = _hanging(admin, list(_open_for_long(admin, options, partitions)))
    rows = [_row(each) for each in hanging]
    if options.json:
        print_json([dict(zip(_NAMES, row, strict=True)) for row in rows])
    else:
        print_tabbed(_HEADERS, rows)
    return 0


def _partitions(admin: "Admin", options: argparse.Namespace) -> list[TopicPartition]:
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    topics = [options.topic] if options.topic else list(admin.list_topics(include_internal=True))
    return [
        TopicPartition(topic, info.partition)
        for topic, described in admin.describe_topics(topics).items()
        for info in described.partitions
        if options.broker_id is None or options.broker_id in {node.id for node in info.replicas}
    ]


def _open_for_long(
    admin: "Admin", options: argparse.Namespace, partitions: list[TopicPartition]
) -> Iterator[OpenTransaction]:
    longest_ms = options.max_transaction_timeout * _MINUTE_MS
    with progress("partitions", len(partitions)) as advance:
        for first in range(0, len(partitions), PARTITIONS_PER_CALL):
            batch = partitions[first : first + PARTITIONS_PER_CALL]
            producers = admin.describe_producers(batch, broker_id=options.broker_id)
            advance(len(batch))
            for partition, states in producers.items():
                for state in states:
                    is_open = state.current_transaction_start_offset >= 0
                    if is_open and now_ms() - state.last_timestamp > longest_ms:
                        yield OpenTransaction(partition, state)


def _hanging(admin: "Admin", candidates: list[OpenTransaction]) -> list[OpenTransaction]:
    """The candidates whose coordinator will not write a marker to their partition."""
    if not candidates:
        return []
    producer_ids = {each.producer.producer_id for each in candidates}
    names = {
        listing.producer_id: listing.transactional_id
        for listing in admin.list_transactions(producer_ids=producer_ids)
    }
    known = _described(admin, sorted(set(names.values())))
    hanging = []
    for each in candidates:
        described = known.get(names.get(each.producer.producer_id, ""))
        if described is None or each.partition not in described.partitions:
            hanging.append(each)
    return hanging


def _described(admin: "Admin", names: list[str]) -> dict[str, TransactionDescription]:
    described, errors = results_and_errors(lambda: admin.describe_transactions(names))
    for error in errors.values():
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise error
    return described


def _row(each: OpenTransaction) -> tuple[str | int, ...]:
    state = each.producer
    return (
        each.partition.topic,
        each.partition.partition,
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.current_transaction_start_offset,
        state.last_timestamp,
        (now_ms() - state.last_timestamp) // _MINUTE_MS,
    )
