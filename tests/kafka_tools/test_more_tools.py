"""groups, features, client-metrics, share-groups, streams-groups, streams-application-reset and the
verifiable clients do what Kafka's tools do."""

import json
import subprocess
from typing import Any

import pytest
from tests.clients.broker_process import PROGRAM
from tests.java.jvm import run_java
from tests.kafka_tools.conftest import Compare

import barnabas
from barnabas.client.admin import NewTopic

pytestmark = pytest.mark.java


@pytest.fixture
def groups(bootstrap: str, topic: str) -> None:
    """A group with members is not needed: offsets alone make one."""
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        offsets = {barnabas.TopicPartition(topic, 0): barnabas.OffsetAndMetadata(1)}
        admin.alter_consumer_group_offsets(f"{topic}-with-a-name-that-is-longer-than-a-column", offsets)


@pytest.mark.parametrize(
    "arguments",
    [
        "--list",
        "--list --consumer",
        "--list --group-type classic",
        "--list --group-type share",
        "--list --protocol x",
    ],
)
def test_groups(same: Compare, groups: None, arguments: str) -> None:
    same("groups", *arguments.split(), ordered=False)


@pytest.mark.parametrize("arguments", ["", "--list --group-type x", "--list --consumer --protocol x"])
def test_groups_with_wrong_options(same: Compare, arguments: str) -> None:
    assert same("groups", *arguments.split()).code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "describe",
        "upgrade --feature group.version=1",
        "upgrade --feature group.version=1 --dry-run",
        "upgrade --feature unknown=1",
        "upgrade --feature group.version",
        "upgrade",
        "disable --feature group.version",
        "downgrade --feature transaction.version=0 --dry-run",
    ],
)
def test_features(same: Compare, arguments: str) -> None:
    same("features", *arguments.split())


@pytest.mark.parametrize(
    "arguments", ["--list", "--describe", "--list --describe", "--alter --interval 100", "--delete"]
)
def test_client_metrics(same: Compare, arguments: str) -> None:
    same("client-metrics", *arguments.split())


@pytest.mark.parametrize("tool", ["share-groups", "streams-groups"])
def test_groups_that_do_not_exist(same: Compare, tool: str) -> None:
    assert same(tool, "--list").code == 0


@pytest.fixture
def application(bootstrap: str, topic: str) -> str:
    """The topics of an application of Kafka Streams, and its group."""
    name = f"app-{topic}"
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        internal = [f"{name}-counts-changelog", f"{name}-output"]
        admin.create_topics([NewTopic(each, 1, 1) for each in internal])
        admin.alter_consumer_group_offsets(
            name, {barnabas.TopicPartition(topic, 0): barnabas.OffsetAndMetadata(4)}
        )
    return name


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "--to-latest",
        "--to-offset 3",
        "--to-offset 99",
        "--shift-by -2",
        "--to-datetime 2023-11-14T22:13:20.004",
        "--to-datetime 2099-01-01T00:00:00.000",
        "--intermediate-topics {topic}-none",
    ],
)
def test_plans_for_streams(same: Compare, application: str, topic: str, arguments: str) -> None:
    options = f"--application-id {application} --input-topics {topic},none --dry-run {arguments}"
    same("streams-application-reset", *options.format(topic=topic).split(), ordered=False)


def test_a_reset_of_streams(same: Compare, bootstrap: str, application: str, topic: str) -> None:
    """Both tools reset it: the second one finds no internal topics left, so only the offsets are compared."""
    from tests.kafka_tools.conftest import run_ours

    options = ["--application-id", application, "--input-topics", topic, "--bootstrap-server", bootstrap]
    code, out, _ = run_ours(["streams-application-reset", *options])
    assert code == 0
    assert f"Deleting inferred internal topics [{application}-counts-changelog]" in out
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(application)
        assert {each.partition: at.offset for each, at in offsets.items()} == {0: 0, 1: 0, 2: 0}
        assert f"{application}-output" in admin.list_topics()
        assert f"{application}-counts-changelog" not in admin.list_topics()


def events(text: str) -> list[dict[str, Any]]:
    """What was printed, without what differs from run to run."""
    found = [json.loads(line) for line in text.splitlines()]
    for event in found:
        assert abs(event.pop("timestamp")) > 0
        event.pop("avg_throughput", None)
    # Kafka's consumer says that its process was asked to end, also if it ends by itself.
    return [event for event in found if event["name"] != "shutdown_requested"]


def ours(*arguments: str) -> str:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_verifiable_clients(bootstrap: str, topic_name: str) -> None:
    names = {"java": f"{topic_name}-java", "ours": f"{topic_name}-ours"}
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1, 1) for name in names.values()])
    printed = {}
    for who, topic in names.items():
        sending = f"--bootstrap-server {bootstrap} --topic {topic} --max-messages 7 --value-prefix 3"
        reading = (
            f"--bootstrap-server {bootstrap} --topic {topic} --group-id {topic} --max-messages 7 --verbose"
        )
        if who == "java":
            sent = run_java("org.apache.kafka.tools.VerifiableProducer", *sending.split()).stdout
            read = run_java("org.apache.kafka.tools.VerifiableConsumer", *reading.split()).stdout
        else:
            sent = ours("verifiable-producer", *sending.split())
            read = ours("verifiable-consumer", *reading.split())
        printed[who] = [events(each.replace(topic, "TOPIC")) for each in (sent, read)]
    assert printed["ours"] == printed["java"]
