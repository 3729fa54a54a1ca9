"""Pitfalls 9, 10, 11, 18, 19, 24: groups and transactions, of which nothing may be promised yet.

A client that sees half of a feature uses it and fails in ways nobody understands. So today: not offered,
refused with errors that clients take for "come back later", and nothing transactional in the log."""

from collections.abc import Callable

import pytest

from barnabas.errors import ErrorCode
from barnabas.testing.raw_calls import (
    FETCH,
    PRODUCE,
    batch_of,
    fetch_request,
    list_offset,
    new_topic,
    produce_batch,
    produce_request,
)
from barnabas.testing.raw_client import RawClient
from barnabas.wire.apis import api_of
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

API_VERSIONS, FIND_COORDINATOR, INIT_PRODUCER_ID = 18, 10, 22
LATEST = -1
GROUP, TRANSACTION, SHARE = range(3)
# Pitfall: keys of the APIs that come with it.
NOT_OFFERED = {
    9: (11, 12, 13, 14),  # JoinGroup, Heartbeat, LeaveGroup, SyncGroup
    11: (8, 9, 47),  # OffsetCommit, OffsetFetch, OffsetDelete
    18: (24, 25, 26, 27, 28, 65, 66),  # AddPartitionsToTxn ... TxnOffsetCommit, Describe and ListTransactions
    19: (15, 16, 42),  # DescribeGroups, ListGroups, DeleteGroups
    24: (68, 69, 71, 72, 76, 77, 78, 79, 88, 89),  # KIP-848 groups, telemetry, share and streams groups
}


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("pitfall", NOT_OFFERED)
def test_9_11_18_19_24_their_apis_are_not_offered(client: RawClient, pitfall: int, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    offered = {api.api_key for api in client.call(API_VERSIONS, version, request).api_keys}
    assert not offered.intersection(NOT_OFFERED[pitfall])


@pytest.mark.parametrize("key", [key for keys in NOT_OFFERED.values() for key in keys])
def test_9_11_18_19_24_their_apis_close_the_connection(connect: Callable[[], RawClient], key: int) -> None:
    api = api_of(key)
    assert api is not None
    client = connect()
    client.send_bytes(b"\0\0\0\x40" + key.to_bytes(2, "big") + api.first.to_bytes(2, "big") + bytes(60))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("version", [3, 4])
def test_18_24_no_feature_of_theirs_is_finalized_or_supported(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    response = client.call(API_VERSIONS, version, request)
    named = {feature.name for feature in (*response.supported_features, *response.finalized_features)}
    assert not named & {"group.version", "transaction.version", "share.version", "streams.version"}


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_10_19_no_coordinator_is_available_yet(client: RawClient, version: int, kind: int) -> None:
    """At once, without any initial delay: a client retries this one and no other."""
    keys = ["first", "second"] if version >= 4 else ["first"]
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
    answers = client.call(FIND_COORDINATOR, version, request).coordinators
    assert [answer.error_code for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(keys)
    assert all((answer.node_id, answer.host, answer.port) == (-1, "", -1) for answer in answers)
    if version >= 4:
        assert [answer.key for answer in answers] == keys


@pytest.mark.parametrize("version", range(6))
def test_18_a_transactional_id_finds_no_coordinator(client: RawClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=60_000)
    answer = client.call(INIT_PRODUCER_ID, version, request)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("version", range(6))
def test_18_idempotence_without_a_transaction_is_served(client: RawClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    first, second = (client.call(INIT_PRODUCER_ID, version, request) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id >= 0


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("compression", [0, 1])
def test_18_a_transactional_batch_is_refused_and_not_written(
    client: RawClient, version: int, compression: int
) -> None:
    topic = new_topic(client)
    batch = batch_of(
        b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True, compression=compression
    )
    request = produce_request(topic, batch)
    request.transactional_id = "payments"
    answer = client.call(PRODUCE, version, request).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TXN_STATE, -1)
    assert list_offset(client, topic, LATEST).offset == 0


def test_18_read_committed_reads_all_and_names_no_aborted_transaction(client: RawClient) -> None:
    topic = new_topic(client)
    produce_batch(client, topic, batch_of(b"a", b"b"))
    request = fetch_request(topic)
    request.isolation_level = 1
    partition = client.call(FETCH, 12, request).responses[0].partitions[0]
    assert (partition.last_stable_offset, partition.aborted_transactions) == (2, [])
    assert len(partition.records) > 0
