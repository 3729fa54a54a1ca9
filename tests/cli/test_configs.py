"""`barnabas configs` against a real broker: Kafka's lines, synonyms in order of precedence, JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run

import barnabas
from barnabas.client.admin import NewTopic

UNCLEAN = "unclean.leader.election.enable"


class Configs:
    def __init__(self, run: Run, bootstrap: str) -> None:
        self._run = run
        self._bootstrap = bootstrap

    def __call__(self, *arguments: str) -> Ran:
        return self._run("configs", "--bootstrap-server", self._bootstrap, *arguments)


@pytest.fixture
def configs(run: Run, bootstrap: str) -> Configs:
    return Configs(run, bootstrap)


@pytest.fixture
def topic(bootstrap: str, topic_name: str) -> str:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic_name, configs={"max.message.bytes": "5242880"})])
    return topic_name


@pytest.fixture
def clean_brokers(configs: Configs) -> Iterator[None]:
    yield
    for entity in (["--broker-defaults"], ["--broker", "1"]):
        assert configs("--alter", *entity, "--delete-config", UNCLEAN).code == 0


@pytest.mark.usefixtures("clean_brokers")
def test_settings_of_all_brokers_and_of_one(configs: Configs) -> None:
    """A value for one broker comes before the value for all brokers, and that before the default."""
    everyone = ("--entity-type", "brokers", "--entity-default")
    one = ("--entity-type", "brokers", "--entity-name", "1")
    changed_all = Ran(0, "Completed updating default config for brokers in the cluster.\n", "")
    changed_one = Ran(0, "Completed updating config for broker 1.\n", "")
    assert configs(*everyone, "--alter", "--add-config", f"{UNCLEAN}=true") == changed_all
    assert configs(*everyone, "--describe").lines == [
        "Default configs for brokers in the cluster are:",
        f"  {UNCLEAN}=true sensitive=false synonyms={{DYNAMIC_DEFAULT_BROKER_CONFIG:{UNCLEAN}=true}}",
    ]
    assert configs(*one, "--alter", "--add-config", f"{UNCLEAN}=false") == changed_one
    assert configs(*one, "--describe").lines == [
        "Dynamic configs for broker 1 are:",
        f"  {UNCLEAN}=false sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{UNCLEAN}=false, "
        f"DYNAMIC_DEFAULT_BROKER_CONFIG:{UNCLEAN}=true, DEFAULT_CONFIG:{UNCLEAN}=false}}",
    ]
    assert configs("--entity-type", "brokers", "--describe").out == (
        configs(*one, "--describe").out + configs(*everyone, "--describe").out
    )
    assert configs(*one, "--alter", "--delete-config", UNCLEAN) == changed_one
    assert configs(*one, "--describe").lines == ["Dynamic configs for broker 1 are:"]
    assert configs(*everyone, "--alter", "--delete-config", UNCLEAN) == changed_all
    assert configs(*everyone, "--describe").lines == ["Default configs for brokers in the cluster are:"]


def test_settings_of_a_topic(configs: Configs, topic: str) -> None:
    changed = configs(
        *("--entity-type", "topics", "--entity-name", topic, "--alter"),
        *("--add-config", "max.message.bytes=10485760,cleanup.policy=[compact,delete]"),
    )
    assert changed == Ran(0, f"Completed updating config for topic {topic}.\n", "")
    assert configs("--topic", topic, "--describe").lines == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  max.message.bytes=10485760 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "max.message.bytes=10485760, DEFAULT_CONFIG:message.max.bytes=1048588}",
    ]
    assert (
        configs("--topic", topic, "--alter", "--delete-config", "cleanup.policy,max.message.bytes").code == 0
    )
    assert configs("--topic", topic, "--describe").lines == [f"Dynamic configs for topic {topic} are:"]


def test_throttled_replicas_may_be_a_star(configs: Configs, topic: str) -> None:
    throttled = "leader.replication.throttled.replicas=*,follower.replication.throttled.replicas=*"
    assert configs("--topic", topic, "--alter", "--add-config", throttled).code == 0
    described = configs("--topic", topic, "--describe").out
    assert "  follower.replication.throttled.replicas=* sensitive=false" in described


def test_all_shows_defaults_and_static_settings(configs: Configs, topic: str) -> None:
    shown = configs("--topic", topic, "--describe", "--all")
    assert shown.lines[0] == f"All configs for topic {topic} are:"
    assert any(line.startswith("  segment.bytes=1073741824 ") for line in shown.lines)
    names = [line.split("=")[0] for line in shown.lines[1:]]
    assert names == sorted(names) and len(names) > 25
    broker = configs("--broker", "1", "--describe", "--all").out
    assert "group.initial.rebalance.delay.ms=0 sensitive=false synonyms={STATIC_BROKER_CONFIG:" in broker


def test_as_json(configs: Configs, topic: str) -> None:
    (described,) = json.loads(configs("--topic", topic, "--describe", "--json").out)
    assert (described["entityType"], described["entityName"]) == ("topics", topic)
    (entry,) = described["configs"]
    assert entry == {
        "name": "max.message.bytes",
        "value": "5242880",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "isSensitive": False,
        "isReadOnly": False,
        "synonyms": [
            {"name": "max.message.bytes", "value": "5242880", "source": "DYNAMIC_TOPIC_CONFIG"},
            {"name": "message.max.bytes", "value": "1048588", "source": "DEFAULT_CONFIG"},
        ],
    }
    assert json.loads(configs("--topic", f"{topic}-none", "--describe", "--json").out) == []


def test_every_topic_is_shown_without_a_name(configs: Configs, topic: str) -> None:
    lines = configs("--entity-type", "topics", "--describe").lines
    assert f"Dynamic configs for topic {topic} are:" in lines


def test_settings_of_a_group(configs: Configs, topic_name: str) -> None:
    group = f"group-{topic_name}"
    missing = f"The group '{group}' doesn't exist and doesn't have dynamic config.\n"
    assert configs("--group", group, "--describe") == Ran(0, missing, "")
    setting = "consumer.session.timeout.ms=50000"
    changed = configs("--group", group, "--alter", "--add-config", setting)
    assert changed == Ran(0, f"Completed updating config for group {group}.\n", "")
    header, line = configs("--group", group, "--describe").lines
    assert header == f"Dynamic configs for group {group} are:"
    assert line.startswith(f"  {setting} sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{setting}")
    assert header in configs("--entity-type", "groups", "--describe").lines


def test_levels_of_loggers(configs: Configs) -> None:
    shown = configs("--broker-logger", "1", "--describe").lines
    assert shown[0] == "Dynamic configs for broker-logger 1 are:"
    assert any(line.startswith("  barnabas=INFO sensitive=false ") for line in shown)


@pytest.mark.parametrize(
    "entity, message",
    [
        (("--topic", "nope"), "The topic 'nope' doesn't exist and doesn't have dynamic config.\n"),
        (("--broker", "7"), "The broker '7' doesn't exist and doesn't have dynamic config.\n"),
        (("--client-metrics", "m"), "The client-metric 'm' doesn't exist and doesn't have dynamic config.\n"),
    ],
)
def test_an_entity_that_does_not_exist_has_no_settings(
    configs: Configs, entity: tuple[str, str], message: str
) -> None:
    assert configs(*entity, "--describe") == Ran(0, message, "")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--alter", "--topic", "nope", "--add-config", "segment.ms=1"), "there is no topic 'nope'"),
        (("--describe", "--topic", "nope", "--all"), "there is no topic 'nope'"),
        (("--alter", "--broker-defaults", "--add-config", "log.cleaner.threads=none"), "log.cleaner.threads"),
        (("--alter", "--broker", "1", "--add-config", "broker.id=2"), "broker.id"),
        (("--describe", "--topic", "a", "--add-config", "a=1"), "can only be used with --alter"),
        (("--alter", "--topic", "a", "--add-config", "a=1", "--json"), "can only be used with --describe"),
        (("--describe", "--alter", "--topic", "a"), "exactly one action"),
    ],
)
def test_every_error_is_one_sentence(configs: Configs, arguments: tuple[str, ...], message: str) -> None:
    refused = configs(*arguments)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: ") and message in refused.err and refused.err.count("\n") == 1


def test_settings_from_a_file(configs: Configs, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "topic.properties"
    file.write_text("segment.ms=3600000\ncleanup.policy=compact,delete\n")
    assert configs("--topic", topic, "--alter", "--add-config-file", str(file)).code == 0
    described = configs("--topic", topic, "--describe").out
    assert "  cleanup.policy=compact,delete " in described and "  segment.ms=3600000 " in described


def test_bootstrap_controller_is_refused(run: Run) -> None:
    ran = run("configs", "--bootstrap-controller", "localhost:1", "--describe", "--topic", "a")
    assert ran.code == 1 and "--bootstrap-server" in ran.err


@pytest.mark.parametrize("written", [["--zookeeper", "zk:2181"], ["--zookeeper=zk:2181"]])
def test_the_error_for_zookeeper_names_the_option_to_use(run: Run, written: list[str]) -> None:
    ran = run("configs", *written, "--entity-type", "topics", "--entity-name", "transaction", "--alter")
    assert ran.code == 1
    assert "--bootstrap-server" in ran.err and ran.err.count("\n") == 1
