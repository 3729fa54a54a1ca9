"""AddOffsetsToTxn, key 25, versions 0-4: the offsets of a group will be committed in a transaction."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import ShardReply, call_shard
from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        await call.broker.groups.ensure_topic()
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=error.code)
    response: AddOffsetsToTxnResponse = await _call_coordinator(call, request)
    return response


def _call_coordinator(call: Call, request: AddOffsetsToTxnRequest) -> ShardReply:
    partition = call.broker.groups.partition_of(request.group_id)
    return call_shard(
        lambda: call.broker.transactions.shard_of(request.transactional_id),
        lambda machine, waiter, now_ms: machine.add_offsets(request, call.version, partition, now_ms),
        lambda code: AddOffsetsToTxnResponse(error_code=code),
    )
