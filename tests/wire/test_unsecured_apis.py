"""APIs that are answered without security and with one broker: Kafka's bytes, and where ours must differ."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.unsecured_calls import (
    BROKER_ID,
    TOPIC,
    answer_to,
    calls,
    prepare,
    recorded_answers,
)

from barnabas.broker.call import MESSAGES_MAX
from barnabas.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.wire.messages import alter_client_quotas as quota_changes
from barnabas.wire.messages import alter_partition_reassignments as moves
from barnabas.wire.messages import alter_replica_log_dirs as log_dirs
from barnabas.wire.messages import alter_user_scram_credentials as scram_changes
from barnabas.wire.messages import elect_leaders as elections
from barnabas.wire.messages import unregister_broker, update_features

IDENTS = [call.ident for call in calls("")]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"node.id": str(BROKER_ID)}) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            prepare(client)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", broker.port) as client:
        yield client


def test_there_is_an_answer_of_kafka_to_every_call() -> None:
    assert list(recorded_answers()) == IDENTS


@pytest.mark.parametrize("ident", IDENTS)
def test_answer(broker: Broker, client: RawClient, ident: str) -> None:
    (call,) = (call for call in calls(str(broker.data_dir.absolute())) if call.ident == ident)
    assert answer_to(client, call) == recorded_answers()[ident]


# ---- where Kafka would answer a repeated element again, or do what we cannot


@pytest.mark.parametrize("version", range(3))
def test_a_partition_that_is_named_twice_is_elected_once(client: RawClient, version: int) -> None:
    topics = [elections.TopicPartitions(topic=TOPIC, partitions=[0, 1, 0]) for _ in range(3)]
    answer = client.call(43, version, elections.ElectLeadersRequest(topic_partitions=topics))
    (topic,) = answer.replica_election_results
    assert [result.partition_id for result in topic.partition_result] == [0, 1]
    assert {result.error_code for result in topic.partition_result} == {ErrorCode.ELECTION_NOT_NEEDED}


@pytest.mark.parametrize("version", range(2))
def test_a_partition_that_is_named_twice_is_moved_once(client: RawClient, version: int) -> None:
    partition = moves.ReassignablePartition(partition_index=0, replicas=[BROKER_ID])
    topics = [moves.ReassignableTopic(name=TOPIC, partitions=[partition] * 3) for _ in range(3)]
    answer = client.call(45, version, moves.AlterPartitionReassignmentsRequest(topics=topics))
    (topic,) = answer.responses
    assert [(result.partition_index, result.error_code) for result in topic.partitions] == [(0, 0)]


LONG_NAME = "x" * 32_767


def test_errors_repeat_only_the_beginning_of_a_long_name(client: RawClient) -> None:
    """A string of the answer has the same limit as the name."""
    update = update_features.FeatureUpdateKey(feature=LONG_NAME, max_version_level=1)
    answer = client.call(57, 2, update_features.UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert len(answer.error_message) < 1100
    entity = quota_changes.EntityData(entity_type=LONG_NAME, entity_name=LONG_NAME)
    entries = [quota_changes.RequestEntryData(entity=[entity])] * 2
    (entry,) = client.call(49, 1, quota_changes.AlterClientQuotasRequest(entries=entries[:1])).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST
    assert entry.error_message.startswith("Unhandled client quota entity type: xxx")
    (entry,) = client.call(49, 1, quota_changes.AlterClientQuotasRequest(entries=entries)).entries
    assert entry.error_message.startswith("Ignoring duplicate entity ClientQuotaEntity(entries={xxx")


@pytest.mark.parametrize("version", range(2))
def test_a_feature_that_is_named_twice_has_one_result(client: RawClient, version: int) -> None:
    update = update_features.FeatureUpdateKey(feature="group.version", max_version_level=1)
    answer = client.call(57, version, update_features.UpdateFeaturesRequest(feature_updates=[update] * 3))
    assert [(result.feature, result.error_code) for result in answer.results] == [("group.version", 0)]


@pytest.mark.parametrize("version", range(3))
def test_no_feature_can_be_lowered(client: RawClient, version: int) -> None:
    update = update_features.FeatureUpdateKey(
        feature="transaction.version", max_version_level=1, upgrade_type=2, allow_downgrade=version == 0
    )
    answer = client.call(57, version, update_features.UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "cannot lower" in answer.error_message


def test_an_empty_credential_cannot_be_set(client: RawClient) -> None:
    upsertion = scram_changes.ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096)
    answer = client.call(51, 0, scram_changes.AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    (result,) = answer.results
    assert (result.user, result.error_code) == ("alice", ErrorCode.UNACCEPTABLE_CREDENTIAL)
    assert result.error_message == "The salt must have 1 to 1024 bytes"


def test_a_running_broker_cannot_be_unregistered(client: RawClient) -> None:
    answer = client.call(64, 0, unregister_broker.UnregisterBrokerRequest(broker_id=BROKER_ID))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "is running" in answer.error_message


# ---- several log directories


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_may_stay_in_its_directory_or_move(tmp_path: Path, version: int) -> None:
    paths = [tmp_path / name for name in ("first", "second")]
    with (
        Broker({"log.dirs": ",".join(str(path) for path in paths)}) as broker,
        RawClient("127.0.0.1", broker.port) as client,
    ):
        prepare(client)
        codes = []
        for path in paths:
            topic = log_dirs.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
            request = log_dirs.AlterReplicaLogDirsRequest(
                dirs=[log_dirs.AlterReplicaLogDir(path=str(path), topics=[topic])]
            )
            answer = client.call(34, version, request)
            codes.append(answer.results[0].partitions[0].error_code)
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]


# ---- long answers


def test_a_long_answer_explains_only_its_first_errors(client: RawClient) -> None:
    count = MESSAGES_MAX + 10
    name = "x" * 30_000
    topic = elections.TopicPartitions(topic=name, partitions=list(range(count)))
    answer = client.call(43, 2, elections.ElectLeadersRequest(topic_partitions=[topic]))
    (results,) = answer.replica_election_results
    assert {result.error_code for result in results.partition_result} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    messages = [result.error_message for result in results.partition_result]
    assert messages == [f"No such topic as {name[:249]}"] * MESSAGES_MAX + [None] * 10
    move = moves.ReassignableTopic(
        name=name, partitions=[moves.ReassignablePartition(partition_index=index) for index in range(count)]
    )
    answer = client.call(45, 1, moves.AlterPartitionReassignmentsRequest(topics=[move]))
    messages = [result.error_message for result in answer.responses[0].partitions]
    assert messages == [f"Unable to find a topic named {name[:249]}."] * MESSAGES_MAX + [None] * 10
