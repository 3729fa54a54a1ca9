"""The decision to take in topics whose logs were found on disk, such as those a Kafka broker wrote. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.ids import Uuid, random_uuid, topic_name_problem
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord, PartitionRecord, TopicRecord


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic on disk: its id where one is written there, and the newest leader epoch by partition."""

    name: str
    id: Uuid | None
    epochs: dict[int, int]


def adopt_topics(image: MetadataImage, found: Sequence[FoundTopic], broker_id: int) -> Decision[list[str]]:
    """Make each of them a topic led by this broker; the names taken in.

    A new term begins above every epoch in the logs. A partition missing between others is made, empty."""
    records: list[MetadataRecord] = []
    taken: list[str] = []
    for topic in found:
        if topic.name in image.topics or topic.id in image.topic_names or topic_name_problem(topic.name):
            continue
        topic_id = topic.id or random_uuid()
        records.append(TopicRecord(topic.name, topic_id))
        for index in range(max(topic.epochs) + 1):
            epoch = topic.epochs.get(index, -1) + 1
            replicas = (broker_id,)
            records.append(PartitionRecord(topic_id, index, replicas, replicas, broker_id, epoch))
        taken.append(topic.name)
    return Decision(tuple(records), taken)
