"""DeleteTopics, key 20, versions 1-6: by name or by id, each with an answer of its own.

Behaviour: a topic named twice is refused, with one answer. The records are deleted later, with their
directories.
Versions:  v3 TOPIC_DELETION_DISABLED, INVALID_REQUEST before · v5 error messages, and topics beyond the
client's quota are refused, before they are deleted and the client is throttled · v6 topic ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.broker.portions import drained
from barnabas.broker.quotas import Mutations
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID
from barnabas.metadata.parts import TopicImage
from barnabas.metadata.topics import TopicReference, find_topic
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DISABLED_VERSION_MIN = 3
STRICT_QUOTA_VERSION_MIN = 5


def delete_topics(call: Call, request: DeleteTopicsRequest) -> Work[DeleteTopicsResponse]:
    counts = yield from _counted(request)
    if not call.broker.config["delete.topic.enable"]:
        is_known = call.version >= DISABLED_VERSION_MIN
        refusal = KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted here: delete.topic.enable is false",
        )
        return (yield from _response(counts, lambda reference: refusal))
    existing = yield from _existing(call, counts)
    mutations = call.broker.quotas.mutations(call, is_strict=call.version >= STRICT_QUOTA_VERSION_MIN)
    results = yield _delete(call, existing, request.timeout_ms, mutations)
    results_of = dict(zip(existing, results, strict=True))

    def result_of(reference: TopicReference) -> TopicImage | KafkaError:
        if counts[reference] > 1:
            message = f"the topic is in the request {counts[reference]} times"
            return KafkaError(ErrorCode.INVALID_REQUEST, message)
        return results_of.get(reference) or find_topic(call.broker.image, reference)

    response = yield from _response(counts, result_of)
    response.throttle_time_ms = mutations.throttle_ms()
    return response


def _existing(call: Call, counts: Mapping[TopicReference, int]) -> Work[list[TopicReference]]:
    """The topics to delete: those that are there, and are in the request once."""
    references = []
    for reference, count in counts.items():
        if count == 1 and isinstance(find_topic(call.broker.image, reference), TopicImage):
            references.append(reference)
        yield
    return references


def _counted(request: DeleteTopicsRequest) -> Work[Counter[TopicReference]]:
    counts: Counter[TopicReference] = Counter()
    for topic in drained(request.topics):
        counts[_reference(topic)] += 1
        yield
    return counts


def _response(
    references: Iterable[TopicReference], result_of: Callable[[TopicReference], TopicImage | KafkaError]
) -> Work[DeleteTopicsResponse]:
    response = DeleteTopicsResponse()
    for reference in references:
        response.responses.append(_result(reference, result_of(reference)))
        yield
    return response


def _reference(topic: DeleteTopicState) -> TopicReference:
    return TopicReference(topic.name, None if topic.topic_id == ZERO_UUID else topic.topic_id)


async def _delete(
    call: Call, references: list[TopicReference], timeout_ms: int, mutations: Mutations
) -> Sequence[TopicImage | KafkaError]:
    try:
        work = call.broker.controller.delete_topics(references, charge=mutations.charge)
        return await within(timeout_ms, call.broker.replicas.settled_after(work))
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
