"""list, describe and describe-producers."""

import argparse
import time

from barnabas.cli.connecting import admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json, print_tabbed
from barnabas.client.admin.types import ProducerState, TransactionDescription
from barnabas.client.types import TopicPartition


def list_all(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        listings = admin.list_transactions(
            running_longer_than_ms=options.duration_filter,
            transactional_id_pattern=options.transactional_id_pattern,
        )
    rows = [
        (listing.transactional_id, listing.coordinator_id, listing.producer_id, listing.state)
        for listing in listings
    ]
    if options.json:
        names = ("transactionalId", "coordinator", "producerId", "transactionState")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_tabbed(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)
    return 0


_DESCRIBED = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
    *("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
)


def describe(options: argparse.Namespace) -> int:
    name = options.transactional_id
    with admin_of(options) as admin:
        results, errors = results_and_errors(lambda: admin.describe_transactions([name]))
    if errors:
        raise ToolError(
            f"Failed to describe transaction state of transactional-id `{name}`: {errors[name].message}"
        )
    described = results[name]
    duration_ms = None if described.start_time_ms is None else now_ms() - described.start_time_ms
    if options.json:
        print_json([_described_json(name, described, duration_ms)])
        return 0
    row = (
        described.coordinator_id,
        name,
        described.producer_id,
        described.producer_epoch,
        described.state,
        described.timeout_ms,
        described.start_time_ms,
        duration_ms,
        ",".join(str(partition) for partition in sorted(described.partitions)),
    )
    print_tabbed(_DESCRIBED, [row])
    return 0


def _described_json(
    name: str, described: TransactionDescription, duration_ms: int | None
) -> dict[str, object]:
    return {
        "coordinatorId": described.coordinator_id,
        "transactionalId": name,
        "producerId": described.producer_id,
        "producerEpoch": described.producer_epoch,
        "transactionState": described.state,
        "transactionTimeoutMs": described.timeout_ms,
        "currentTransactionStartTimeMs": described.start_time_ms,
        "transactionDurationMs": duration_ms,
        "topicPartitions": [
            {"topic": topic, "partition": partition} for topic, partition in sorted(described.partitions)
        ],
    }


_PRODUCERS = (
    *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
    "CurrentTransactionStartOffset",
)


def describe_producers(options: argparse.Namespace) -> int:
    partition = TopicPartition(options.topic, options.partition)
    with admin_of(options) as admin:
        results, errors = results_and_errors(
            lambda: admin.describe_producers([partition], broker_id=options.broker_id)
        )
    if errors:
        where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
        raise ToolError(
            f"Failed to describe producers for partition {partition} on {where}: {errors[partition].message}"
        )
    rows = [_producer_row(state) for state in results[partition]]
    if options.json:
        names = [name[0].lower() + name[1:] for name in _PRODUCERS]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_tabbed(_PRODUCERS, rows)
    return 0


def _producer_row(state: ProducerState) -> tuple[int | None, ...]:
    start = state.current_transaction_start_offset
    return (
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_sequence,
        state.last_timestamp,
        None if start < 0 else start,
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000
