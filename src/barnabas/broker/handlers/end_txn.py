"""EndTxn, key 26, versions 0-5: a transaction is committed or aborted.

Behaviour: answered when the decision is committed to the journal; the markers follow. Versions:  v2 may
answer PRODUCER_FENCED · v5 raises the producer's epoch, which is in the answer (KIP-890)."""

from __future__ import annotations

import logging

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import call_shard
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.steps import NEEDS_PRODUCER_ID
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

logger = logging.getLogger(__name__)


async def end_txn(call: Call, request: EndTxnRequest) -> EndTxnResponse:
    while True:
        answer = await call_shard(
            lambda: call.broker.transactions.shard_of(request.transactional_id),
            lambda machine, waiter, now_ms: machine.end_txn(request, call.version, now_ms),
            _refused,
        )
        if answer is not NEEDS_PRODUCER_ID:
            response: EndTxnResponse = answer
            return response
        try:
            await call.broker.producer_ids.refill()
        except KafkaError as error:
            logger.warning("cannot allocate producer ids: %s", error)
            return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refused(code: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=code, producer_id=-1, producer_epoch=-1)
