"""ListTransactions, key 66, versions 0-2: the transactions this broker coordinates.

Versions:  v1 filter by duration · v2 filter by a pattern of ids."""

from __future__ import annotations

from functools import partial
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.coordination.runtime import Shard
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.views import Filters, filters_of, merged
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(call: Call, request: ListTransactionsRequest) -> Work[Any]:
    coordinator = call.broker.transactions
    if coordinator.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        filters = yield from filters_of(request)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    calls = [_shard_call(shard, filters) for shard in coordinator.shards()]
    return (yield from call_shards(calls, at_once(partial(merged, filters=filters))))


def _shard_call(shard: Shard[TransactionMachine], filters: Filters) -> ShardCall:
    return ShardCall(
        lambda: shard,
        lambda machine, waiter, now_ms: machine.list_transactions(filters, now_ms),
        lambda code: code,
    )
