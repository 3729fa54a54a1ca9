"""Topics on disk become topics of the cluster."""

from barnabas.ids import random_uuid
from barnabas.metadata.adoption import FoundTopic, FoundTopics, adopt_topics
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import TopicRecord


def test_a_topic_on_disk_keeps_its_id_and_gets_an_epoch_above_those_of_its_logs() -> None:
    topic_id = random_uuid()
    decision = adopt_topics(
        MetadataImage(), FoundTopics([FoundTopic("orders", topic_id, {0: 4, 2: -1})]), broker_id=7
    )
    image = MetadataImage().apply(decision.records)
    assert decision.result == ["orders"]
    topic = image.topic("orders")
    assert topic is not None
    assert topic.id == topic_id
    assert [partition.leader_epoch for partition in topic.partitions] == [5, 0, 0]
    assert all(partition.replicas == partition.isr == (7,) for partition in topic.partitions)


def test_topics_that_exist_or_have_invalid_names_are_left_alone() -> None:
    known, other = random_uuid(), random_uuid()
    image = MetadataImage().apply([TopicRecord("orders", known)])
    topics = [
        FoundTopic("orders", other, {0: 0}),
        FoundTopic("same-id", known, {0: 0}),
        FoundTopic("bad name", other, {0: 0}),
    ]
    decision = adopt_topics(image, FoundTopics(topics), broker_id=1)
    assert decision.records == ()
    assert decision.result == []


def test_a_topic_without_an_id_gets_one() -> None:
    decision = adopt_topics(MetadataImage(), FoundTopics([FoundTopic("old", None, {0: -1})]), broker_id=1)
    topic = MetadataImage().apply(decision.records).topic("old")
    assert topic is not None
    assert len(topic.id) == 16 and any(topic.id)


def test_new_producer_ids_are_above_those_in_the_logs() -> None:
    topics = FoundTopics([FoundTopic("orders", None, {0: 0})], producer_id_max=4711)
    image = MetadataImage().apply(adopt_topics(MetadataImage(), topics, broker_id=1).records)
    assert image.next_producer_id == 4712
    again = adopt_topics(image, FoundTopics([], producer_id_max=12), broker_id=1)
    assert again.records == ()
