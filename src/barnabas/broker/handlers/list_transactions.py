"""ListTransactions, key 66, versions 0-2: the transactions this broker coordinates.

Versions:  v1 filter by duration · v2 filter by a pattern of ids."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.coordination.runtime import Shard
from barnabas.errors import ErrorCode
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.views import merged
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(call: Call, request: ListTransactionsRequest) -> Work[Any] | ListTransactionsResponse:
    coordinator = call.broker.transactions
    if coordinator.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    request.state_filters = list(dict.fromkeys(request.state_filters))
    return call_shards([_shard_call(shard, request) for shard in coordinator.shards()], at_once(merged))


def _shard_call(shard: Shard[TransactionMachine], request: ListTransactionsRequest) -> ShardCall:
    return ShardCall(
        lambda: shard,
        lambda machine, waiter, now_ms: machine.list_transactions(request, now_ms),
        lambda code: ListTransactionsResponse(error_code=code),
    )
