"""The options of `barnabas topics`, and the combinations that it refuses."""

import pytest
from tests.unit.cli.parsing import parsed

from barnabas.cli.failures import ToolError
from barnabas.cli.topics.arguments import check
from barnabas.cli.topics.changing import assignment_of, configs_of, new_topic
from barnabas.client.admin import NewTopic


@pytest.mark.parametrize("action", ["list", "describe"])
def test_an_action_alone(action: str) -> None:
    assert check(parsed("topics", f"--{action}")) == action


@pytest.mark.parametrize(
    "arguments",
    [
        "--create --topic a --partitions 3 --replication-factor 1 --config a=b --config c=d --if-not-exists",
        "--create --topic a --replica-assignment 1:2,2:1",
        "--alter --topic a --partitions 3 --replica-assignment 1,1,1 --if-exists",
        "--delete --topic a --if-exists",
        "--list --exclude-internal --topic a.*",
        "--describe --under-replicated-partitions --under-min-isr-partitions",
        "--describe --topics-with-overrides --exclude-internal --json",
        "--describe --topic-id abc --if-exists --partition-size-limit-per-response 10",
    ],
)
def test_valid_combinations(arguments: str) -> None:
    check(parsed("topics", *arguments.split()))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--topic a", "exactly one action"),
        ("--create --list --topic a", "exactly one action"),
        ("--create", "--create needs --topic"),
        ("--delete", "--delete needs --topic"),
        ("--alter --topic a", "--alter needs --partitions"),
        ("--alter --topic a --partitions 2 --config a=b", "barnabas configs"),
        ("--list --partitions 3", "--partitions cannot be used with --list"),
        ("--delete --topic a --json", "--json cannot be used with --delete"),
        ("--alter --topic a --partitions 2 --replication-factor 2", "--replication-factor cannot"),
        ("--create --topic a --replica-assignment 1 --partitions 1", "cannot be used with --partitions"),
        (
            "--create --topic a --replica-assignment 1 --replication-factor 1",
            "cannot be used with --replication",
        ),
        ("--list --unavailable-partitions", "--unavailable-partitions cannot be used with --list"),
        ("--describe --at-min-isr-partitions --topics-with-overrides", "with --topics-with-overrides"),
        ("--list --if-exists", "--if-exists cannot be used with --list"),
        ("--delete --topic a --if-not-exists", "--if-not-exists cannot be used with --delete"),
        ("--delete --topic a --exclude-internal", "--exclude-internal cannot be used with --delete"),
        ("--describe --if-exists", "needs --topic or --topic-id"),
    ],
)
def test_invalid_combinations(arguments: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        check(parsed("topics", *arguments.split()))


def test_delete_config_is_accepted_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(parsed("topics", "--list", "--delete-config", "a")) == "list"
    assert "barnabas configs" in capsys.readouterr().err


def test_a_new_topic_uses_the_brokers_defaults() -> None:
    assert new_topic(parsed("topics", "--create", "--topic", "a")) == NewTopic("a", -1, -1, {}, {})
    full = ("--partitions", "3", "--replication-factor", "2", "--config", "x=1")
    assert new_topic(parsed("topics", "--topic", "a", *full)) == NewTopic("a", 3, 2, {"x": "1"}, {})
    assigned = parsed("topics", "--topic", "a", "--replica-assignment", "1:2,2:1")
    assert new_topic(assigned).assignments == {0: [1, 2], 1: [2, 1]}


@pytest.mark.parametrize("option", ["--partitions=0", "--replication-factor=0", "--replication-factor=40000"])
def test_invalid_numbers_of_partitions_and_replicas(option: str) -> None:
    with pytest.raises(ToolError, match=r"greater than 0|between 1 and 32767"):
        new_topic(parsed("topics", "--create", "--topic", "a", option))


@pytest.mark.parametrize(
    "text, message",
    [
        ("1:1", "may not contain duplicate entries: 1"),
        ("1:2,1", r"Partition 1 has different replication factor: \[1\]"),
        ("1,x", "must name brokers by number"),
        ("1,,1", "must name brokers by number"),
    ],
)
def test_invalid_assignments(text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        assignment_of(text)


def test_config_values_may_contain_equals_signs() -> None:
    assert configs_of(["a = b", "c=d=e"]) == {"a": "b", "c": "d=e"}


@pytest.mark.parametrize("pair", ["a", "=b", "a="])
def test_configs_need_a_key_and_a_value(pair: str) -> None:
    with pytest.raises(ToolError, match="KEY=VALUE"):
        configs_of([pair])
