"""BrokerHeartbeat, key 63, versions 0-2: a broker asks the controller to be unfenced, fenced or shut down.

Behaviour: only brokers send it, with their current broker epoch. A broker is alive while it has a session in
the metadata store, so it sends a heartbeat only when it wants a change: Kafka's brokers send one every two
seconds. A broker that wants to shut down repeats the heartbeat until should_shut_down: first it loses its
leaderships and leaves the in-sync sets.
Versions:  v1 offline log directories · v2 cordoned log directories, which are ignored."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import KafkaError
from barnabas.metadata.brokers import Heartbeat
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def broker_heartbeat(call: Call, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    beat = Heartbeat(
        request.broker_id,
        request.broker_epoch,
        request.current_metadata_offset,
        request.want_fence,
        request.want_shut_down,
        tuple(request.offline_log_dirs),
    )
    try:
        answer = await call.broker.controller.heartbeat(beat)
    except KafkaError as error:
        return BrokerHeartbeatResponse(error_code=error.code)
    return BrokerHeartbeatResponse(
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )
