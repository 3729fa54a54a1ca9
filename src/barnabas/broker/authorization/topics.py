"""Rules for topics that are functions of their own: Metadata, CreateTopics, DeleteTopics,
DescribeTopicPartitions, and the configs of resources.

A topic that the peer may not describe is refused with the same error whether it exists or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from barnabas.broker.authorization.authorizer import REFUSALS
from barnabas.broker.authorization.rules import (
    PASSED,
    Elements,
    Finish,
    Outcome,
    Right,
    Rights,
    adding,
    refused,
    split,
)
from barnabas.broker.resources import GROUP, TOPIC
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.ids import INTERNAL_TOPICS, ZERO_UUID
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DESCRIBE = Right(Operation.DESCRIBE, ResourceType.TOPIC)
DELETE = Right(Operation.DELETE, ResourceType.TOPIC)
CREATE = Right(Operation.CREATE, ResourceType.TOPIC)
DESCRIBE_CONFIGS = Right(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
CREATE_ANY = Right(Operation.CREATE, ResourceType.CLUSTER)
DELETE_ANY = Right(Operation.DELETE, ResourceType.CLUSTER)

AUTO_CREATE_VERSION_MIN = 4
_CONFIG_RESOURCES = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}
# Brokers, their loggers, and client metrics subscriptions.
_CLUSTER_RESOURCES = (4, 8, 16)


def name_by_id(rights: Rights, element: Any) -> str | None:
    """The topic that an element names by its id, or by its name in versions without ids."""
    if element.topic_id == ZERO_UUID:
        name: str = element.name
        return name
    return rights.call.broker.image.topic_names.get(element.topic_id)


# ---- Metadata


def metadata(rights: Rights, request: MetadataRequest) -> Work[Outcome]:
    if request.topics is None or (rights.call.version == 0 and not request.topics):
        return Outcome(finish=(_visible_only(rights),))
    names = [name_by_id(rights, topic) for topic in request.topics]
    describable = yield from rights.allowed(DESCRIBE, names)
    creatable = yield from _creatable(rights, request, names, describable)
    kept: list[MetadataRequestTopic] = []
    # A topic that is repeated is answered once.
    hidden: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    for topic, name in zip(request.topics, names, strict=True):
        if name not in describable:
            hidden[topic.name, topic.topic_id] = _hidden(topic)
        elif creatable is not None and name not in creatable:
            hidden[topic.name, topic.topic_id] = MetadataResponseTopic(
                error_code=DENIED, name=name, is_internal=name in INTERNAL_TOPICS
            )
        else:
            kept.append(topic)
        yield
    answers = list(hidden.values())
    if not answers:
        return PASSED
    finish: list[Finish] = []
    if not kept and rights.call.version == 0:
        # There an empty list means all topics.
        finish.append(_nothing)
    request.topics = kept
    return Outcome(finish=(*finish, adding("topics", answers)))


def _hidden(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    """The id of a topic is no secret, its name may be one."""
    if topic.topic_id != ZERO_UUID:
        return MetadataResponseTopic(error_code=DENIED, name=None, topic_id=topic.topic_id)
    return MetadataResponseTopic(error_code=DENIED, name=topic.name)


def _creatable(
    rights: Rights, request: MetadataRequest, names: list[str | None], describable: set[str | None]
) -> Work[set[str | None] | None]:
    """The topics that exist or that the peer may create; None if all."""
    may_create = rights.call.version < AUTO_CREATE_VERSION_MIN or request.allow_auto_topic_creation
    if not may_create or not rights.call.broker.config["auto.create.topics.enable"]:
        return None
    topics = rights.call.broker.image.topics
    absent = {name for name in names if name is not None and name in describable and name not in topics}
    if not absent or rights.may(*CREATE_ANY, logs_denied=False):
        return None
    creatable = yield from rights.allowed(CREATE, absent)
    return (describable - absent) | creatable


def _visible_only(rights: Rights) -> Finish:
    def finish(response: Any) -> Work[None]:
        names = [topic.name for topic in response.topics]
        visible = yield from rights.allowed(DESCRIBE, names, logs_denied=False)
        response.topics = [topic for topic in response.topics if topic.name in visible]

    return finish


def _nothing(response: Any) -> Work[None]:
    yield from ()
    response.topics = []


# ---- DescribeTopicPartitions


def describe_topic_partitions(rights: Rights, request: DescribeTopicPartitionsRequest) -> Work[Outcome]:
    """If the request names no topics, the handler leaves out those that the peer may not describe: a page has
    to be full."""
    if not request.topics:
        return PASSED
    cursor = request.cursor
    names: list[str | None] = [topic.name for topic in request.topics]
    if cursor is not None and (cursor.partition_index < 0 or cursor.topic_name not in names):
        # The handler refuses it, and asks nothing about topics.
        return PASSED
    first = "" if cursor is None else cursor.topic_name
    named = [topic for topic in request.topics if topic.name >= first]
    describable = yield from rights.allowed(DESCRIBE, [topic.name for topic in named])
    answers = [
        DescribeTopicPartitionsResponseTopic(error_code=DENIED, name=name)
        for name in dict.fromkeys(topic.name for topic in named)
        if name not in describable
    ]
    if not answers:
        return PASSED
    request.topics = [topic for topic in named if topic.name in describable]
    if cursor is not None and cursor.topic_name not in describable:
        request.cursor = None
    if not request.topics:
        return refused(DescribeTopicPartitionsResponse(topics=answers))
    return Outcome(finish=(adding("topics", answers),))


# ---- CreateTopics


def create_topics(rights: Rights, request: CreateTopicsRequest) -> Work[Outcome]:
    counts = Counter(topic.name for topic in request.topics)
    # A name that is repeated is refused by the handler, for everybody.
    names: list[str | None] = [topic.name for topic in request.topics if counts[topic.name] == 1]
    finish: tuple[Finish, ...] = (_without_configs(rights),)
    if rights.may(*CREATE_ANY, logs_denied=False):
        return Outcome(finish=finish)
    creatable = yield from rights.allowed(CREATE, names)
    is_allowed = [counts[topic.name] > 1 or topic.name in creatable for topic in request.topics]
    outcome = yield from split(request, CREATED, is_allowed, lambda _: DENIED)
    return outcome if outcome.is_refused else Outcome(finish=finish + outcome.finish)


CREATED = Elements(
    "topics",
    "name",
    CreateTopicsResponse,
    "topics",
    lambda topic, code: CreatableTopicResult(
        name=topic.name, error_code=code, error_message="Authorization failed."
    ),
)


def _without_configs(rights: Rights) -> Finish:
    """The answer describes a new topic only to those who may describe its configs."""

    def finish(response: Any) -> Work[None]:
        created = [topic for topic in response.topics if not topic.error_code]
        names = [topic.name for topic in created]
        describable = yield from rights.allowed(DESCRIBE_CONFIGS, names, logs_denied=False)
        for topic in created:
            if topic.name not in describable:
                topic.topic_config_error_code = DENIED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
            yield

    return finish


# ---- DeleteTopics


def delete_topics(rights: Rights, request: DeleteTopicsRequest) -> Work[Outcome]:
    broker = rights.call.broker
    if not broker.config["delete.topic.enable"] or rights.may(*DELETE_ANY, logs_denied=False):
        return PASSED
    names = [_deleted_name(rights, topic) for topic in request.topics]
    describable = yield from rights.allowed(DESCRIBE, names)
    deletable = yield from rights.allowed(DELETE, names)

    def may_delete(topic: DeleteTopicState, name: str | None) -> bool:
        if name is None or topic.topic_id != ZERO_UUID:
            return name in deletable
        # Who may describe a topic is told that it does not exist.
        return name in describable and (name in deletable or name not in broker.image.topics)

    def refuse(topic: DeleteTopicState, code: ErrorCode) -> DeletableTopicResult:
        name = _deleted_name(rights, topic)
        is_shown = topic.topic_id == ZERO_UUID or name in describable
        return DeletableTopicResult(
            name=name if is_shown else None,
            topic_id=topic.topic_id,
            error_code=code,
            error_message=code.text,
        )

    elements = Elements("topics", None, DeleteTopicsResponse, "responses", refuse)
    is_allowed = [may_delete(topic, name) for topic, name in zip(request.topics, names, strict=True)]
    return (yield from split(request, elements, is_allowed, lambda _: DENIED))


def _deleted_name(rights: Rights, topic: DeleteTopicState) -> str | None:
    """None if there is no such topic, or if the handler refuses an element that has both a name and an id."""
    if topic.topic_id == ZERO_UUID:
        return topic.name
    return None if topic.name is not None else rights.call.broker.image.topic_names.get(topic.topic_id)


# ---- configs


def configs(operation: Operation, elements: Elements) -> Callable[[Rights, Any], Work[Outcome]]:
    """The configs of a topic or group need the right to it, all others the right to the cluster."""

    def rule(rights: Rights, request: Any) -> Work[Outcome]:
        allowed: list[bool] = []
        for resource in request.resources:
            kind = _CONFIG_RESOURCES.get(resource.resource_type)
            if kind is not None:
                allowed.append(rights.may(operation, kind, resource.resource_name))
            else:
                is_known = resource.resource_type in _CLUSTER_RESOURCES
                allowed.append(not is_known or rights.may(operation))
            yield
        return (yield from split(request, elements, allowed, _refused_config))

    return rule


def _refused_config(resource: Any) -> ErrorCode:
    return REFUSALS[_CONFIG_RESOURCES.get(resource.resource_type, ResourceType.CLUSTER)]
