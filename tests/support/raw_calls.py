"""Common calls for tests with a raw connection, for one topic and mostly one partition.

Each takes the version of the API; topics are given by name or by id, as the version requires."""

import itertools
import time
import uuid
from typing import NamedTuple, Unpack, cast

from tests.support.raw_client import RawClient

from barnabas.records.builder import BatchFields, build_batch
from barnabas.wire.messages import create_topics, fetch, list_offsets, produce

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS = 0, 1, 2, 3, 19
# A minute ago: recent enough that retention does not delete the records while a test runs.
TIMESTAMP = time.time_ns() // 1_000_000 - 60_000
_TOPIC_NUMBERS = itertools.count()
# Different in each run: a broker that keeps running may still have the topics of an earlier one.
_RUN = uuid.uuid4().hex[:8]


class Topic(NamedTuple):
    name: str
    id: bytes


def new_topic(client: RawClient, partitions: int = 1, name: str | None = None, **configs: str) -> Topic:
    """A topic of its own; configs are written with underscores: retention_ms="1000"."""
    topic = create_topics.CreatableTopic(
        name=name or f"raw-{_RUN}-{next(_TOPIC_NUMBERS)}",
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    response = client.call(CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=[topic]))
    (created,) = response.topics
    if created.error_code:
        raise RuntimeError(f"topic {topic.name}: error {created.error_code}, {created.error_message}")
    return Topic(created.name, created.topic_id)


def batch_of(
    *values: bytes,
    timestamp: int = TIMESTAMP,
    key: bytes | None = b"key",
    **fields: Unpack[BatchFields],
) -> bytes:
    """A batch with these values, each a millisecond after the one before."""
    rows = [(timestamp + place, key, value, ()) for place, value in enumerate(values)]
    return bytes(build_batch(rows, **fields))


def produce_request(
    topic: Topic, records: bytes | None, *, partition: int = 0, acks: int = -1
) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(
        index=partition, records=None if records is None else memoryview(records)
    )
    named = produce.TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=[data])
    return produce.ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[named])


def produce_batch(
    client: RawClient,
    topic: Topic,
    records: bytes | None,
    *,
    version: int = 9,
    partition: int = 0,
    acks: int = -1,
) -> produce.PartitionProduceResponse:
    """Send one batch and return its partition's answer. Not for acks=0, which has none."""
    request = produce_request(topic, records, partition=partition, acks=acks)
    response = client.call(PRODUCE, version, request)
    return cast(produce.PartitionProduceResponse, response.responses[0].partition_responses[0])


def fetch_request(
    topic: Topic, offset: int = 0, *, partition: int = 0, partition_max_bytes: int = 1 << 20
) -> fetch.FetchRequest:
    """A fetch outside of sessions that does not wait; its fields are the caller's to change."""
    part = fetch.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
    )
    named = fetch.FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[part])
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[named])


def fetch_partition(
    client: RawClient, topic: Topic, offset: int = 0, *, version: int = 12, partition: int = 0
) -> fetch.PartitionData:
    """The records from `offset` on, without waiting."""
    response = client.call(FETCH, version, fetch_request(topic, offset, partition=partition))
    return cast(fetch.PartitionData, response.responses[0].partitions[0])


def list_offset(
    client: RawClient,
    topic: Topic,
    timestamp: int,
    *,
    version: int = 11,
    current_leader_epoch: int = -1,
    isolation_level: int = 0,
) -> list_offsets.ListOffsetsPartitionResponse:
    """The answer for partition 0."""
    part = list_offsets.ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=current_leader_epoch
    )
    topics = [list_offsets.ListOffsetsTopic(name=topic.name, partitions=[part])]
    request = list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
    response = client.call(LIST_OFFSETS, version, request)
    return cast(list_offsets.ListOffsetsPartitionResponse, response.topics[0].partitions[0])
