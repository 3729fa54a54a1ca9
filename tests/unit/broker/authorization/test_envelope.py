"""Requests in an envelope: its sender needs CLUSTER_ACTION, and the client in it the right to the request."""

from __future__ import annotations

import socket
from typing import cast

import pytest
from tests.unit.broker.conftest import BROKER_ID, MakeStage, Stage

from barnabas.broker.forwarding import OFFSET, Sender
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.errors import ErrorCode
from barnabas.security.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.principal import Principal
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

ALICE, BROKER = Principal("User", "alice"), Principal("User", "broker")
CREATE_TOPICS = 19
HOST = "10.0.0.7"


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """The sender of the envelope is a broker with a name of its own."""
    stage = make_stage(authorizer_class_name=STANDARD_AUTHORIZER)
    stage.principal = BROKER
    return stage


def allow(
    stage: Stage, who: Principal, operation: Operation, kind: ResourceType, name: str, host: str = "*"
) -> None:
    acl = Acl(kind, name, PatternType.LITERAL, str(who), host, operation, Permission.ALLOW)
    assert stage.run(stage.controller.create_acls([acl])) == [None]


def send(stage: Stage, client: Principal | None) -> EnvelopeResponse:
    """An envelope with a request to create the topic `new`."""
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=True)
    frame = b"".join(cast(list[bytes], encode_request(RequestHeader(CREATE_TOPICS, 7, 1, "client"), request)))
    sender = Sender(BROKER_ID, stage.node.broker_epoch, principal=client)
    envelope = EnvelopeRequest(
        request_data=frame[4:],
        request_principal=sender.to_bytes(),
        client_host_address=socket.inet_aton(HOST),
    )
    answer: EnvelopeResponse = stage.ask(envelope, 0)
    return answer


def code_of(answer: EnvelopeResponse) -> int:
    assert answer.error_code == ErrorCode.NONE and answer.response_data is not None
    response = decode_response(CREATE_TOPICS, 7, answer.response_data[OFFSET.size :])[1]
    (topic,) = response.topics
    return int(topic.error_code)


def test_who_sends_an_envelope_needs_cluster_action(stage: Stage) -> None:
    assert send(stage, None).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert send(stage, ALICE).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_the_requests_of_a_broker_itself_need_no_other_right(stage: Stage) -> None:
    allow(stage, BROKER, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    assert code_of(send(stage, None)) == ErrorCode.NONE


def test_the_request_of_a_client_needs_the_right_of_the_client(stage: Stage) -> None:
    allow(stage, BROKER, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    assert code_of(send(stage, ALICE)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(stage, ALICE, Operation.CREATE, ResourceType.TOPIC, "new", "10.0.0.8")
    assert code_of(send(stage, ALICE)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    # Its address counts, not that of the broker.
    allow(stage, ALICE, Operation.CREATE, ResourceType.TOPIC, "new", HOST)
    assert code_of(send(stage, ALICE)) == ErrorCode.NONE
