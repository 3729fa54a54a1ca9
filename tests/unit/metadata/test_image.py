"""An image is what the records say; it shares unchanged parts, and knows what changed."""

import pytest

from barnabas.metadata.difference import PartitionDifference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.image_builder import InconsistentLog
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import (
    BrokerRecord,
    ConfigRecord,
    ControllerRecord,
    DelegationTokenRecord,
    FeatureRecord,
    Listener,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveBrokerRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    ScramCredentialRecord,
    TopicRecord,
)


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def topic(name: str, number: int, partitions: int = 1) -> list[MetadataRecord]:
    created: list[MetadataRecord] = [TopicRecord(name, topic_id(number))]
    created += [PartitionRecord(topic_id(number), index, (1, 2), (1, 2), 1) for index in range(partitions)]
    return created


def image_of(*records: MetadataRecord) -> MetadataImage:
    return MetadataImage(cluster_id="c").apply(records)


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = image_of(*topic("a", 1, partitions=3))
    by_name = image.topic("a")
    assert by_name is not None and by_name is image.topic_by_id(topic_id(1))
    assert len(by_name.partitions) == 3
    assert image.topic("b") is None
    assert image.topic_by_id(topic_id(2)) is None
    assert image.offset == 4


@pytest.mark.parametrize(("name", "index"), [("a", 2), ("a", -1), ("b", 0)])
def test_a_partition_that_is_not_there_is_none(name: str, index: int) -> None:
    image = image_of(*topic("a", 1, partitions=2))
    assert image.partition("a", 1) == PartitionImage((1, 2), (1, 2), 1, 0, 0)
    assert image.partition(name, index) is None


def test_a_change_of_leader_raises_both_epochs_and_a_change_of_isr_only_one() -> None:
    image = image_of(*topic("a", 1), PartitionChangeRecord(topic_id(1), 0, isr=(1,)))
    assert image.partition("a", 0) == PartitionImage((1, 2), (1,), 1, 0, 1)
    image = image.apply([PartitionChangeRecord(topic_id(1), 0, leader=1)])
    assert image.partition("a", 0) == PartitionImage((1, 2), (1,), 1, 1, 2)
    image = image.apply([PartitionChangeRecord(topic_id(1), 0, replicas=(2, 3))])
    assert image.partition("a", 0) == PartitionImage((2, 3), (1,), 1, 1, 3)


def test_an_older_image_does_not_change_and_shares_what_is_unchanged() -> None:
    old = image_of(*topic("a", 1), *topic("b", 2), ConfigRecord(2, "a", "k", "v"))
    new = old.apply([PartitionChangeRecord(topic_id(1), 0, leader=2)])
    before, after = old.partition("a", 0), new.partition("a", 0)
    assert before is not None and before.leader == 1
    assert after is not None and after.leader == 2
    assert new.topics["b"] is old.topics["b"]
    assert new.configs is old.configs
    assert new.topic_names is old.topic_names


def test_deleting_a_topic_removes_its_configs_and_frees_its_name() -> None:
    image = image_of(*topic("a.b", 1), ConfigRecord(2, "a.b", "k", "v"))
    assert image.collisions == {"a_b": "a.b"}
    image = image.apply([RemoveTopicRecord(topic_id(1))])
    assert (image.topics, image.topic_names, image.configs, image.collisions) == ({}, {}, {}, {})


def test_the_last_config_removed_leaves_no_entry() -> None:
    image = image_of(ConfigRecord(4, "", "k", "v"), ConfigRecord(4, "", "l", "w"))
    assert image.config(4, "") == {"k": "v", "l": "w"}
    image = image.apply([ConfigRecord(4, "", "k", None), ConfigRecord(4, "", "l", None)])
    assert image.configs == {}


def test_a_snapshot_rebuilds_the_image() -> None:
    image = image_of(
        BrokerRecord(1, 0, topic_id(9), (Listener("PLAINTEXT", "h", 9092),), "rack", False),
        BrokerRecord(2, 1, topic_id(8), (), None, True, True, (topic_id(7),)),
        *topic("a", 1, partitions=2),
        *topic("gone", 2),
        PartitionChangeRecord(topic_id(1), 1, leader=2, isr=(2,)),
        PartitionChangeRecord(topic_id(1), 0, adding_replicas=(3,), removing_replicas=(1,)),
        PartitionChangeRecord(topic_id(1), 0, elr=(1,), last_known_elr=(2,), leader_recovery_state=1),
        ControllerRecord(2, 5),
        ConfigRecord(2, "a", "k", "v"),
        ConfigRecord(4, "", "k", "v"),
        ProducerIdsRecord(1, 0, 3000),
        FeatureRecord("group.version", 1),
        RemoveTopicRecord(topic_id(2)),
        ScramCredentialRecord("alice", 1, "4096,a,b,c"),
        ScramCredentialRecord("alice", 2, "gone"),
        ScramCredentialRecord("alice", 2, None),
        DelegationTokenRecord("token", "User:a", "User:b", ("User:c",), 1, 20, 10),
        DelegationTokenRecord("token", "User:a", "User:b", ("User:c",), 1, 20, 15),
        DelegationTokenRecord("gone", "User:a", "User:b", (), 1, 20, 10),
        RemoveDelegationTokenRecord("gone"),
    )
    rebuilt = MetadataImage(cluster_id="c").apply(image.records())
    assert rebuilt.difference(image).empty
    assert (rebuilt.topics, rebuilt.topic_names, rebuilt.brokers) == (
        image.topics,
        image.topic_names,
        image.brokers,
    )
    assert (rebuilt.controller_id, rebuilt.controller_epoch) == (2, 5)
    assert (rebuilt.configs, rebuilt.features, rebuilt.next_producer_id) == (
        image.configs,
        {"group.version": 1},
        3000,
    )
    assert rebuilt.scram_credentials == {("alice", 1): "4096,a,b,c"}
    assert "4096" not in repr(rebuilt)
    assert {token.id: token.expires_ms for token in rebuilt.delegation_tokens.values()} == {"token": 15}


def test_a_change_leaves_the_other_fields_of_a_partition() -> None:
    change = PartitionChangeRecord(topic_id(1), 0, adding_replicas=(3,), removing_replicas=(1,))
    image = image_of(*topic("a", 1), change, PartitionChangeRecord(topic_id(1), 0, elr=(2,), isr=(1,)))
    partition = image.partition("a", 0)
    assert partition == PartitionImage(
        (1, 2), (1,), 1, 0, 2, adding_replicas=(3,), removing_replicas=(1,), elr=(2,)
    )
    assert partition.is_reassigning


def test_a_new_controller_is_a_difference() -> None:
    old = image_of(ControllerRecord(1, 1))
    new, difference = old.apply_and_compare([ControllerRecord(2, 2)])
    assert difference.controller_changed and not difference.empty
    assert (new.controller_id, new.controller_epoch) == (2, 2)
    assert not new.apply_and_compare([ControllerRecord(2, 3)])[1].controller_changed


def test_the_difference_names_what_changed_and_nothing_else() -> None:
    old = image_of(*topic("a", 1), *topic("b", 2), *topic("c", 3), ConfigRecord(2, "b", "k", "v"))
    new, difference = old.apply_and_compare(
        [
            RemoveTopicRecord(topic_id(2)),
            *topic("d", 4),
            PartitionChangeRecord(topic_id(1), 0, isr=(1,)),
            PartitionRecord(topic_id(1), 1, (1, 2), (1, 2), 2),
            BrokerRecord(1, 0, topic_id(9), ()),
        ]
    )
    a = new.topics["a"]
    assert difference.topics_deleted == (old.topics["b"],)
    assert difference.topics_created == (new.topics["d"],)
    assert difference.partitions_changed == (
        PartitionDifference(a, 0, old.partition("a", 0), a.partitions[0]),
        PartitionDifference(a, 1, None, a.partitions[1]),
    )
    assert difference.configs_changed == ((2, "b"),)
    assert difference.brokers_changed == (1,)
    assert new.difference(old) == difference


def test_a_topic_created_again_is_both_deleted_and_created() -> None:
    old = image_of(*topic("a", 1))
    new, difference = old.apply_and_compare([RemoveTopicRecord(topic_id(1)), *topic("a", 2)])
    assert difference.topics_deleted == (old.topics["a"],)
    assert difference.topics_created == (new.topics["a"],)
    assert difference.partitions_changed == ()


def test_a_topic_that_is_created_and_deleted_in_one_step_is_no_difference() -> None:
    old = image_of(*topic("a", 1))
    new, difference = old.apply_and_compare([*topic("b", 2), RemoveTopicRecord(topic_id(2))])
    assert difference.empty
    assert new.difference(old).empty
    assert new.offset == 5


def test_a_broker_that_leaves_is_a_difference() -> None:
    old = image_of(BrokerRecord(1, 0, topic_id(9), ()))
    new, difference = old.apply_and_compare([RemoveBrokerRecord(1, 0)])
    assert difference.brokers_changed == (1,)
    assert new.brokers == {}


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord("a", topic_id(2)),
        PartitionRecord(topic_id(1), 2, (1,), (1,), 1),
        PartitionRecord(topic_id(7), 0, (1,), (1,), 1),
        PartitionChangeRecord(topic_id(1), 1, leader=1),
        RemoveTopicRecord(topic_id(7)),
    ],
)
def test_a_record_that_cannot_be_applied_is_refused_with_its_offset(record: MetadataRecord) -> None:
    with pytest.raises(InconsistentLog, match=r"^metadata record 2 "):
        image_of(*topic("a", 1), record)
