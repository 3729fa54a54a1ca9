"""The output of `barnabas topics --describe` for clusters of several brokers."""

import pytest
from tests.unit.cli.parsing import parsed

from barnabas.cli.topics.describing import describe, partition_line
from barnabas.client.admin import Admin, AdminError, ConfigResource, ConfigResourceType, PartitionReassignment
from barnabas.client.admin.types import ClusterDescription, ConfigEntry, TopicListing
from barnabas.client.errors import UnsupportedVersionError
from barnabas.client.types import Node, TopicDescription, TopicPartition, TopicPartitionInfo
from barnabas.config.definition import Source
from barnabas.errors import ErrorCode, KafkaError

ONE, TWO, THREE = (Node(number, f"host{number}", 9092) for number in (1, 2, 3))
MOVE = PartitionReassignment((1, 2, 3), (3,), (1,))
# Partition by partition: healthy; one out of sync; below the minimum; without a leader; led by a dead broker.
PARTITIONS = (
    TopicPartitionInfo(0, ONE, 0, (ONE, TWO, THREE), (ONE, TWO, THREE), (), ()),
    TopicPartitionInfo(1, ONE, 0, (ONE, TWO, THREE), (ONE, TWO), (), ()),
    TopicPartitionInfo(2, ONE, 0, (ONE, TWO, THREE), (ONE,), (TWO,), (THREE,)),
    TopicPartitionInfo(3, None, 0, (ONE, TWO, THREE), (), None, None),
    TopicPartitionInfo(4, THREE, 0, (ONE, TWO, THREE), (ONE, TWO, THREE), (), ()),
)


class Cluster(Admin):
    """Three brokers of which the third is down, with one topic and another that may not be seen."""

    def __init__(self) -> None:
        self.moves: dict[TopicPartition, PartitionReassignment] | None = None

    def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        return {"orders": TopicListing("orders"), "secret": TopicListing("secret")}

    def describe_topics(self, topics: object, **options: object) -> dict[str, TopicDescription]:
        descriptions = {"orders": TopicDescription("orders", PARTITIONS)}
        if topics == ["orders"]:
            return descriptions
        refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        raise AdminError({"secret": refused}, descriptions)

    def describe_configs(
        self, resources: object, **options: object
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        entries = {
            "min.insync.replicas": ConfigEntry("min.insync.replicas", "2", Source.DEFAULT),
            "retention.ms": ConfigEntry("retention.ms", "7", Source.TOPIC),
        }
        return {ConfigResource(ConfigResourceType.TOPIC, "orders"): entries}

    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        return ClusterDescription("c", ONE, (ONE, TWO))

    def list_partition_reassignments(
        self, partitions: object = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        if self.moves is None:
            raise UnsupportedVersionError("none can be moved")
        return self.moves


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, cluster: Cluster | None = None) -> list[str]:
    options = parsed("topics", "--describe", "--topic", "orders", *arguments)
    assert describe(cluster or Cluster(), options) == 0
    return capsys.readouterr().out.splitlines()


def numbers(lines: list[str]) -> list[int]:
    return [int(line.split("\t")[2].removeprefix("Partition: ")) for line in lines]


@pytest.mark.parametrize(
    "report, expected",
    [
        ("--under-replicated-partitions", [1, 2, 3]),
        ("--under-min-isr-partitions", [2, 3]),
        ("--at-min-isr-partitions", [1]),
        ("--unavailable-partitions", [3, 4]),
    ],
)
def test_reports_show_only_matching_partitions(
    capsys: pytest.CaptureFixture[str], report: str, expected: list[int]
) -> None:
    assert numbers(shown(capsys, report)) == expected


def test_several_reports_can_be_combined(capsys: pytest.CaptureFixture[str]) -> None:
    assert numbers(shown(capsys, "--at-min-isr-partitions", "--unavailable-partitions")) == [1, 3, 4]


def test_lines_of_a_topic(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    # An old broker sends no topic id, so none is printed.
    assert lines[0] == "Topic: orders\tPartitionCount: 5\tReplicationFactor: 3\tConfigs: retention.ms=7"
    assert lines[3] == (
        "\tTopic: orders\tPartition: 2\tLeader: 1\tReplicas: 1,2,3\tIsr: 1\tElr: 2\tLastKnownElr: 3"
    )
    assert lines[4] == (
        "\tTopic: orders\tPartition: 3\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: N/A\tLastKnownElr: N/A"
    )


def test_a_moving_partition_shows_added_and_removed_replicas() -> None:
    line = partition_line("orders", PARTITIONS[0], MOVE)
    assert "\tIsr: 1,2,3\tAdding Replicas: 3\tRemoving Replicas: 1\tElr: " in line


def test_replicas_that_are_being_added_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster()
    cluster.moves = {TopicPartition("orders", 0): MOVE, TopicPartition("orders", 1): MOVE}
    assert "ReplicationFactor: 2" in shown(capsys, cluster=cluster)[0]
    # Partition 1 has two in-sync replicas of the two that it keeps.
    assert numbers(shown(capsys, "--under-replicated-partitions", cluster=cluster)) == [2, 3]


def test_the_error_of_one_topic_is_printed_and_the_others_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert describe(Cluster(), parsed("topics", "--describe")) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("Topic: orders\t")
    assert printed.err.startswith("Error: secret: ") and printed.err.count("\n") == 1
