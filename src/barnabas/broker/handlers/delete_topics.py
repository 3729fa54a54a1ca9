"""DeleteTopics, key 20, versions 1-6: by name or by id, each with an answer of its own.

Behaviour: a topic named twice is refused, with one answer. The records go with their directories, later.
Versions:  v3 TOPIC_DELETION_DISABLED, INVALID_REQUEST before · v5 error messages · v6 topic ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID
from barnabas.metadata.parts import TopicImage
from barnabas.metadata.topics import TopicReference
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DISABLED_VERSION_MIN = 3


async def delete_topics(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    counts = Counter(_reference(topic) for topic in request.topics)
    if not call.broker.config["delete.topic.enable"]:
        is_known = call.version >= DISABLED_VERSION_MIN
        refusal = KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted here: delete.topic.enable is false",
        )
        return DeleteTopicsResponse(responses=[_result(reference, refusal) for reference in counts])
    references = [reference for reference, count in counts.items() if count == 1]
    response = DeleteTopicsResponse()
    for reference, count in counts.items():
        if count > 1:
            message = f"the topic is in the request {count} times"
            response.responses.append(_result(reference, KafkaError(ErrorCode.INVALID_REQUEST, message)))
    results = await _delete(call, references, request.timeout_ms)
    response.responses += map(_result, references, results)
    return response


def _reference(topic: DeleteTopicState) -> TopicReference:
    return TopicReference(topic.name, None if topic.topic_id == ZERO_UUID else topic.topic_id)


async def _delete(
    call: Call, references: list[TopicReference], timeout_ms: int
) -> Sequence[TopicImage | KafkaError]:
    try:
        return await within(timeout_ms, call.broker.controller.delete_topics(references))
    except KafkaError as error:
        return [error] * len(references)


def _result(reference: TopicReference, result: TopicImage | KafkaError) -> DeletableTopicResult:
    if isinstance(result, KafkaError):
        return DeletableTopicResult(
            name=reference.name,
            topic_id=reference.id or ZERO_UUID,
            error_code=result.code,
            error_message=result.message,
        )
    return DeletableTopicResult(name=result.name, topic_id=result.id)
