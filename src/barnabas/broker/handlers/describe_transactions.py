"""DescribeTransactions, key 65, version 0: the state of transactions, by their ids."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


def describe_transactions(call: Call, request: DescribeTransactionsRequest) -> Work[Any]:
    return call_shards(
        (
            _shard_call(call, transactional_id)
            for transactional_id in dict.fromkeys(request.transactional_ids)
        ),
        at_once(lambda answers: DescribeTransactionsResponse(transaction_states=answers)),
    )


def _shard_call(call: Call, transactional_id: str) -> ShardCall:
    return ShardCall(
        lambda: call.broker.transactions.shard_of(transactional_id),
        lambda machine, waiter, now_ms: machine.describe(transactional_id),
        lambda code: TransactionState(transactional_id=transactional_id, error_code=code),
    )
