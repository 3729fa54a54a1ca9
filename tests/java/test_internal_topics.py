"""Kafka's formatters and dump-log read what our coordinators store in their topics."""

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.clients.client import numbered
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.consumers import ConsumerSetup
from tests.clients.transactional import ConfluentTransactional
from tests.java.conftest import Server
from tests.java.stocked import read_and_leave
from tests.java.tools import Shell, Tools

pytestmark = pytest.mark.java

OFFSETS = "__consumer_offsets"
STATES = "__transaction_state"
FORMATTERS = "org.apache.kafka.tools.consumer."
# Transaction states by their number in the log.
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 0, 1, 2, 4


class Entry(NamedTuple):
    """A record of an internal topic: its type, its key, and its value (None for a tombstone)."""

    kind: str
    key: dict[str, Any]
    value: dict[str, Any] | None


@pytest.fixture(scope="module")
def tools(coordinator: Server, shell: Shell) -> Tools:
    return Tools(coordinator.bootstrap, shell)


@pytest.fixture(scope="module")
def topic(coordinator: Server) -> str:
    """A topic that a classic group (static member), a consumer group and a transaction have used."""
    name = f"kept-{uuid.uuid4().hex[:8]}"
    bootstrap = coordinator.bootstrap
    ConfluentAdmin(bootstrap).create_topic(name)
    ConfluentClient(bootstrap).produce(name, numbered(20))
    read_and_leave(bootstrap, ConsumerSetup(f"{name}-classic", (name,), instance_id="fixed"), 20)
    read_and_leave(bootstrap, ConsumerSetup(f"{name}-consumer", (name,), protocol="consumer"), 20)
    producer = ConfluentTransactional(bootstrap, f"{name}-id")
    producer.begin()
    producer.send(name, b"value")
    producer.send_offsets(f"{name}-transactional", {(name, 0): 9})
    producer.commit()
    return name


def formatted(
    tools: Tools, topic: str, formatter: str, is_whole: Callable[[list[Entry]], bool]
) -> list[Entry]:
    """The records of the topic that the formatter prints.

    The tool ends when no record arrives for some time. On a busy machine that may be too early: then it is
    run again with a longer timeout."""
    command = ("kafka-console-consumer", "--topic", topic, "--from-beginning")
    command += ("--formatter", FORMATTERS + formatter)
    for timeout_ms in (3000, 10_000, 30_000):
        entries = parsed(tools(*command, "--timeout-ms", str(timeout_ms)))
        if is_whole(entries):
            return entries
    raise AssertionError(f"{formatter} shows only {entries}")


def parsed(output: str) -> list[Entry]:
    decoder = json.JSONDecoder()
    entries = []
    while output.strip():
        shown, end = decoder.raw_decode(output)
        value = shown["value"]
        entries.append(
            Entry(str(shown["key"]["type"]), shown["key"]["data"], None if value is None else value["data"])
        )
        output = output[end:]
    return entries


def dumped(tools: Tools, below: Path, topic: str, decoder: str) -> list[Entry]:
    """All records in the topic's segments, of every partition."""
    files = [path for path in below.rglob("*.log") if path.parent.name.rpartition("-")[0] == topic]
    names = ",".join(str(path) for path in sorted(files) if path.stat().st_size)
    output = tools.bare("kafka-dump-log", "--files", names, "--print-data-log", decoder)
    assert "isvalid: false" not in output
    entries = []
    for line in output.splitlines():
        if match := re.search(r" key: (\{.*?\}\}) payload: (.*)$", line):
            key = json.loads(match[1])
            value = None if match[2] == "<DELETE>" else json.loads(match[2])["data"]
            entries.append(Entry(key["type"], key["data"], value))
    return entries


def offsets_of(entries: list[Entry], group: str) -> list[dict[str, Any] | None]:
    return [entry.value for entry in entries if entry.kind == "1" and entry.key["group"] == group]


def generations_of(entries: list[Entry], group: str) -> list[dict[str, Any]]:
    """The generations of a classic group that had members."""
    own = [entry.value for entry in entries if entry.kind == "2" and entry.key["group"] == group]
    return [value for value in own if value and value["members"]]


def transactions_of(entries: list[Entry], transactional_id: str) -> list[dict[str, Any]]:
    own = [entry.value for entry in entries if entry.key["transactionalId"] == transactional_id]
    return [value for value in own if value]


def check_offsets(entries: list[Entry], topic: str) -> None:
    for protocol in ("classic", "consumer"):
        last = offsets_of(entries, f"{topic}-{protocol}")[-1]
        assert last is not None
        assert (last["offset"], last["leaderEpoch"], last["metadata"]) == (20, 0, "")
        assert last["commitTimestamp"] > 1_700_000_000_000
        assert len(last["topicId"]) == 22
    (in_transaction,) = offsets_of(entries, f"{topic}-transactional")
    assert in_transaction is not None
    assert in_transaction["offset"] == 9


def check_generation(generation: dict[str, Any]) -> dict[str, Any]:
    assert (generation["protocolType"], generation["protocol"], generation["generation"]) == (
        "consumer",
        "range",
        1,
    )
    (member,) = generation["members"]
    assert isinstance(member, dict)
    assert generation["leader"] == member["memberId"]
    assert member["memberId"].startswith("fixed-")
    assert (member["groupInstanceId"], member["clientId"]) == ("fixed", "rdkafka")
    assert (member["clientHost"], member["sessionTimeout"]) == ("/127.0.0.1", 6000)
    return member


def check_transactions(entries: list[Entry], topic: str) -> None:
    steps = transactions_of(entries, f"{topic}-id")
    states = [step["transactionStatus"] for step in steps]
    assert states == sorted(states)
    assert set(states) == {EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT}
    assert {step["transactionTimeoutMs"] for step in steps} == {60_000}
    assert len({step["producerId"] for step in steps}) == 1
    prepared = steps[states.index(PREPARE_COMMIT)]
    assert {part["topic"] for part in prepared["transactionPartitions"]} == {topic, OFFSETS}
    assert steps[0]["transactionStartTimestampMs"] == -1
    assert prepared["transactionStartTimestampMs"] > 1_700_000_000_000
    assert not steps[-1]["transactionPartitions"]


def test_offsets_formatter(tools: Tools, topic: str) -> None:
    groups = [f"{topic}-{kind}" for kind in ("classic", "consumer", "transactional")]
    entries = formatted(
        tools,
        OFFSETS,
        "OffsetsMessageFormatter",
        lambda entries: all(offsets_of(entries, group) for group in groups),
    )
    check_offsets(entries, topic)


def test_group_metadata_formatter(tools: Tools, topic: str) -> None:
    group = f"{topic}-classic"
    entries = formatted(
        tools,
        OFFSETS,
        "GroupMetadataMessageFormatter",
        lambda entries: bool(generations_of(entries, group)),
    )
    (generation,) = generations_of(entries, group)
    check_generation(generation)


def test_transaction_log_formatter(tools: Tools, topic: str) -> None:
    def is_whole(entries: list[Entry]) -> bool:
        steps = transactions_of(entries, f"{topic}-id")
        return bool(steps) and steps[-1]["transactionStatus"] == COMPLETE_COMMIT

    check_transactions(formatted(tools, STATES, "TransactionLogMessageFormatter", is_whole), topic)


def test_dump_log_of_offsets(tools: Tools, topic: str, coordinator: Server) -> None:
    entries = dumped(tools, coordinator.directory, OFFSETS, "--offsets-decoder")
    check_offsets(entries, topic)
    (generation,) = generations_of(entries, f"{topic}-classic")
    member = check_generation(generation)
    assert member["subscription"]["topics"] == [topic]
    assert member["assignment"]["assignedPartitions"] == [{"topic": topic, "partitions": [0]}]


def test_dump_log_of_a_consumer_group(tools: Tools, topic: str, coordinator: Server) -> None:
    """Kinds 3 to 8: group epoch, member, epoch of the target, a member's target and current assignment."""
    entries = dumped(tools, coordinator.directory, OFFSETS, "--offsets-decoder")
    own = [entry for entry in entries if entry.key.get("groupId") == f"{topic}-consumer"]
    first = {kind: next(entry.value for entry in own if entry.kind == kind) for kind in "35678"}
    last = {kind: [entry.value for entry in own if entry.kind == kind][-1] for kind in "35678"}
    epoch, member, target_epoch, target, current = (first[kind] or {} for kind in "35678")
    assert epoch["epoch"] == target_epoch["assignmentEpoch"] == current["memberEpoch"] > 0
    assert (member["clientId"], member["subscribedTopicNames"]) == ("rdkafka", [topic])
    # The null is written out: where the field is absent, Kafka takes the member for a classic one.
    assert member["classicMemberMetadata"] is None
    (share,) = target["topicPartitions"]
    (held,) = current["assignedPartitions"]
    assert share["partitions"] == held["partitions"] == [0]
    assert share["topicId"] == held["topicId"]
    assert held["assignmentEpochs"] == [current["memberEpoch"]]
    # The member left: its records are deleted, and the group has a new epoch.
    assert (last["5"], last["7"], last["8"]) == (None, None, None)
    assert (last["3"] or {})["epoch"] == epoch["epoch"] + 1


def test_dump_log_of_transactions(tools: Tools, topic: str, coordinator: Server) -> None:
    check_transactions(dumped(tools, coordinator.directory, STATES, "--transaction-log-decoder"), topic)
