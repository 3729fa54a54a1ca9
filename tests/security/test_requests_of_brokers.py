"""Requests that only brokers send: on the listener of clients the connection is closed."""

from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.visible_broker import visible_broker

from barnabas.wire.message import Message
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.envelope import EnvelopeRequest

SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


def test_requests_of_brokers_are_served_on_their_listener_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    requests: list[tuple[int, int, Message]] = [
        (56, 3, AlterPartitionRequest()),
        (58, 0, EnvelopeRequest()),
        (63, 1, BrokerHeartbeatRequest()),
        (67, 0, AllocateProducerIdsRequest()),
    ]
    with visible_broker(tmp_path, SETTINGS) as visible:
        ports = {listener.name: listener.port for listener in visible.broker.endpoints}
        for key, version, request in requests:
            with RawClient("127.0.0.1", ports["BROKERS"]) as broker:
                assert broker.call(key, version, request).error_code != 0
            with RawClient("127.0.0.1", ports["CLIENTS"]) as client:
                client.send(key, version, request)
                assert client.is_closed_by_peer()
    assert "is served only on the listener BROKERS" in caplog.text
