"""DescribeCluster, key 60, versions 0-2: the brokers, the controller and the cluster's id.

Behaviour: brokers without an address on the listener the client came through are left out.
Versions:  v1 which kind of endpoint is asked · v2 fenced brokers on request.
Not done:  controllers as endpoints of their own: every controller is a broker."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.authorized import NOT_ASKED, cluster_operations
from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2
NO_CONTROLLER = -1


def describe_cluster(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _wrong_endpoint(request.endpoint_type)
    brokers = list(_brokers(call, request.include_fenced_brokers))
    controller = call.broker.controller_id
    asks_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=call.broker.image.cluster_id,
        controller_id=controller if any(b.broker_id == controller for b in brokers) else NO_CONTROLLER,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(call) if asks_operations else NOT_ASKED,
    )


def _wrong_endpoint(kind: int) -> DescribeClusterResponse:
    if kind == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this listener is for brokers: send requests for controllers to a controller",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"{kind} is not a type of endpoint: 1 means brokers, 2 means controllers",
    )


def _brokers(call: Call, with_fenced: bool) -> Iterator[DescribeClusterBroker]:
    for node, broker in sorted(call.broker.image.brokers.items()):
        listener = broker.listener(call.listener.name)
        if listener is not None and (with_fenced or not broker.fenced):
            yield DescribeClusterBroker(
                broker_id=node,
                host=listener.host,
                port=listener.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
