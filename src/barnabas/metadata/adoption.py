"""The decision to add topics whose logs are on disk, such as those that a Kafka broker wrote. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.ids import Uuid, random_uuid, topic_name_problem
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord, PartitionRecord, ProducerIdsRecord, TopicRecord


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic on disk: its id, if it is stored there, and the newest leader epoch of each partition."""

    name: str
    id: Uuid | None
    epochs: dict[int, int]


@dataclass(frozen=True, slots=True)
class FoundTopics:
    """All topics on disk; `producer_id_max` is the largest producer id in their records."""

    topics: Sequence[FoundTopic]
    producer_id_max: int = -1


def adopt_topics(image: MetadataImage, found: FoundTopics, broker_id: int) -> Decision[list[str]]:
    """Make each of them a topic that this broker leads, and return the names of those added.

    New leader epochs are above every epoch in the logs, and new producer ids above every id in them: a new
    producer with an old id would be taken for the old producer. A missing partition is created."""
    records: list[MetadataRecord] = []
    added: list[str] = []
    ids = set(image.topic_names)
    for topic in found.topics:
        topic_id = topic.id or random_uuid()
        if topic.name in image.topics or topic_id in ids or topic_name_problem(topic.name):
            continue
        ids.add(topic_id)
        records.append(TopicRecord(topic.name, topic_id))
        for index in range(max(topic.epochs) + 1):
            epoch = topic.epochs.get(index, -1) + 1
            replicas = (broker_id,)
            records.append(PartitionRecord(topic_id, index, replicas, replicas, broker_id, epoch))
        added.append(topic.name)
    if found.producer_id_max >= image.next_producer_id:
        records.append(ProducerIdsRecord(broker_id, -1, found.producer_id_max + 1))
    return Decision(tuple(records), added)
