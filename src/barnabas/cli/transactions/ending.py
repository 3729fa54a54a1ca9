"""abort and force-terminate: end transactions that their producers will not end."""

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.connecting import admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.client.admin.types import AbortTransactionSpec
from barnabas.client.types import TopicPartition
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client import Admin


def abort(options: argparse.Namespace) -> int:
    partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is None and options.producer_id is None:
        raise ToolError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or "
            "above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)."
        )
    with admin_of(options) as admin:
        if options.start_offset is None:
            spec = _given(options, partition)
        else:
            spec = _look_up(admin, partition, options.start_offset)
        try:
            admin.abort_transaction(spec)
        except KafkaError as error:
            raise ToolError(
                f"Failed to abort transaction of producer {spec.producer_id} in {partition}: {error.message}"
            ) from error
    return 0


def _given(options: argparse.Namespace, partition: TopicPartition) -> AbortTransactionSpec:
    for name in ("producer_epoch", "coordinator_epoch"):
        if getattr(options, name) is None:
            raise ToolError(f"Missing required argument --{name.replace('_', '-')}.")
    # A producer that has never ended a transaction has no coordinator epoch; 0 is never too high.
    epoch = max(0, options.coordinator_epoch)
    return AbortTransactionSpec(partition, options.producer_id, options.producer_epoch, epoch)


def _look_up(admin: "Admin", partition: TopicPartition, start_offset: int) -> AbortTransactionSpec:
    producers, errors = results_and_errors(lambda: admin.describe_producers([partition]))
    if errors:
        raise ToolError(
            f"Failed to validate producer state for partition {partition}: {errors[partition].message}"
        )
    for state in producers[partition]:
        if state.current_transaction_start_offset == start_offset:
            epoch = max(0, state.coordinator_epoch)
            return AbortTransactionSpec(partition, state.producer_id, state.producer_epoch, epoch)
    raise ToolError(
        f"Could not find any open transactions starting at offset {start_offset} on partition {partition}."
    )


def force_terminate(options: argparse.Namespace) -> int:
    name = options.transactional_id
    with admin_of(options) as admin:
        try:
            # Check first that the id exists: force_terminate_transaction would create it.
            admin.describe_transactions([name])
            admin.force_terminate_transaction(name)
        except KafkaError as error:
            raise ToolError(f"Failed to force terminate transactionalId `{name}`: {error}") from error
    return 0
