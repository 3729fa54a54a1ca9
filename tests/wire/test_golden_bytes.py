"""Some frames written by hand, field by field, independent of any other library."""

from typing import Any

import pytest

from barnabas.wire.codec import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TOPIC_ID = bytes(range(1, 17))
ID_HEX = "0102030405060708090a0b0c0d0e0f10"
CLIENT = "0002 6d65"  # "me"; also in flexible headers with a plain length
NO_TAGS = "00"


def produce_request(**topic: Any) -> ProduceRequest:
    partition = PartitionProduceData(index=2, records=memoryview(b"abc"))
    data = TopicProduceData(partition_data=[partition], **topic)
    return ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[data])


def fetch_request(partition: FetchPartition, **topic: Any) -> FetchRequest:
    topics = [FetchTopic(partitions=[partition], **topic)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=topics)


def fetch_partition(**fields: Any) -> FetchPartition:
    return FetchPartition(partition=2, fetch_offset=9, partition_max_bytes=1 << 16, **fields)


REQUESTS = {
    "api_versions v0": (18, 0, ApiVersionsRequest(), "0012 0000 00000001" + CLIENT),
    "api_versions v3": (
        18,
        3,
        ApiVersionsRequest(client_software_name="abc", client_software_version="1.0"),
        "0012 0003 00000001" + CLIENT + NO_TAGS + "04 616263  04 312e30" + NO_TAGS,
    ),
    "api_versions v4": (
        18,
        4,
        ApiVersionsRequest(client_software_name="abc", client_software_version="1.0"),
        "0012 0004 00000001" + CLIENT + NO_TAGS + "04 616263  04 312e30" + NO_TAGS,
    ),
    "metadata v1, all topics": (
        3,
        1,
        MetadataRequest(topics=None),
        "0003 0001 00000001" + CLIENT + "ffffffff",
    ),
    "metadata v12": (
        3,
        12,
        MetadataRequest(topics=[MetadataRequestTopic(name="a")], allow_auto_topic_creation=True),
        "0003 000c 00000001" + CLIENT + NO_TAGS + "02" + "00" * 16 + "02 61" + NO_TAGS + "01 00" + NO_TAGS,
    ),
    "produce v3": (
        0,
        3,
        produce_request(name="a"),
        "0000 0003 00000001" + CLIENT + "ffff ffff 000005dc"
        "00000001  0001 61  00000001  00000002 00000003 616263",
    ),
    "produce v9": (
        0,
        9,
        produce_request(name="a"),
        "0000 0009 00000001" + CLIENT + NO_TAGS + "00 ffff 000005dc"
        "02  02 61  02  00000002 04 616263" + NO_TAGS * 3,
    ),
    "produce v13": (
        0,
        13,
        produce_request(topic_id=TOPIC_ID),
        "0000 000d 00000001" + CLIENT + NO_TAGS + "00 ffff 000005dc"
        "02" + ID_HEX + "02  00000002 04 616263" + NO_TAGS * 3,
    ),
    "fetch v4": (
        1,
        4,
        fetch_request(fetch_partition(), topic="a"),
        "0001 0004 00000001" + CLIENT + "ffffffff 000001f4 00000001 00100000 00"
        "00000001  0001 61  00000001  00000002 0000000000000009 00010000",
    ),
    "fetch v12": (
        1,
        12,
        fetch_request(fetch_partition(current_leader_epoch=4), topic="a"),
        "0001 000c 00000001" + CLIENT + NO_TAGS + "ffffffff 000001f4 00000001 00100000 00 00000000 ffffffff"
        "02  02 61  02  00000002 00000004 0000000000000009 ffffffff ffffffffffffffff 00010000"
        + NO_TAGS * 2
        + "01  01"
        + NO_TAGS,
    ),
    "fetch v18, high watermark": (
        1,
        18,
        fetch_request(fetch_partition(current_leader_epoch=4, high_watermark=7), topic_id=TOPIC_ID),
        "0001 0012 00000001" + CLIENT + NO_TAGS + "000001f4 00000001 00100000 00 00000000 ffffffff"
        "02" + ID_HEX + "02  00000002 00000004 0000000000000009 ffffffff ffffffffffffffff 00010000"
        "01 01 08 0000000000000007" + NO_TAGS + "01  01" + NO_TAGS,
    ),
}

ONE_API = ApiVersion(api_key=18, min_version=0, max_version=4)
ONE_BROKER = MetadataResponseBroker(node_id=1, host="h", port=9092)
PARTITION = MetadataResponsePartition(partition_index=2, leader_id=1, replica_nodes=[1], isr_nodes=[1])
PRODUCED = PartitionProduceResponse(index=2, base_offset=9, log_append_time_ms=-1, log_start_offset=3)
FETCHED = PartitionData(
    partition_index=2, high_watermark=9, last_stable_offset=9, log_start_offset=3, records=b"abc"
)
RESPONSES = {
    "api_versions v0": (
        18,
        0,
        ApiVersionsResponse(api_keys=[ONE_API]),
        "00000001 0000 00000001 0012 0000 0004",
    ),
    "api_versions v3, old header and finalized epoch": (
        18,
        3,
        ApiVersionsResponse(api_keys=[ONE_API], finalized_features_epoch=5),
        "00000001 0000 02 0012 0000 0004" + NO_TAGS + "00000000  01 01 08 0000000000000005",
    ),
    "metadata v1": (
        3,
        1,
        MetadataResponse(
            brokers=[ONE_BROKER],
            controller_id=1,
            topics=[MetadataResponseTopic(name="a", partitions=[PARTITION])],
        ),
        "00000001  00000001 00000001 0001 68 00002384 ffff  00000001  00000001 0000 0001 61 00"
        "00000001 0000 00000002 00000001  00000001 00000001  00000001 00000001",
    ),
    "metadata v12": (
        3,
        12,
        MetadataResponse(
            brokers=[ONE_BROKER],
            controller_id=1,
            topics=[MetadataResponseTopic(name="a", topic_id=TOPIC_ID, partitions=[PARTITION])],
        ),
        "00000001" + NO_TAGS + "00000000  02 00000001 02 68 00002384 00" + NO_TAGS + "00  00000001"
        "02 0000 02 61" + ID_HEX + "00"
        "02 0000 00000002 00000001 ffffffff  02 00000001  02 00000001  01"
        + NO_TAGS
        + "80000000"
        + NO_TAGS * 2,
    ),
    "produce v3": (
        0,
        3,
        ProduceResponse(responses=[TopicProduceResponse(name="a", partition_responses=[PRODUCED])]),
        "00000001  00000001 0001 61  00000001  00000002 0000 0000000000000009 ffffffffffffffff  00000000",
    ),
    "produce v9": (
        0,
        9,
        ProduceResponse(responses=[TopicProduceResponse(name="a", partition_responses=[PRODUCED])]),
        "00000001"
        + NO_TAGS
        + "02 02 61  02  00000002 0000 0000000000000009 ffffffffffffffff 0000000000000003"
        "01 00" + NO_TAGS * 2 + "00000000" + NO_TAGS,
    ),
    "fetch v12": (
        1,
        12,
        FetchResponse(responses=[FetchableTopicResponse(topic="a", partitions=[FETCHED])]),
        "00000001" + NO_TAGS + "00000000 0000 00000000  02 02 61  02  00000002 0000"
        "0000000000000009 0000000000000009 0000000000000003 01 ffffffff 04 616263" + NO_TAGS * 3,
    ),
}


def with_size(text: str) -> bytes:
    body = bytes.fromhex(text)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("name", REQUESTS)
def test_requests(name: str) -> None:
    key, version, message, text = REQUESTS[name]
    header = RequestHeader(key, version, 1, "me")
    frame = with_size(text)
    assert b"".join(map(bytes, encode_request(header, message))) == frame  # type: ignore[arg-type]
    assert decode_request(frame[4:]) == (header, message)


@pytest.mark.parametrize("name", RESPONSES)
def test_responses(name: str) -> None:
    key, version, message, text = RESPONSES[name]
    frame = with_size(text)
    assert b"".join(map(bytes, encode_response(key, version, 1, message))) == frame  # type: ignore[arg-type]
    assert decode_response(key, version, frame[4:]) == (1, seen_in(version, message))


def seen_in(version: int, message: Message) -> Message:
    """A copy without the fields that the version does not have."""
    kept = {}
    for field in message.FIELDS:
        if field.first <= version <= field.last:
            value = getattr(message, field.name)
            is_structs = isinstance(value, list) and value and isinstance(value[0], Message)
            kept[field.name] = [seen_in(version, item) for item in value] if is_structs else value
    return type(message)(**kept)
