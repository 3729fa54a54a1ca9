"""When some of many requests fail, the others are shown, each failure is a message, the exit code is 1."""

import json

import pytest
from tests.unit.cli.parsing import parsed

from barnabas.cli import broker_api_versions, get_offsets, log_dirs
from barnabas.client.admin import Admin, AdminError, LogDirDescription, TopicListing
from barnabas.client.admin.types import ApiVersionsDescription, ClusterDescription, ListedOffset
from barnabas.client.errors import DisconnectedError
from barnabas.client.types import Node, TopicDescription, TopicPartition, TopicPartitionInfo
from barnabas.errors import ErrorCode, KafkaError

NODES = (Node(1, "one", 9092), Node(2, "two", 9093, "r2"))
GONE = DisconnectedError("two:9093 cannot be reached")


class Cluster(Admin):
    """Two brokers of which the second does not answer."""

    def __init__(self) -> None:
        """Talks to nobody."""

    def close(self) -> None:
        """Has nothing to close."""

    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        return ClusterDescription("c", NODES[0], NODES)

    def api_versions(self, *, timeout: float | None = None) -> dict[int, ApiVersionsDescription]:
        raise AdminError({2: GONE}, {1: ApiVersionsDescription(NODES[0], {1: (4, 18)}, {}, {})})

    def describe_log_dirs(
        self, brokers: object = None, **options: object
    ) -> dict[int, dict[str, LogDirDescription]]:
        raise AdminError({2: GONE}, {1: {"/data": LogDirDescription(None, {})}})

    def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        return {name: TopicListing(name) for name in ("orders", "secret")}

    def describe_topics(self, topics: object, **options: object) -> dict[str, TopicDescription]:
        parts = tuple(TopicPartitionInfo(number, NODES[0], 0, NODES, NODES) for number in (0, 1, 10, 2))
        refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        raise AdminError({"secret": refused}, {"orders": TopicDescription("orders", parts)})

    def list_offsets(self, specs: object, **options: object) -> dict[TopicPartition, ListedOffset]:
        offsets = {TopicPartition("orders", number): ListedOffset(number, -1, 0) for number in (0, 2, 10)}
        raise AdminError({TopicPartition("orders", 1): KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)}, offsets)


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in (broker_api_versions, get_offsets, log_dirs):
        monkeypatch.setattr(tool, "admin_of", lambda options: Cluster())


def test_a_broker_that_does_not_answer_api_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert broker_api_versions.run(parsed("broker-api-versions")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "one:9092 (id: 1 rack: null isFenced: false) -> ("
    assert "\tFetch(1): 4 to 18 [usable: 18]," in lines
    assert lines[-1] == "two:9093 (id: 2 rack: r2 isFenced: false) -> ERROR: two:9093 cannot be reached"


def test_json_stays_json_when_a_broker_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert broker_api_versions.run(parsed("broker-api-versions", "--json")) == 1
    printed = capsys.readouterr()
    assert [each["broker"]["id"] for each in json.loads(printed.out)] == [1]
    assert printed.err == "Error: broker 2: two:9093 cannot be reached\n"


def test_a_broker_that_does_not_answer_describe_log_dirs(capsys: pytest.CaptureFixture[str]) -> None:
    assert log_dirs.run(parsed("log-dirs", "--describe")) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1] == "Received log directory information from brokers 1"
    assert [each["broker"] for each in json.loads(printed.out.splitlines()[2])["brokers"]] == [1]
    assert printed.err == "Error: broker 2: two:9093 cannot be reached\n"


def test_partitions_without_a_leader_and_topics_without_access(capsys: pytest.CaptureFixture[str]) -> None:
    assert get_offsets.run(parsed("get-offsets")) == 1
    printed = capsys.readouterr()
    # Sorted as text, as in Kafka's tool.
    assert printed.out.splitlines() == ["orders:0:0", "orders:10:10", "orders:2:2"]
    assert [line.partition(" due to error: ")[0] for line in printed.err.splitlines()] == [
        "Skip getting offsets for topic-partition secret",
        "Skip getting offsets for topic-partition orders-1",
    ]
