"""Our tools compared with Kafka's own: the same arguments and the same broker; both must print the same.

BARNABAS_TEST_PEER=kafka uses a real Apache Kafka as the broker."""

import io
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout

import confluent_kafka
import pytest
from tests.java.conftest import Server, server_class
from tests.java.jvm import JavaMissing, class_path
from tests.java.tools import Shell
from tests.kafka_tools.normalised import NAME, Printed, normalised

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin import NewTopic
from barnabas.testing.broker import KEEP_OLD_RECORDS

CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "acls": "org.apache.kafka.tools.AclCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
}
# Tools whose address belongs to the tool, not to its action.
ADDRESS_FIRST = ("features",)

Compare = Callable[..., Printed]


@pytest.fixture(scope="session", autouse=True)
def jars() -> str:
    try:
        return class_path()
    except JavaMissing as reason:
        pytest.fail(str(reason), pytrace=False)


@pytest.fixture(scope="session")
def server(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = server_class()(tmp_path_factory.mktemp("compared"), KEEP_OLD_RECORDS)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture(scope="session")
def shell(jars: str) -> Iterator[Shell]:
    """One JVM for all of Kafka's tools."""
    running = Shell()
    yield running
    running.close()


@pytest.fixture
def topic_name() -> str:
    return f"compared-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(bootstrap: str, topic_name: str) -> str:
    """A topic with three partitions, two of which have records, and one setting."""
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic_name, 3, 1, {"segment.ms": "7777777"})])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for partition, count in ((0, 10), (1, 5)):
        for number in range(count):
            producer.produce(topic_name, b"value", partition=partition, timestamp=1_700_000_000_000 + number)
    assert producer.flush(20) == 0
    return topic_name


@pytest.fixture
def same(bootstrap: str, topic_name: str, shell: Shell) -> Compare:
    """same("topics", "--list") runs both tools; output and exit status must be equal, and are returned.

    NAME in an argument becomes a different topic for each tool, since some commands cannot run twice."""

    def same(command: str, *arguments: str, ordered: bool = True) -> Printed:
        address = ["--bootstrap-server", bootstrap]
        words = [*address, *arguments] if command in ADDRESS_FIRST else [*arguments, *address]

        def own(which: str) -> list[str]:
            return [word.replace(NAME, f"{topic_name}-{which}") for word in words]

        java = shell(CLASSES[command], *own("java"))
        code, out, err = run_ours([command, *own("ours")])
        theirs = Printed(java.returncode, normalised(java.stdout, f"{topic_name}-java"))
        ours = Printed(code, normalised(out, f"{topic_name}-ours"))
        if not ordered:
            # Kafka's tool prints the entries of a hash map.
            ours, theirs = (each._replace(lines=sorted(each.lines)) for each in (ours, theirs))
        assert ours == theirs, f"{err}\n{java.stderr}"
        return ours

    return same


def run_ours(words: Sequence[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()
