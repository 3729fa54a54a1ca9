"""Kafka's tools for security, features and replicas: what they print on a broker without security."""

import json
import re
import uuid
from pathlib import Path

import pytest
from tests.clients.confluent_client import ConfluentAdmin
from tests.java.tools import Shell, Tools

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def tools(bootstrap: str, shell: Shell) -> Tools:
    return Tools(bootstrap, shell)


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    name = f"unsecured-{uuid.uuid4().hex[:8]}"
    ConfluentAdmin(bootstrap).create_topic(name, 2)
    return name


def test_acls(tools: Tools) -> None:
    assert "No Authorizer is configured" in tools.refused("kafka-acls", "--list")


def test_quotas_and_credentials(tools: Tools) -> None:
    for entity in ("users", "clients", "ips"):
        described = tools("kafka-configs", "--describe", "--entity-type", entity)
        assert described.strip() == ""


def test_features(tools: Tools) -> None:
    described = tools("kafka-features", "describe")
    for feature, level in (("group.version", 1), ("transaction.version", 2)):
        assert re.search(rf"Feature: {feature}\s.*FinalizedVersionLevel: {level}\s", described)
    upgrade = ("upgrade", "--dry-run", "--feature", "transaction.version=2")
    assert "transaction.version" in tools("kafka-features", *upgrade)
    assert "only supports versions 0-2" in tools.refused(
        "kafka-features", *upgrade[:-1], "transaction.version=3"
    )


def test_elections(tools: Tools, topic: str) -> None:
    one = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    printed = tools("kafka-leader-election", *one)
    assert f"Valid replica already elected for partitions {topic}-0" in printed
    tools("kafka-leader-election", "--election-type", "unclean", "--all-topic-partitions")


def test_reassignments(tools: Tools, topic: str, tmp_path: Path) -> None:
    assert tools("kafka-reassign-partitions", "--list").strip() == "No partition reassignments found."
    plan = tmp_path / "plan.json"
    partitions = [{"topic": topic, "partition": index, "replicas": [1]} for index in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    started = tools("kafka-reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignments" in started
    verified = tools("kafka-reassign-partitions", "--verify", "--reassignment-json-file", str(plan))
    assert f"Reassignment of partition {topic}-0 is completed." in verified
