"""What DescribeCluster answers about brokers and the controller."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.authorized import NOT_ASKED
from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.records import BrokerRecord, Listener
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

OTHER = (Listener("PLAINTEXT", "far.example", 9093), Listener("INNER", "10.0.0.2", 9094))


@pytest.mark.parametrize("version", range(3))
def test_the_brokers_of_the_listener_that_was_used(stage: Any, version: int) -> None:
    inner_only = BrokerRecord(3, 9, random_uuid(), OTHER[1:])
    stage.write(BrokerRecord(2, 8, random_uuid(), OTHER), inner_only)
    response = stage.ask(DescribeClusterRequest(), version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.cluster_id, response.controller_id) == ("a-cluster", 1)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in response.brokers] == [
        (1, "127.0.0.1", 9092, "rack-a", False),
        (2, "far.example", 9093, None, False),
    ]


def test_fenced_brokers_only_on_request(stage: Any) -> None:
    stage.write(BrokerRecord(2, 8, random_uuid(), OTHER, fenced=True))
    response = stage.ask(DescribeClusterRequest(), 2)
    assert [broker.broker_id for broker in response.brokers] == [1]
    response = stage.ask(DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [(1, False), (2, True)]


def test_a_controller_that_clients_cannot_reach_is_not_named(stage: Any) -> None:
    me = stage.image.brokers[1]
    stage.write(BrokerRecord(1, me.epoch, me.incarnation, me.listeners, me.rack, fenced=True))
    assert stage.ask(DescribeClusterRequest(), 1).controller_id == -1


@pytest.mark.parametrize("version", range(3))
def test_authorized_operations_only_on_request(stage: Any, version: int) -> None:
    assert stage.ask(DescribeClusterRequest(), version).cluster_authorized_operations == NOT_ASKED
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert stage.ask(request, version).cluster_authorized_operations == 0b1111110100000


@pytest.mark.parametrize(
    ("kind", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_other_endpoints_than_brokers(stage: Any, kind: int, code: ErrorCode) -> None:
    response = stage.ask(DescribeClusterRequest(endpoint_type=kind), 1)
    assert response.error_code == code
    assert response.error_message
    assert response.brokers == []
