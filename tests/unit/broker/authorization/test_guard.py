"""Requests of which a part is refused: the rest is answered, and nothing leaks that the peer may not know."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.support.small_cluster import eventually
from tests.unit.broker.conftest import MakeStage, Stage

from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.errors import ErrorCode
from barnabas.security.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.principal import Principal
from barnabas.wire.messages import (
    add_partitions_to_txn,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    list_offsets,
    metadata,
    offset_fetch,
)

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
DESCRIBE = Operation.DESCRIBE


class Guarded:
    """A broker with two topics, `mine` and `other`, and alice, who asks."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.create("mine", 2)
        stage.create("other")
        stage.principal = Principal("User", "alice")

    def allow(self, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME) -> None:
        allow = Permission.ALLOW
        acl = Acl(kind, name, PatternType.LITERAL, "User:alice", "*", operation, allow)
        assert self.stage.run(self.stage.controller.create_acls([acl])) == [None]

    def ask(self, request: Any, version: int) -> Any:
        return self.stage.ask(request, version)

    def start_groups(self) -> None:
        async def start() -> None:
            await self.stage.start_coordinators()
            await self.stage.groups.ensure_topic()
            self.stage.follow_coordinators()
            await eventually(lambda: not self.stage.groups.is_loading)

        self.stage.run(start())

    def id_of(self, name: str) -> bytes:
        return self.stage.image.topics[name].id


@pytest.fixture
def guarded(make_stage: MakeStage) -> Guarded:
    return Guarded(make_stage(authorizer_class_name=STANDARD_AUTHORIZER))


def named(*names: str) -> list[metadata.MetadataRequestTopic]:
    return [metadata.MetadataRequestTopic(name=name) for name in names]


# ---- Metadata


def test_metadata_of_some_topics(guarded: Guarded) -> None:
    guarded.allow(DESCRIBE, TOPIC, "mine")
    request = metadata.MetadataRequest(topics=named("other", "mine", "absent", "other"))
    topics = {topic.name: topic for topic in guarded.ask(request, 12).topics}
    assert {name: topic.error_code for name, topic in topics.items()} == {
        "mine": ErrorCode.NONE,
        "other": DENIED,
        "absent": DENIED,
    }
    assert len(topics["mine"].partitions) == 2
    assert topics["other"].topic_id == bytes(16) and not topics["other"].partitions
    assert "absent" not in guarded.stage.image.topics


def test_metadata_by_id_does_not_tell_names(guarded: Guarded) -> None:
    asked = metadata.MetadataRequestTopic(topic_id=guarded.id_of("other"), name=None)
    (topic,) = guarded.ask(metadata.MetadataRequest(topics=[asked]), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (DENIED, None, guarded.id_of("other"))


def test_metadata_version_0_does_not_take_nothing_left_for_everything(guarded: Guarded) -> None:
    guarded.allow(DESCRIBE, TOPIC, "mine")
    (topic,) = guarded.ask(metadata.MetadataRequest(topics=named("other")), 0).topics
    assert (topic.name, topic.error_code) == ("other", DENIED)
    all_topics = guarded.ask(metadata.MetadataRequest(topics=[]), 0).topics
    assert [topic.name for topic in all_topics] == ["mine"]


def test_metadata_creates_topics_only_for_those_who_may(guarded: Guarded) -> None:
    guarded.allow(DESCRIBE, TOPIC, "new")
    request = metadata.MetadataRequest(topics=named("new"), allow_auto_topic_creation=True)
    (topic,) = guarded.ask(request, 12).topics
    assert topic.error_code == DENIED and "new" not in guarded.stage.image.topics
    forbidden = metadata.MetadataRequest(topics=named("new"), allow_auto_topic_creation=False)
    (topic,) = guarded.ask(forbidden, 12).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- authorized operations


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


def test_authorized_operations(guarded: Guarded) -> None:
    guarded.allow(Operation.READ, TOPIC, "mine")
    guarded.allow(DESCRIBE, CLUSTER)
    request = metadata.MetadataRequest(
        topics=named("mine"),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = guarded.ask(request, 8)
    assert answer.topics[0].topic_authorized_operations == bits(Operation.READ, DESCRIBE)
    assert answer.cluster_authorized_operations == bits(DESCRIBE)
    pages = describe_topic_partitions.DescribeTopicPartitionsRequest()
    (topic,) = guarded.ask(pages, 0).topics
    assert (topic.name, topic.topic_authorized_operations) == ("mine", bits(Operation.READ, DESCRIBE))


def test_the_operations_of_the_cluster_are_none_for_those_who_may_not_describe_it(guarded: Guarded) -> None:
    guarded.allow(Operation.CREATE, CLUSTER)
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert guarded.ask(request, 0).cluster_authorized_operations == 0
    guarded.allow(DESCRIBE, CLUSTER)
    assert guarded.ask(request, 0).cluster_authorized_operations == bits(DESCRIBE, Operation.CREATE)


def test_authorized_operations_of_groups(guarded: Guarded) -> None:
    guarded.start_groups()
    guarded.allow(Operation.DELETE, GROUP, "g")
    request = describe_groups.DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)
    mine, other = guarded.ask(request, 5).groups
    assert (mine.group_id, mine.authorized_operations) == ("g", bits(Operation.DELETE, DESCRIBE))
    assert (other.group_id, other.error_code) == ("h", ErrorCode.GROUP_AUTHORIZATION_FAILED)


# ---- elements


def test_the_rest_of_a_request_is_answered(guarded: Guarded) -> None:
    guarded.allow(DESCRIBE, TOPIC, "mine")
    part = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [
        list_offsets.ListOffsetsTopic(name=name, partitions=[part]) for name in ("other", "mine", "absent")
    ]
    answer = guarded.ask(list_offsets.ListOffsetsRequest(topics=topics), 5)
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"mine": ErrorCode.NONE, "other": DENIED, "absent": DENIED}


def test_created_topics(guarded: Guarded) -> None:
    guarded.allow(Operation.CREATE, TOPIC, "new")
    new = [
        create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("new", "newer", "twice", "twice")
    ]
    answer = guarded.ask(create_topics.CreateTopicsRequest(topics=new), 7)
    results = {topic.name: topic for topic in answer.topics}
    assert {name: topic.error_code for name, topic in results.items()} == {
        "new": ErrorCode.NONE,
        "newer": DENIED,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    created = results["new"]
    assert (created.topic_config_error_code, created.num_partitions, created.configs) == (DENIED, -1, [])
    assert "newer" not in guarded.stage.image.topics


def test_deleted_topics(guarded: Guarded) -> None:
    guarded.allow(Operation.DELETE, TOPIC, "mine")
    guarded.allow(DESCRIBE, TOPIC, "absent")
    topics = [
        delete_topics.DeleteTopicState(name="mine"),
        delete_topics.DeleteTopicState(name="absent"),
        delete_topics.DeleteTopicState(name="hidden"),
        delete_topics.DeleteTopicState(topic_id=guarded.id_of("other")),
        delete_topics.DeleteTopicState(topic_id=bytes(15) + b"x"),
    ]
    answer = guarded.ask(delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    found = {(topic.name, topic.topic_id[-1:] == b"x"): topic.error_code for topic in answer.responses}
    assert found[None, True] == ErrorCode.UNKNOWN_TOPIC_ID
    assert found[None, False] == DENIED
    assert found["absent", False] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found["hidden", False] == DENIED
    assert set(guarded.stage.image.topics) == {"other"}


def test_offsets_of_groups_and_topics(guarded: Guarded) -> None:
    guarded.start_groups()
    guarded.allow(DESCRIBE, GROUP, "g")
    guarded.allow(DESCRIBE, TOPIC, "mine")
    topics = [
        offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("other", "mine")
    ]
    groups = [offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in ("g", "h")]
    answer = guarded.ask(offset_fetch.OffsetFetchRequest(groups=groups), 8)
    mine, other = answer.groups
    assert {topic.name: topic.partitions[0].error_code for topic in mine.topics} == {
        "mine": ErrorCode.NONE,
        "other": DENIED,
    }
    assert (other.group_id, other.error_code) == ("h", ErrorCode.GROUP_AUTHORIZATION_FAILED)


def test_configs_of_resources(guarded: Guarded) -> None:
    guarded.allow(Operation.DESCRIBE_CONFIGS, TOPIC, "mine")
    resources = [
        describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in ((2, "mine"), (2, "other"), (4, "1"), (32, "g"), (99, "?"))
    ]
    answer = guarded.ask(describe_configs.DescribeConfigsRequest(resources=resources), 4)
    assert {result.resource_name: result.error_code for result in answer.results} == {
        "mine": ErrorCode.NONE,
        "other": DENIED,
        "1": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        "g": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "?": ErrorCode.INVALID_REQUEST,
    }
    refused = [result for result in answer.results if result.error_code]
    assert not any(result.configs for result in refused)


def test_partitions_are_added_to_a_transaction_all_or_none(guarded: Guarded) -> None:
    guarded.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "txn")
    guarded.allow(Operation.WRITE, TOPIC, "mine")
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="txn",
        v3_and_below_topics=[
            add_partitions_to_txn.AddPartitionsToTxnTopic(name="mine", partitions=[0, 7]),
            add_partitions_to_txn.AddPartitionsToTxnTopic(name="other", partitions=[0, 7]),
        ],
    )
    mine, other = guarded.ask(request, 3).results_by_topic_v3_and_below
    assert [part.partition_error_code for part in mine.results_by_partition] == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [part.partition_error_code for part in other.results_by_partition] == [DENIED, DENIED]


def test_a_page_of_topics_begins_at_a_cursor_that_may_not_be_seen(guarded: Guarded) -> None:
    guarded.allow(DESCRIBE, TOPIC, "other")
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=name) for name in ("mine", "other", "a")],
        cursor=describe_topic_partitions.Cursor(topic_name="mine", partition_index=1),
    )
    answer = guarded.ask(request, 0)
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        "other": ErrorCode.NONE,
        "mine": DENIED,
    }


def test_the_audit_log_counts_how_often_a_name_is_in_a_request(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    part = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [list_offsets.ListOffsetsTopic(name="other", partitions=[part]) for _ in range(3)]
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        guarded.ask(list_offsets.ListOffsetsRequest(topics=topics), 5)
        # What nobody asked for by name is not in the log.
        guarded.ask(metadata.MetadataRequest(topics=None), 5)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    assert "for request = ListOffsets with resourceRefCount = 3 based on rule DefaultDeny" in line


def test_a_request_with_very_many_names_does_not_fill_the_audit_log(
    guarded: Guarded, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.authorization.rules.DENIALS_LOGGED_MAX", 3)
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        guarded.ask(metadata.MetadataRequest(topics=named(*(f"t{number}" for number in range(9)))), 5)
    lines = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    assert len(lines) == 4 and "further denials" in lines[3]


def test_a_name_cannot_write_lines_of_its_own_to_the_audit_log(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "x\nPrincipal = User:bob is Allowed\r\x1b[2J\u2028end"
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        guarded.ask(metadata.MetadataRequest(topics=named(forged)), 5)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    assert line.isprintable()
    assert r"Topic:LITERAL:x\nPrincipal = User:bob is Allowed\r\x1b[2J\u2028end for request" in line
