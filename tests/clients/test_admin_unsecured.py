"""What foreign admin clients get from a broker without security and with one replica of everything."""

import confluent_kafka
import pytest
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from tests.clients import kafka_python_library as kafka_python
from tests.clients.kafka_python_client import KafkaPythonAdmin

from barnabas.errors import ErrorCode

PATIENCE_SECONDS = 20.0
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture
def confluent_admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def code_of(future: object) -> int:
    """The error that the call ends with."""
    with pytest.raises(KafkaException) as raised:
        future.result(PATIENCE_SECONDS)  # type: ignore[attr-defined]
    code: int = raised.value.args[0].code()
    return code


# ---- confluent-kafka


def test_confluent_gets_the_error_that_there_are_no_acls(confluent_admin: AdminClient) -> None:
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    # The library passes no error of this call on.
    assert confluent_admin.describe_acls(ANY_ACL).result(PATIENCE_SECONDS) == []
    assert code_of(confluent_admin.create_acls([acl])[acl]) == ErrorCode.SECURITY_DISABLED
    assert code_of(confluent_admin.delete_acls([ANY_ACL])[ANY_ACL]) == ErrorCode.SECURITY_DISABLED


def test_confluent_needs_no_election(confluent_admin: AdminClient, topic: str) -> None:
    partition = confluent_kafka.TopicPartition(topic, 0)
    absent = confluent_kafka.TopicPartition(topic, 99)
    elected = confluent_admin.elect_leaders(ElectionType.PREFERRED, [partition, absent])
    codes = {each.partition: error.code() for each, error in elected.result(PATIENCE_SECONDS).items()}
    assert codes == {0: ErrorCode.ELECTION_NOT_NEEDED, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_confluent_finds_no_credentials(confluent_admin: AdminClient) -> None:
    assert confluent_admin.describe_user_scram_credentials(None).result(PATIENCE_SECONDS) == {}
    alice = confluent_admin.describe_user_scram_credentials(["alice"])["alice"]
    assert code_of(alice) == ErrorCode.RESOURCE_NOT_FOUND
    deletion = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    deleted = confluent_admin.alter_user_scram_credentials([deletion])["alice"]
    assert code_of(deleted) == ErrorCode.RESOURCE_NOT_FOUND


# ---- kafka-python


def test_kafka_python_sees_no_partition_moving(kafka_python_admin: KafkaPythonAdmin, topic: str) -> None:
    library = kafka_python_admin.library
    partition, absent = (kafka_python.TopicPartition(topic, index) for index in (0, 99))
    assert library.list_partition_reassignments() == {}
    assert library.list_partition_reassignments([partition]) == {}
    answers = library.alter_partition_reassignments({partition: None, absent: None})
    assert {each.partition: error.errno for each, error in answers.items()} == {
        0: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_kafka_python_needs_no_election(kafka_python_admin: KafkaPythonAdmin, topic: str) -> None:
    (result,) = kafka_python_admin.library.elect_leaders(0, {topic: [0]}).replica_election_results
    assert [each.error_code for each in result.partition_result] == [ErrorCode.ELECTION_NOT_NEEDED]


def test_kafka_python_finds_no_credentials(kafka_python_admin: KafkaPythonAdmin) -> None:
    assert kafka_python_admin.library.describe_user_scram_credentials() == {}
    described = kafka_python_admin.library.describe_user_scram_credentials(["alice"])
    assert "alice" in described["alice"]["error"]


def test_kafka_python_updates_a_feature_to_its_level(kafka_python_admin: KafkaPythonAdmin) -> None:
    library = kafka_python_admin.library
    assert library.describe_features()["transaction.version"]["finalized"] == (2, 2)
    assert library.update_features({"transaction.version": 2}, validate_only=True) == {
        "transaction.version": "OK"
    }
