"""DescribeTransactions, key 65, version 0: the state of transactions, by their ids."""

from __future__ import annotations

from barnabas.broker.asking import Question, ask_all
from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


def describe_transactions(call: Call, request: DescribeTransactionsRequest) -> Later:
    return ask_all(
        [_question(call, transactional_id) for transactional_id in request.transactional_ids],
        lambda answers: DescribeTransactionsResponse(transaction_states=answers),
    )


def _question(call: Call, transactional_id: str) -> Question:
    return Question(
        lambda: call.broker.transactions.shard_of(transactional_id),
        lambda shard, asked, now_ms: shard.describe(transactional_id),
        lambda code: TransactionState(transactional_id=transactional_id, error_code=code),
    )
