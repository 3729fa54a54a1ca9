"""AddOffsetsToTxn, key 25, versions 0-4: the offsets of a group will be committed in a transaction."""

from __future__ import annotations

from barnabas.broker.asking import Asked, ask
from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    await call.broker.groups.ensure_topic()
    response: AddOffsetsToTxnResponse = await _asked(call, request)
    return response


def _asked(call: Call, request: AddOffsetsToTxnRequest) -> Asked:
    partition = call.broker.groups.partition_of(request.group_id)
    return ask(
        lambda: call.broker.transactions.shard_of(request.transactional_id),
        lambda shard, asked, now_ms: shard.add_offsets(request, call.version, partition, now_ms),
        lambda code: AddOffsetsToTxnResponse(error_code=code),
    )
