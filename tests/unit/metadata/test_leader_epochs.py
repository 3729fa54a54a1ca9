"""A broker raises the epochs of the partitions it leads after an unclean stop."""

from barnabas.ids import random_uuid
from barnabas.metadata.brokers import raise_leader_epochs
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import PartitionRecord, TopicRecord


def test_every_partition_the_broker_leads_gets_a_new_epoch_and_no_other() -> None:
    topic_id = random_uuid()
    image = MetadataImage().apply(
        [
            TopicRecord("orders", topic_id),
            PartitionRecord(topic_id, 0, (1, 2), (1, 2), leader=1, leader_epoch=4),
            PartitionRecord(topic_id, 1, (1, 2), (1, 2), leader=2, leader_epoch=9),
        ]
    )
    decision = raise_leader_epochs(image, broker_id=1)
    assert decision.result == 1
    after = image.apply(decision.records).topics["orders"].partitions
    assert [(part.leader, part.leader_epoch) for part in after] == [(1, 5), (2, 9)]
