"""Metadata, key 3, versions 0-13: brokers, topics and who leads their partitions.

Behaviour: topics that do not exist are created on the way where both the client and
auto.create.topics.enable allow it, and are in the answer already.
Versions:  v0 an empty list means all topics, later null does · v4 the client may forbid creation ·
v8 authorized operations · v10 topic ids in the answer · v12 topics asked by id.
Not done:  partitions on offline directories are told as led by this broker until it is restarted."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from barnabas.broker.authorized import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from barnabas.broker.call import Call
from barnabas.broker.leaders import endpoints_of
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import INTERNAL_TOPICS, ZERO_UUID, topic_name_problem
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage, TopicImage
from barnabas.metadata.topics import NewTopic
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

AUTO_CREATE_VERSION_MIN = 4
CLUSTER_OPERATIONS_VERSIONS = (8, 10)


def metadata(
    call: Call, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    missing = _to_create(call, request)
    return _create_and_answer(call, request, missing) if missing else _answer(call, request, {})


async def _create_and_answer(call: Call, request: MetadataRequest, missing: list[str]) -> MetadataResponse:
    results = await call.broker.controller.create_topics([NewTopic(name) for name in missing])
    refusals = {
        name: result
        for name, result in results.items()
        if isinstance(result, KafkaError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS
    }
    return _answer(call, request, refusals)


def _to_create(call: Call, request: MetadataRequest) -> list[str]:
    """Names of absent topics that this request may bring into being."""
    allowed = call.version < AUTO_CREATE_VERSION_MIN or request.allow_auto_topic_creation
    if not allowed or not request.topics or not call.broker.config["auto.create.topics.enable"]:
        return []
    topics = call.broker.image.topics
    return [
        topic.name
        for topic in request.topics
        if topic.topic_id == ZERO_UUID
        and topic.name is not None
        and topic.name not in topics
        and topic_name_problem(topic.name) is None
    ]


def _answer(call: Call, request: MetadataRequest, refusals: dict[str, KafkaError]) -> MetadataResponse:
    image = call.broker.image
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    if wants_all:
        topics = [_described(call, topic, request) for topic in image.topics.values()]
    else:
        topics = [_topic(call, asked, request, refusals) for asked in request.topics or ()]
    low, high = CLUSTER_OPERATIONS_VERSIONS
    asks_operations = low <= call.version <= high and request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in endpoints_of(call, image.brokers)
        ],
        cluster_id=image.cluster_id,
        controller_id=call.broker.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asks_operations else NOT_ASKED,
    )


def _topic(
    call: Call, asked: MetadataRequestTopic, request: MetadataRequest, refusals: dict[str, KafkaError]
) -> MetadataResponseTopic:
    image = call.broker.image
    if asked.topic_id != ZERO_UUID:
        found = image.topic_by_id(asked.topic_id)
        if found is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        return _described(call, found, request)
    name = asked.name or ""
    found = image.topic(name)
    if found is not None:
        return _described(call, found, request)
    if name in refusals:
        code = refusals[name].code
    elif topic_name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _described(call: Call, topic: TopicImage, request: MetadataRequest) -> MetadataResponseTopic:
    asks_operations = request.include_topic_authorized_operations
    image = call.broker.image
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, part) for index, part in enumerate(topic.partitions)],
        topic_authorized_operations=TOPIC_OPERATIONS if asks_operations else NOT_ASKED,
    )


def _partition(image: MetadataImage, index: int, part: PartitionImage) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if part.has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=part.leader,
        leader_epoch=part.leader_epoch,
        replica_nodes=list(part.replicas),
        isr_nodes=list(part.isr),
        offline_replicas=[node for node in part.replicas if not image.alive(node)],
    )
