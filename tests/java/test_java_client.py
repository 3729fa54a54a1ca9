"""The Java producer, consumer and admin client: what they saw in each scenario."""

from typing import Any

import pytest
from tests.java.scenarios import Scenarios, result

pytestmark = pytest.mark.java

# The exact results. The Java code of each scenario is in src/judge/.
EXPECTED: dict[str, Any] = {
    "acks": {"offsets": {"0": [-1, -1], "1": [2, 3], "all": [4, 5]}, "read": 6},
    "headers": [
        {
            "key": None,
            "value": "ünïcode 鍵",
            "headers": [["twice", "first"], ["null", None], ["twice", "second"], ["", ""]],
        },
        {"key": "", "value": None, "headers": []},
    ],
    "idempotent": {
        "offsets": list(range(10)),
        "producers": 1,
        "epoch": 0,
        "lastSequence": 9,
        "openTransaction": False,
    },
    "too-large": {"failure": "RecordTooLargeException", "next": 0},
    "no-key-on-compacted": "InvalidRecordException",
    "auto-create": [0, 1, 2],
    "positions": {
        "end": 20,
        "beginning": 0,
        "from13": list(range(13, 20)),
        "beginningOffsets": 0,
        "endOffsets": 20,
        "lag": 0,
        "partitions": 1,
    },
    "offsets-for-times": {"-1": [0, 0], "10": [1, 10], "11": [2, 20], "31": None},
    "list-offsets": {
        "earliest": [0, -1, 0],
        "latest": [3, -1, 0],
        "maxTimestamp": [1, 900, 0],
        "forTimestamp": [1, 900, 0],
        "earliestLocal": [0, -1, 0],
    },
    "out-of-range": {"none": "OffsetOutOfRangeException", "earliest": [0, 1, 2, 3, 4]},
    "fetch-session": [10, 10, 10, 5, 5, 5],
    "long-poll": 1,
    "delete-records": {"low": 6, "beyond": "OffsetOutOfRangeException", "first": 6},
    "topic-life": {
        "partitions": 3,
        "replication": 1,
        "retention": "4242",
        "sameId": True,
        "leaders": 3,
        "isr": 1,
        "byId": True,
        "listed": True,
        "deleted": "UnknownTopicIdException",
        "deletedTwice": "UnknownTopicIdException",
    },
    "topic-errors": {
        "assignment": "InvalidReplicaAssignmentException",
        "config": "InvalidConfigurationException",
        "exists": "TopicExistsException",
        "name": "InvalidTopicException",
        "partitions": "InvalidPartitionsException",
        "replication": "InvalidReplicationFactorException",
        "absent": "UnknownTopicOrPartitionException",
        "describe": "UnknownTopicOrPartitionException",
        "shrink": "InvalidPartitionsException",
    },
    "validate-only": {"partitions": 4, "exists": False},
    "manual-assignment": 2,
    "create-partitions": 4,
    "recreated-topic": {"before": 5, "after": True},
    "incremental": {
        "appended": "delete,compact",
        "deleted": "604800000",
        "set": "99999",
        "subtracted": "compact",
    },
    "dynamic-broker": {
        "all": "15001",
        "one": "15002",
        "synonyms": [f"log.cleaner.backoff.ms={value}" for value in (15002, 15001, 15000)],
        "backToAll": "15001",
        "backToDefault": "15000",
    },
    "config-errors": {
        "value": "InvalidConfigurationException",
        "key": "InvalidConfigurationException",
        "append": "InvalidConfigurationException",
        "absent": "UnknownTopicOrPartitionException",
        "readOnly": "InvalidRequestException",
        "describe": "UnknownTopicOrPartitionException",
    },
    "config-resources": {"topic": True, "kinds": ["BROKER", "TOPIC"]},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_scenario(scenarios: Scenarios, name: str) -> None:
    assert result(scenarios, name) == EXPECTED[name]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codec(scenarios: Scenarios, codec: str) -> None:
    assert result(scenarios, f"codec-{codec}") == {
        "offsets": list(range(300)),
        "values": [f"key {number}=value {number}" for number in range(300)],
    }


def test_create_time(scenarios: Scenarios) -> None:
    seen = result(scenarios, "create-time")
    assert (seen["type"], seen["timestamp"], seen["leaderEpoch"]) == ("CreateTime", 1_700_000_000_123, 0)


def test_log_append_time(scenarios: Scenarios) -> None:
    seen = result(scenarios, "log-append-time")
    assert seen["type"] == "LogAppendTime"
    assert 1_700_000_000_123 < seen["timestamp"] <= seen["now"]


def test_log_dirs(scenarios: Scenarios) -> None:
    seen = result(scenarios, "log-dirs")
    assert seen["size"] > 1000
    assert (seen["lag"], seen["future"], seen["error"]) == (0, False, "null")
    assert seen["total"] > seen["usable"] > 0


def test_cluster(scenarios: Scenarios, bootstrap: str) -> None:
    seen = result(scenarios, "cluster")
    assert seen["id"]
    assert seen["nodes"] == [bootstrap]
    assert seen["controllerIsANode"]
