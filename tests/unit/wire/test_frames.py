"""Headers, unknown APIs and the data schemas; tests/wire/test_contract.py tests the bodies."""

from typing import Any

import pytest

from barnabas.wire.codec import (
    RequestHeader,
    UnsupportedApi,
    WireError,
    decode_message,
    decode_request,
    decode_request_header,
    decode_response,
    encode_message,
    encode_request,
    encode_response,
)
from barnabas.wire.messages import consumer_protocol_subscription
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def joined(chunks: list[Any]) -> bytes:
    return b"".join(chunks)


@pytest.mark.parametrize("client_id", ["me", "", None, "wéb"])
@pytest.mark.parametrize("version", range(5))
def test_request_headers_are_read_as_they_were_written(version: int, client_id: str | None) -> None:
    header = RequestHeader(12, version, -5, client_id)
    frame = joined(encode_request(header, HeartbeatRequest(group_id="g", member_id="m", generation_id=4)))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    request = decode_request(memoryview(frame)[4:])
    assert request.header == header
    assert request.message == HeartbeatRequest(group_id="g", member_id="m", generation_id=4)


def test_tags_in_a_request_header_are_skipped() -> None:
    frame = bytes.fromhex("0012 0003 00000001 ffff 01 07 02 aabb  02 61  02 62 00")
    assert decode_request(frame).message == ApiVersionsRequest(
        client_software_name="a", client_software_version="b"
    )


def test_tags_in_a_response_header_are_skipped() -> None:
    frame = bytes.fromhex("00000009 01 07 02 aabb  00000000 001b 00")
    assert decode_response(12, 4, frame) == (9, HeartbeatResponse(error_code=27))


def test_the_header_of_an_unknown_version_is_still_read() -> None:
    """KIP-511: a broker answers a newer ApiVersions request with an error its sender understands."""
    frame = bytes.fromhex("0012 0063 00000007 0002 6d65 00 01")
    with pytest.raises(UnsupportedApi) as caught:
        decode_request(frame)
    assert caught.value.header == RequestHeader(18, 99, 7, "me")
    answer = joined(encode_response(18, 0, caught.value.correlation_id, ApiVersionsResponse(error_code=35)))
    assert answer == bytes.fromhex("0000000a 00000007 0023 00000000")


@pytest.mark.parametrize(("key", "version"), [(999, 0), (-1, 0), (0, 2), (0, 99), (12, -1)])
def test_unknown_apis_and_versions(key: int, version: int) -> None:
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(6)
    with pytest.raises(UnsupportedApi) as caught:
        decode_request(frame)
    assert (caught.value.api_key, caught.value.api_version) == (key, version)
    with pytest.raises(UnsupportedApi):
        encode_response(key, version, 0, HeartbeatResponse())


@pytest.mark.parametrize("size", range(10))
def test_a_header_cut_short_is_refused(size: int) -> None:
    with pytest.raises(WireError):
        decode_request_header(bytes.fromhex("0012 0000 00000001 0002 6d65")[:size])


def test_a_client_id_of_negative_length_is_refused() -> None:
    with pytest.raises(WireError):
        decode_request_header(bytes.fromhex("0012 0000 00000001 fffe"))


def test_a_value_that_does_not_fit_is_a_wire_error() -> None:
    with pytest.raises(WireError, match=r"HeartbeatResponse: error_code"):
        encode_response(12, 4, 1, HeartbeatResponse(error_code=70_000))


def test_data_schemas() -> None:
    subscription = consumer_protocol_subscription.ConsumerProtocolSubscription(
        topics=["a", "b"], user_data=None
    )
    for version in range(4):
        data = encode_message(subscription, version, consumer_protocol_subscription.FLEXIBLE_FROM)
        kind = consumer_protocol_subscription.ConsumerProtocolSubscription
        assert (
            decode_message(kind, version, consumer_protocol_subscription.FLEXIBLE_FROM, data) == subscription
        )
