"""topics and configs print what Kafka's tools print."""

import pytest
from tests.clients.client import wait_until
from tests.kafka_tools.conftest import Compare
from tests.kafka_tools.normalised import NAME

from barnabas import Admin

pytestmark = pytest.mark.java
UNCLEAN = "unclean.leader.election.enable"


def test_a_topic_from_its_creation_to_its_end(same: Compare, bootstrap: str, topic_name: str) -> None:
    made = same(
        "topics", "--create", "--topic", NAME, "--partitions", "2", "--config", "retention.ms=86400000"
    )
    assert made.lines == [f"Created topic {NAME}."]
    assert same("topics", "--create", "--topic", NAME, "--partitions", "2").code == 1
    assert same("topics", "--create", "--topic", NAME, "--if-not-exists").code == 0
    described = same("topics", "--describe", "--topic", NAME)
    assert len(described.lines) == 3
    assert same("topics", "--alter", "--topic", NAME, "--partitions", "4").code == 0
    assert same("topics", "--alter", "--topic", NAME, "--partitions", "3").code == 1
    assert len(same("topics", "--describe", "--topic", NAME).lines) == 5
    assert same("topics", "--delete", "--topic", NAME).code == 0
    with Admin(bootstrap_servers=bootstrap) as admin:
        # Kafka answers before the deletion is visible everywhere.
        wait_until(lambda: not any(topic_name in name for name in admin.list_topics()), "both are gone")
    assert same("topics", "--describe", "--topic", NAME).code == 1
    assert same("topics", "--delete", "--topic", NAME, "--if-exists").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "--list",
        "--list --exclude-internal",
        "--describe",
        "--describe --exclude-internal --topics-with-overrides",
        "--describe --topic {topic} --partition-size-limit-per-response 2",
        "--describe --topic {topic}|nothing,more",
        "--describe --topic {topic} --at-min-isr-partitions",
        "--describe --under-replicated-partitions",
        "--describe --under-min-isr-partitions",
        "--describe --unavailable-partitions",
        "--describe --topic nothing",
        "--describe --topic nothing --if-exists",
        "--describe --topic-id BAAAAAAAAAAAAAAAAAAAAA",
        "--create --topic bad*name",
        "--create --topic some --partitions 0",
        "--create --topic some --replication-factor 0",
        "--create --topic some --replication-factor 9",
        "--create --topic some --replica-assignment 1:1",
        "--create --topic some --replica-assignment 1:2,1",
    ],
)
def test_topics(same: Compare, topic: str, arguments: str) -> None:
    same("topics", *arguments.format(topic=topic).split())


@pytest.mark.parametrize(
    "arguments",
    [
        "--describe --topic {topic}",
        "--describe --topic {topic} --all",
        "--describe --entity-type topics --entity-name {topic}",
        "--describe --topic nothing",
        "--describe --broker 1 --all",
        "--describe --broker 7",
        "--describe --group nobody",
        "--describe --client-metrics none",
        "--alter --topic {topic} --add-config cleanup.policy=[compact,delete],segment.ms=7777778",
        "--alter --topic {topic} --delete-config segment.ms,retention.ms",
        "--alter --topic nothing --add-config segment.ms=7777778",
        "--alter --topic {topic} --add-config segment.ms=soon",
        "--alter --topic {topic} --add-config segment.ms",
        "--alter --topic {topic}",
        "--alter --entity-type topics --add-config segment.ms=1",
        "--describe --topic {topic} --entity-name x",
        "--describe --entity-type topcs",
        "--describe --broker one",
    ],
)
def test_configs(same: Compare, topic: str, arguments: str) -> None:
    same("configs", *arguments.format(topic=topic).split())


def test_configs_of_brokers_with_synonyms(same: Compare) -> None:
    everyone = ("--entity-type", "brokers", "--entity-default")
    one = ("--entity-type", "brokers", "--entity-name", "1")
    same("configs", *everyone, "--alter", "--add-config", f"{UNCLEAN}=true")
    same("configs", *one, "--alter", "--add-config", f"{UNCLEAN}=false")
    assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{UNCLEAN}=true" in str(same("configs", *everyone, "--describe"))
    described = str(same("configs", *one, "--describe"))
    assert f"DYNAMIC_BROKER_CONFIG:{UNCLEAN}=false, DYNAMIC_DEFAULT_BROKER_CONFIG:{UNCLEAN}=true" in described
    assert str(same("configs", "--entity-type", "brokers", "--describe")).count(f"  {UNCLEAN}=") == 2
    same("configs", *one, "--alter", "--delete-config", UNCLEAN)
    same("configs", *everyone, "--alter", "--delete-config", UNCLEAN)
    assert UNCLEAN not in str(same("configs", "--entity-type", "brokers", "--describe"))


def test_configs_of_a_group(same: Compare, topic_name: str) -> None:
    group = ("--group", f"group-{topic_name}")
    same("configs", *group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert len(same("configs", *group, "--describe").lines) == 2
    same("configs", *group, "--describe", "--all")
    everything = same("configs", "--entity-type", "groups", "--describe", ordered=False)
    assert len(everything.lines) >= 2
