"""Pitfalls 1, 2, 3, 20, 21, 22: headers, version ranges, what is refused and how."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.raw_client import RawClient

from barnabas.broker.apis import ROWS
from barnabas.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.wire.apis import api_of
from barnabas.wire.codec import decode_message, encode_message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.metadata import MetadataRequest

API_VERSIONS = 18
# From Kafka's schemas, by hand: the first version of each API whose header has tagged fields.
NEVER = 32767
FLEXIBLE_FROM = {
    0: 9,
    1: 12,
    2: 6,
    3: 9,
    8: 8,
    9: 6,
    10: 3,
    11: 6,
    12: 4,
    13: 4,
    14: 4,
    15: 5,
    16: 3,
    17: NEVER,
    18: 3,
    19: 5,
    20: 4,
    21: 2,
    22: 2,
    23: 4,
    24: 3,
    25: 3,
    26: 3,
    27: 1,
    28: 3,
    29: 2,
    30: 2,
    31: 2,
    32: 4,
    33: 2,
    34: 2,
    35: 2,
    36: 2,
    37: 2,
    38: 2,
    39: 2,
    40: 2,
    41: 2,
    42: 2,
    43: 2,
    44: 1,
    45: 0,
    46: 0,
    47: NEVER,
    48: 1,
    49: 1,
    50: 0,
    51: 0,
    56: 0,
    57: 0,
    58: 0,
    60: 0,
    61: 0,
    63: 0,
    64: 0,
    65: 0,
    66: 0,
    67: 0,
    68: 0,
    69: 0,
    74: 0,
    75: 0,
}
SERVED = [
    (key, version) for key, row in ROWS.items() for version in range(row.versions[0], row.versions[1] + 1)
]
SOFTWARE = {"client_software_name": "raw", "client_software_version": "1.0"}


def header(key: int, version: int, correlation_id: int = 77, client_id: str | None = "raw") -> bytes:
    name = b"" if client_id is None else client_id.encode()
    return struct.pack(">hhih", key, version, correlation_id, -1 if client_id is None else len(name)) + name


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def plain_request(key: int, version: int) -> Any:
    """A request that is answered and changes nothing."""
    api = api_of(key)
    assert api is not None
    request: Any = api.request()
    if key == 0:
        request.acks = 1
    if key == 10:
        request.key, request.coordinator_keys = "group", ["group"]
    return request


# ---- pitfall 1


@pytest.mark.parametrize("version", range(5))
def test_1_the_response_header_of_api_versions_is_always_version_0(client: RawClient, version: int) -> None:
    client.send(API_VERSIONS, version, ApiVersionsRequest(**SOFTWARE))
    frame = client.receive_frame()
    correlation_id, error = struct.unpack_from(">ih", frame)
    assert (correlation_id, error) == (1, 0)
    count = sum(not row.between_brokers for row in ROWS.values())
    if version >= 3:
        # No byte for tagged fields in between: next is the compact length of the array.
        assert frame[6] == count + 1
    else:
        assert struct.unpack_from(">i", frame, 6) == (count,)


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_1_an_unknown_version_is_answered_in_version_0_with_our_range(
    client: RawClient, version: int
) -> None:
    """KIP-511: the body of an unknown version is not read, and the client can continue."""
    client.send_bytes(framed(header(API_VERSIONS, version) + b"\xff\xfe\xfd what is this"))
    expected = struct.pack(">ihi3h", 77, ErrorCode.UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, 4)
    assert client.receive_frame() == expected
    assert client.call(API_VERSIONS, 4, ApiVersionsRequest(**SOFTWARE)).error_code == 0


FEATURE_LEVELS = {"group.version": 1, "transaction.version": 2}


@pytest.mark.parametrize("version", range(5))
def test_1_features_whose_lowest_level_is_0_are_not_listed_as_supported_below_version_4(
    client: RawClient, version: int
) -> None:
    """Java clients 3.3 to 3.7 (ApiVersions 3) refuse a lowest level of 0 and cannot connect then."""
    response = client.call(API_VERSIONS, version, ApiVersionsRequest(**SOFTWARE))
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert finalized == (FEATURE_LEVELS if version >= 3 else {})
    assert supported == ({name: (0, level) for name, level in FEATURE_LEVELS.items()} if version >= 4 else {})


# ---- pitfall 2


def test_2_the_table_below_covers_everything_that_is_served() -> None:
    assert FLEXIBLE_FROM.keys() == ROWS.keys()


@pytest.mark.parametrize(("key", "version"), SERVED, ids=lambda value: str(value))
def test_2_headers_have_tagged_fields_only_in_flexible_versions(
    client: RawClient, key: int, version: int
) -> None:
    """Flexible headers have an unknown tag; the response has no bytes after header and body."""
    is_flexible = version >= FLEXIBLE_FROM[key]
    tags = b"\x01\x2a\x03abc" if is_flexible else b""
    body = encode_message(plain_request(key, version), version, FLEXIBLE_FROM[key])
    client.send_bytes(framed(header(key, version) + tags + body))
    frame = client.receive_frame()
    assert frame[:4] == struct.pack(">i", 77)
    header_size = 5 if is_flexible and key != API_VERSIONS else 4
    assert header_size == 4 or frame[4] == 0
    api = api_of(key)
    assert api is not None
    response = decode_message(api.response, version, FLEXIBLE_FROM[key], frame[header_size:])
    assert len(encode_message(response, version, FLEXIBLE_FROM[key])) == len(frame) - header_size


@pytest.mark.parametrize("version", range(7))
def test_2_find_coordinator_says_none_as_its_message_up_to_version_3(client: RawClient, version: int) -> None:
    """Kafka writes the name of the error, NONE, into the message of a successful answer."""
    response = client.call(10, version, plain_request(10, version))
    (coordinator,) = response.coordinators
    assert coordinator.error_code == 0
    assert coordinator.error_message == ("NONE" if 1 <= version <= 3 else "")


# ---- pitfall 3


@pytest.fixture
def ranges(client: RawClient) -> dict[int, range]:
    response = client.call(API_VERSIONS, 0, ApiVersionsRequest())
    return {api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys}


@pytest.mark.parametrize(
    ("key", "versions"),
    [
        (0, (0, 3, 7)),
        (1, (4, 10)),
        (2, (1,)),
        (10, (0,)),
        (17, (0, 1)),
        (18, (0,)),
        (22, (0,)),
        (36, (0, 1)),
    ],
    ids=lambda value: ROWS[value].name if isinstance(value, int) else "",
)
def test_3_old_librdkafka_finds_the_versions_it_looks_for(
    ranges: dict[int, range], key: int, versions: tuple[int, ...]
) -> None:
    for version in versions:
        assert version in ranges[key]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_3_produce_below_3_is_offered_but_not_served(connect: Callable[[], RawClient], version: int) -> None:
    """acks, timeout, no topics: the complete request of those versions. Only this connection is closed."""
    other, client = connect(), connect()
    client.send_bytes(framed(header(0, version) + struct.pack(">hii", -1, 1000, 0)))
    assert client.is_closed_by_peer()
    assert other.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


def test_3_every_other_version_that_is_offered_is_served(ranges: dict[int, range]) -> None:
    offered = {(key, version) for key, versions in ranges.items() for version in versions}
    assert offered - set(SERVED) == {(0, 0), (0, 1), (0, 2)}


# ---- pitfall 20


@pytest.mark.parametrize("client_id", [None, "", "ä水", "x" * 32767], ids=["null", "empty", "utf-8", "long"])
def test_20_any_client_id_is_accepted(client: RawClient, client_id: str | None) -> None:
    client.client_id = client_id
    assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    assert client.call(3, 9, MetadataRequest(topics=[])).brokers


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("apache-kafka-java", True),
        ("a", True),
        ("librdkafka.2", True),
        ("", False),
        ("-raw", False),
        ("raw.", False),
        ("raw client", False),
        ("räw", False),
    ],
)
def test_20_the_name_of_the_software_is_checked(
    client: RawClient, version: int, name: str, is_valid: bool
) -> None:
    for software in ((name, "1.0"), ("raw", name)):
        request = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
        response = client.call(API_VERSIONS, version, request)
        assert response.error_code == (ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST)


def test_20_nobody_is_throttled_without_quotas(client: RawClient) -> None:
    assert client.call(3, 9, MetadataRequest(topics=[])).throttle_time_ms == 0


# ---- pitfall 21


@pytest.mark.parametrize("version", range(14))
def test_21_the_advertised_address_is_an_ipv4_literal(
    broker: Broker, client: RawClient, version: int
) -> None:
    (node,) = client.call(3, version, MetadataRequest(topics=[])).brokers
    assert (node.host, node.port) == ("127.0.0.1", broker.port)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_21_describe_cluster_has_the_same_address(broker: Broker, client: RawClient, version: int) -> None:
    response = client.call(60, version, DescribeClusterRequest())
    assert [(node.host, node.port) for node in response.brokers] == [("127.0.0.1", broker.port)]
    assert response.controller_id == response.brokers[0].broker_id


# ---- pitfall 22


@pytest.mark.parametrize("key", [4, 5, 6, 7, 55, 71, 72, 77, 999, 32767, -1])
def test_22_an_unknown_api_closes_the_connection_and_no_other(
    connect: Callable[[], RawClient], key: int
) -> None:
    assert key not in ROWS
    other, client = connect(), connect()
    client.send_bytes(framed(header(key, 0) + bytes(40)))
    assert client.is_closed_by_peer()
    assert other.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


@pytest.mark.parametrize("key", [key for key in ROWS if key != API_VERSIONS])
def test_22_an_unknown_version_closes_the_connection(connect: Callable[[], RawClient], key: int) -> None:
    for version in (ROWS[key].versions[1] + 1, -1, 32767):
        client = connect()
        client.send_bytes(framed(header(key, version) + bytes(40)))
        assert client.is_closed_by_peer()


def test_22_a_broken_body_closes_the_connection(client: RawClient) -> None:
    client.send_bytes(framed(header(3, 9) + b"\x00\xff\xff\xff\xff\x0f"))
    assert client.is_closed_by_peer()
