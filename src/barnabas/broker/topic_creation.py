"""Topics that a broker creates without an admin's request: on first use, and those of the coordinators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.metadata.topics import NewTopic
from barnabas.wire.messages import create_topics
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# A client waits meanwhile. If there is no controller for longer, it gets an error and tries again.
CREATE_SECONDS_MAX = 10.0


async def create_missing_topics(broker: Broker, topics: Sequence[NewTopic]) -> dict[str, KafkaError]:
    """Have the controller create topics; returns the errors of those that could not be created.

    A topic that exists already is not an error: another client may have been faster. When this returns, the
    local image has the topics, and this broker has opened its partitions of them."""
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=int(CREATE_SECONDS_MAX * 1000)
    )
    try:
        response: CreateTopicsResponse = await broker.controller_channel.send(
            create_topics.API_KEY, request, within_seconds=CREATE_SECONDS_MAX
        )
    except KafkaError as error:
        return {topic.name: error for topic in topics}
    return {
        result.name: KafkaError(error_of(result.error_code), result.error_message)
        for result in response.topics
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
