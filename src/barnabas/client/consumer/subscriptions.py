"""The binary formats of a classic group: the subscription of a member, and the assignment it gets."""

from collections.abc import Sequence

from barnabas.client.consumer.assignors import Subscription, by_topic
from barnabas.client.types import TopicPartition
from barnabas.wire.codec import WireError, decode_message, encode_message
from barnabas.wire.messages import consumer_protocol_assignment as assignment_format
from barnabas.wire.messages import consumer_protocol_subscription as subscription_format

_VERSION_BYTES = 2
SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 0


def encode_subscription(subscription: Subscription, rack: str | None = None) -> bytes:
    message = subscription_format.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            subscription_format.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in sorted(by_topic(subscription.owned).items())
        ],
        generation_id=subscription.generation,
        rack_id=rack,
    )
    body = encode_message(message, SUBSCRIPTION_VERSION, subscription_format.FLEXIBLE_FROM)
    return SUBSCRIPTION_VERSION.to_bytes(_VERSION_BYTES, "big") + body


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """A newer version is read as the newest that we know: new fields come after the known ones."""
    version = min(_version(data), SUBSCRIPTION_VERSION)
    message = decode_message(
        subscription_format.ConsumerProtocolSubscription,
        version,
        subscription_format.FLEXIBLE_FROM,
        data[_VERSION_BYTES:],
    )
    owned = tuple(
        TopicPartition(each.topic, index) for each in message.owned_partitions for index in each.partitions
    )
    topics = tuple(message.topics)
    return Subscription(topics, owned, message.generation_id, instance_id, message.user_data)


def encode_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    message = assignment_format.ConsumerProtocolAssignment(
        assigned_partitions=[
            assignment_format.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in sorted(by_topic(partitions).items())
        ]
    )
    body = encode_message(message, ASSIGNMENT_VERSION, assignment_format.FLEXIBLE_FROM)
    return ASSIGNMENT_VERSION.to_bytes(_VERSION_BYTES, "big") + body


def decode_assignment(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    message = decode_message(
        assignment_format.ConsumerProtocolAssignment,
        min(_version(data), assignment_format.VERSIONS[1]),
        assignment_format.FLEXIBLE_FROM,
        data[_VERSION_BYTES:],
    )
    return [
        TopicPartition(each.topic, index) for each in message.assigned_partitions for index in each.partitions
    ]


def _version(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise WireError("a subscription or assignment has no version")
    return int.from_bytes(data[:_VERSION_BYTES], "big")
