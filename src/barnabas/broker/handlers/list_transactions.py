"""ListTransactions, key 66, versions 0-2: the transactions this broker coordinates.

Versions:  v1 filter by duration · v2 filter by a pattern of ids."""

from __future__ import annotations

from barnabas.broker.asking import Question, ask_all
from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.coordination.runtime import Shard
from barnabas.errors import ErrorCode
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.views import merged
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(call: Call, request: ListTransactionsRequest) -> Later | ListTransactionsResponse:
    coordinator = call.broker.transactions
    if coordinator.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return ask_all([_question(shard, request) for shard in coordinator.shards()], merged)


def _question(shard: Shard[TransactionShard], request: ListTransactionsRequest) -> Question:
    return Question(
        lambda: shard,
        lambda machine, asked, now_ms: machine.list_transactions(request, now_ms),
        lambda code: ListTransactionsResponse(error_code=code),
    )
