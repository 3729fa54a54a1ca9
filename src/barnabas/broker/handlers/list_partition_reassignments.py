"""ListPartitionReassignments, key 46, version 0: which partitions are moving between brokers.

Behaviour: partitions do not move, so the list is empty, whatever topics are named.
Not done:  reassignment; it needs several brokers."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def list_partition_reassignments(
    call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
