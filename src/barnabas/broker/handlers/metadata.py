"""Metadata, key 3, versions 0-13: brokers, topics and who leads their partitions.

Behaviour: topics that do not exist are created on the way where both the client and
auto.create.topics.enable allow it, and are in the answer already. Brokers that are fenced, or have no address
on the listener that the client uses, are left out: a partition whose leader is one of them has none, and
replicas on them are offline.
Versions:  v0 an empty list means all topics, later null does; replicas that cannot be reached are left out,
with REPLICA_NOT_AVAILABLE · v4 the client may forbid creation · v6 LISTENER_NOT_FOUND instead of
LEADER_NOT_AVAILABLE where the leader has no address on the listener · v8 authorized operations · v10 topic
ids in the answer · v12 topics asked by id."""

from __future__ import annotations

from barnabas.broker.authorized import NOT_ASKED, cluster_operations, topic_operations
from barnabas.broker.call import Call
from barnabas.broker.leaders import endpoints_of, offline_replicas, reachable_brokers
from barnabas.broker.portions import drained
from barnabas.broker.topic_creation import create_missing_topics
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import INTERNAL_TOPICS, ZERO_UUID, topic_name_problem
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage, TopicImage
from barnabas.metadata.records import NO_LEADER
from barnabas.metadata.topics import PARTITIONS_PER_REQUEST_MAX, NewTopic, too_many_partitions
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

AUTO_CREATE_VERSION_MIN = 4
LISTENER_NOT_FOUND_VERSION_MIN = 6
CLUSTER_OPERATIONS_VERSIONS = (8, 10)
# This many partitions take a fraction of a millisecond.
PARTITIONS_PER_PAUSE = 100


def metadata(call: Call, request: MetadataRequest) -> Work[MetadataResponse]:
    yield from _once_each(request)
    missing = yield from _to_create(call, request)
    refusals: dict[str, KafkaError] = {}
    if missing:
        refusals = yield _create(call, missing)
        missing.clear()
    return (yield from _answer(call, request, refusals))


def _once_each(request: MetadataRequest) -> Work[None]:
    """A topic that is repeated is answered once, as in Kafka. The name of one that is asked by its id does
    not count."""
    if not request.topics or len(request.topics) == 1:
        return
    unique: dict[str | bytes | None, MetadataRequestTopic] = {}
    for topic in request.topics:
        unique[topic.name if topic.topic_id == ZERO_UUID else topic.topic_id] = topic
        yield
    request.topics = list(unique.values())


async def _create(call: Call, names: list[str]) -> dict[str, KafkaError]:
    """Create topics; those that could not be created, with the reason."""
    if len(names) > PARTITIONS_PER_REQUEST_MAX:
        return dict.fromkeys(names, too_many_partitions(len(names)))
    refusals = await create_missing_topics(call.broker, [NewTopic(name) for name in names])
    # When there is no controller, clients try again after LEADER_NOT_AVAILABLE.
    return {
        name: KafkaError(ErrorCode.LEADER_NOT_AVAILABLE) if isinstance(error, TimeoutError) else error
        for name, error in refusals.items()
    }


def _to_create(call: Call, request: MetadataRequest) -> Work[list[str]]:
    """Names of absent topics that this request may create."""
    allowed = call.version < AUTO_CREATE_VERSION_MIN or request.allow_auto_topic_creation
    if not allowed or not request.topics or not call.broker.config["auto.create.topics.enable"]:
        return []
    topics = call.broker.image.topics
    names = []
    for topic in request.topics:
        name = topic.name
        is_absent = topic.topic_id == ZERO_UUID and name is not None and name not in topics
        if is_absent and name is not None and topic_name_problem(name) is None:
            names.append(name)
        yield
    return names


def _answer(call: Call, request: MetadataRequest, refusals: dict[str, KafkaError]) -> Work[MetadataResponse]:
    image = call.broker.image
    asks_for_all = request.topics is None or (call.version == 0 and not request.topics)
    low, high = CLUSTER_OPERATIONS_VERSIONS
    asks_operations = low <= call.version <= high and request.include_cluster_authorized_operations
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in endpoints_of(call, image.brokers)
        ],
        cluster_id=image.cluster_id,
        controller_id=call.broker.controller_id,
        cluster_authorized_operations=cluster_operations(call) if asks_operations else NOT_ASKED,
    )
    if asks_for_all:
        for topic in image.topics.values():
            response.topics.append((yield from _described(call, topic, request)))
            yield
    else:
        for asked in drained(request.topics or []):
            response.topics.append((yield from _topic(call, asked, request, refusals)))
            yield
    return response


def _topic(
    call: Call, asked: MetadataRequestTopic, request: MetadataRequest, refusals: dict[str, KafkaError]
) -> Work[MetadataResponseTopic]:
    image = call.broker.image
    if asked.topic_id != ZERO_UUID:
        by_id = image.topic_by_id(asked.topic_id)
        if by_id is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        return (yield from _described(call, by_id, request))
    name = asked.name or ""
    by_name = image.topic(name)
    if by_name is not None:
        return (yield from _described(call, by_name, request))
    if name in refusals:
        code = refusals[name].code
    elif topic_name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _described(call: Call, topic: TopicImage, request: MetadataRequest) -> Work[MetadataResponseTopic]:
    asks_operations = request.include_topic_authorized_operations
    image = call.broker.image
    reachable = reachable_brokers(call)
    answer = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        topic_authorized_operations=topic_operations(call, topic.name) if asks_operations else NOT_ASKED,
    )
    for index, part in enumerate(topic.partitions):
        answer.partitions.append(_partition(call, image, index, part, reachable))
        if index % PARTITIONS_PER_PAUSE == 0:
            yield
    return answer


def _partition(
    call: Call, image: MetadataImage, index: int, part: PartitionImage, reachable: frozenset[int]
) -> MetadataResponsePartition:
    has_leader = part.leader in reachable
    answer = MetadataResponsePartition(
        error_code=ErrorCode.NONE if has_leader else _why_no_leader(call, image, part),
        partition_index=index,
        leader_id=part.leader if has_leader else NO_LEADER,
        leader_epoch=part.leader_epoch,
        replica_nodes=list(part.replicas),
        isr_nodes=list(part.isr),
        offline_replicas=offline_replicas(image, part, reachable),
    )
    if call.version == 0:
        _leave_out_unreachable(answer, reachable)
    return answer


def _why_no_leader(call: Call, image: MetadataImage, part: PartitionImage) -> ErrorCode:
    leader = image.brokers.get(part.leader)
    lacks_listener = leader is not None and leader.listener(call.listener.name) is None
    if lacks_listener and call.version >= LISTENER_NOT_FOUND_VERSION_MIN:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


def _leave_out_unreachable(answer: MetadataResponsePartition, reachable: frozenset[int]) -> None:
    """Clients of version 0 expect every replica to be among the brokers of the answer."""
    replicas = [node for node in answer.replica_nodes if node in reachable]
    in_sync = [node for node in answer.isr_nodes if node in reachable]
    is_short = len(replicas) < len(answer.replica_nodes) or len(in_sync) < len(answer.isr_nodes)
    if is_short and answer.error_code == ErrorCode.NONE:
        answer.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    answer.replica_nodes, answer.isr_nodes = replicas, in_sync
