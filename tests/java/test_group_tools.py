"""Kafka's tools for groups and transactions: kafka-consumer-groups, kafka-transactions, and a console
consumer in a group. All run in one JVM."""

import re
import uuid
from collections.abc import Iterator

import pytest
from tests.clients.client import numbered, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.consumers import ConsumerSetup
from tests.clients.members import Member, places_of, settle
from tests.clients.transactional import ConfluentTransactional
from tests.java.conftest import Server
from tests.java.tools import Shell, Tools

pytestmark = pytest.mark.java

GROUPS = "kafka-consumer-groups"
TRANSACTIONS = "kafka-transactions"
Row = dict[str, str]
# The first column of each table.
HEADS = {"GROUP", "TOPIC", "TransactionalId", "CoordinatorId", "ProducerId", "Topic"}


def table(output: str) -> list[Row]:
    """The rows of the last table that a tool printed, by column; tabs or spaces separate the columns."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    tabbed = "\t" in lines[0]
    cells = [line.split("\t") if tabbed else re.split(r" +", line.strip()) for line in lines]
    heads = [number for number, line in enumerate(cells) if line[0].strip() in HEADS]
    names = [cell.strip() for cell in cells[heads[-1]]]
    return [
        dict(zip(names, (cell.strip() for cell in line), strict=False)) for line in cells[heads[-1] + 1 :]
    ]


@pytest.fixture
def tools(coordinator: Server, shell: Shell) -> Tools:
    return Tools(coordinator.bootstrap, shell)


@pytest.fixture
def topic(coordinator: Server) -> str:
    """A topic of two partitions with twenty records in the first."""
    name = f"tools-{uuid.uuid4().hex[:8]}"
    ConfluentAdmin(coordinator.bootstrap).create_topic(name, 2)
    ConfluentClient(coordinator.bootstrap).produce(name, numbered(20))
    return name


@pytest.fixture
def members(coordinator: Server, topic: str) -> Iterator[dict[str, Member]]:
    """A static member of a classic group and a member of a consumer group, each with all partitions."""
    joined = {}
    for protocol, instance in (("classic", "fixed"), ("consumer", None)):
        setup = ConsumerSetup(f"{topic}-{protocol}", (topic,), instance_id=instance, protocol=protocol)
        joined[protocol] = Member("confluent-kafka", coordinator.bootstrap, setup)
    for member in joined.values():
        settle([member], places_of(topic, 2))
    yield joined
    for member in joined.values():
        member.leave()


def reset(tools: Tools, group: str, topic: str, *how: str) -> dict[str, str]:
    """The new offset of each partition, as the tool prints it."""
    output = tools(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, *how)
    return {row["PARTITION"]: row["NEW-OFFSET"] for row in table(output)}


def committed(tools: Tools, group: str) -> dict[str, str]:
    output = tools(GROUPS, "--describe", "--group", group)
    return {row["PARTITION"]: row["CURRENT-OFFSET"] for row in table(output)}


def test_list(tools: Tools, topic: str, members: dict[str, Member]) -> None:
    reset(tools, f"{topic}-empty", topic, "--to-earliest", "--execute")
    names = {f"{topic}-{kind}" for kind in ("classic", "consumer", "empty")}
    assert names <= set(tools(GROUPS, "--list").split())

    def listed(column: str, *filters: str) -> dict[str, str]:
        rows = table(tools(GROUPS, "--list", *filters))
        return {row["GROUP"].removeprefix(f"{topic}-"): row[column] for row in rows if row["GROUP"] in names}

    assert listed("STATE", "--state") == {"classic": "Stable", "consumer": "Stable", "empty": "Empty"}
    assert listed("STATE", "--state", "empty") == {"empty": "Empty"}
    assert listed("TYPE", "--type") == {"classic": "Classic", "consumer": "Consumer", "empty": "Classic"}
    assert listed("TYPE", "--type", "consumer") == {"consumer": "Consumer"}


def test_describe_offsets(tools: Tools, topic: str, members: dict[str, Member]) -> None:
    client = members["classic"]
    wait_until(lambda: len(client.received) == 20, "all is read")
    client.ask(lambda consumer: consumer.commit())
    rows = table(tools(GROUPS, "--describe", "--group", f"{topic}-classic", "--offsets", "--verbose"))
    read, other = sorted(rows, key=lambda row: row["PARTITION"])
    assert (read["LEADER-EPOCH"], read["CURRENT-OFFSET"]) == ("0", "20")
    assert (read["LOG-END-OFFSET"], read["LAG"]) == ("20", "0")
    assert read["CONSUMER-ID"].startswith("fixed-")
    assert (read["HOST"], read["CLIENT-ID"]) == ("/127.0.0.1", "rdkafka")
    assert (other["TOPIC"], other["PARTITION"], other["LOG-END-OFFSET"]) == (topic, "1", "0")
    everything = tools(GROUPS, "--describe", "--all-groups")
    assert f"{topic}-classic" in everything
    assert f"{topic}-consumer" in everything
    assert "GroupIdNotFoundException" in tools(GROUPS, "--describe", "--group", f"{topic}-absent")


def test_describe_members(tools: Tools, topic: str, members: dict[str, Member]) -> None:
    describe = ("--describe", "--members", "--verbose", "--group")
    (classic,) = table(tools(GROUPS, *describe, f"{topic}-classic"))
    assert classic["CONSUMER-ID"].startswith("fixed-")
    assert (classic["GROUP-INSTANCE-ID"], classic["#PARTITIONS"]) == ("fixed", "2")
    assert (classic["CURRENT-ASSIGNMENT"], classic["TARGET-ASSIGNMENT"]) == (f"{topic}:0,1", "-")
    (modern,) = table(tools(GROUPS, *describe, f"{topic}-consumer"))
    assert (modern["CURRENT-ASSIGNMENT"], modern["TARGET-ASSIGNMENT"]) == (f"{topic}:0,1", f"{topic}:0,1")
    assert modern["CURRENT-EPOCH"] == modern["TARGET-EPOCH"]
    assert int(modern["CURRENT-EPOCH"]) > 0


def test_describe_state(tools: Tools, topic: str, members: dict[str, Member], coordinator: Server) -> None:
    for kind, assignor in (("classic", "range"), ("consumer", "range")):
        output = tools(GROUPS, "--describe", "--state", "--group", f"{topic}-{kind}")
        expected = rf"{topic}-{kind} +{re.escape(coordinator.bootstrap)} +\(\d+\) +{assignor} +Stable +1"
        assert re.search(expected, output)


def test_a_live_group_is_left_alone(tools: Tools, topic: str, members: dict[str, Member]) -> None:
    group = f"{topic}-classic"
    of_group = ("--group", group, "--topic", topic)
    assert "only be reset if the group" in tools(
        GROUPS, "--reset-offsets", *of_group, "--to-earliest", "--execute"
    )
    members["classic"].ask(lambda consumer: consumer.commit())
    assert "GroupSubscribedToTopicException" in tools(GROUPS, "--delete-offsets", *of_group)
    for kind in members:
        assert "GroupNotEmptyException" in tools(GROUPS, "--delete", "--group", f"{topic}-{kind}")


def test_reset_offsets(tools: Tools, topic: str) -> None:
    group = f"{topic}-reset"
    assert reset(tools, group, topic, "--to-offset", "5", "--execute") == {"0": "5", "1": "0"}
    assert reset(tools, group, topic, "--to-latest", "--dry-run") == {"0": "20", "1": "0"}
    assert committed(tools, group) == {"0": "5", "1": "0"}
    assert reset(tools, group, f"{topic}:0", "--shift-by", "4", "--execute") == {"0": "9"}
    assert reset(tools, group, f"{topic}:0", "--shift-by", "-100", "--dry-run") == {"0": "0"}
    assert reset(tools, group, topic, "--to-datetime", "2020-01-01T00:00:00.000", "--dry-run") == {
        "0": "0",
        "1": "0",
    }
    assert reset(tools, group, f"{topic}:0", "--by-duration", "PT0S", "--dry-run") == {"0": "20"}
    assert reset(tools, group, topic, "--to-current", "--execute") == {"0": "9", "1": "0"}
    assert committed(tools, group) == {"0": "9", "1": "0"}
    exported = tools(GROUPS, "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--export")
    assert sorted(exported.split()) == [f"{topic},0,0", f"{topic},1,0"]


def test_delete_offsets_and_group(tools: Tools, topic: str) -> None:
    group = f"{topic}-gone"
    reset(tools, group, topic, "--to-latest", "--execute")
    (row,) = table(tools(GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0"))
    assert (row["TOPIC"], row["PARTITION"], row["STATUS"]) == (topic, "0", "Successful")
    assert committed(tools, group) == {"1": "0"}
    assert "was successful" in tools(GROUPS, "--delete", "--group", group)
    assert group not in tools(GROUPS, "--list").split()
    assert "GroupIdNotFoundException" in tools(GROUPS, "--delete", "--group", group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer_with_a_group(tools: Tools, topic: str, protocol: str) -> None:
    """Each run starts where the last one stopped: when the tool closes, it commits what it printed."""
    command = ("kafka-console-consumer", "--topic", topic, "--group", f"{topic}-console")
    command += ("--command-property", f"group.protocol={protocol}")
    first = tools(*command, "--from-beginning", "--max-messages", "5")
    assert first.splitlines() == [f"value {number}" for number in range(5)]
    assert tools(*command, "--max-messages", "2").splitlines() == ["value 5", "value 6"]
    assert committed(tools, f"{topic}-console")["0"] == "7"


def test_transactions(tools: Tools, topic: str, coordinator: Server) -> None:
    transactional_id = f"{topic}-id"
    where = ("--topic", topic, "--partition", "0")
    producer = ConfluentTransactional(coordinator.bootstrap, transactional_id)
    producer.begin()
    producer.send(topic, b"open")
    rows = {row["TransactionalId"]: row for row in table(tools(TRANSACTIONS, "list"))}
    listed = rows[transactional_id]
    assert listed["TransactionState"] == "Ongoing"
    (row,) = table(tools(TRANSACTIONS, "describe", "--transactional-id", transactional_id))
    assert (row["ProducerId"], row["CoordinatorId"]) == (listed["ProducerId"], listed["Coordinator"])
    assert (row["TransactionState"], row["TransactionTimeoutMs"]) == ("Ongoing", "60000")
    assert row["TopicPartitions"] == f"{topic}-0"
    active = {row["ProducerId"]: row for row in table(tools(TRANSACTIONS, "describe-producers", *where))}
    assert active[listed["ProducerId"]]["CurrentTransactionStartOffset"] == "20"
    assert table(tools(TRANSACTIONS, "find-hanging", *where)) == []
    pattern = ("list", "--transactional-id-pattern", f"{topic}-.d")
    assert [row["TransactionalId"] for row in table(tools(TRANSACTIONS, *pattern))] == [transactional_id]
    assert table(tools(TRANSACTIONS, *pattern, "--duration-filter", "3600000")) == []
    producer.commit()
    (row,) = table(tools(TRANSACTIONS, *pattern))
    assert row["TransactionState"] in ("PrepareCommit", "CompleteCommit")
    refused = tools.refused(TRANSACTIONS, "describe", "--transactional-id", f"{topic}-absent")
    assert "the ID could not be found" in refused


@pytest.mark.parametrize("how", ["abort", "forceTerminateTransaction"])
def test_open_transaction_is_ended(tools: Tools, topic: str, coordinator: Server, how: str) -> None:
    transactional_id = f"{topic}-id"
    producer = ConfluentTransactional(coordinator.bootstrap, transactional_id)
    producer.begin()
    producer.send(topic, b"open")
    where = ("--topic", topic, "--partition", "0")
    if how == "abort":
        tools(TRANSACTIONS, how, *where, "--start-offset", "20")
    else:
        tools(TRANSACTIONS, how, "--transactionalId", transactional_id)

    def is_over() -> bool:
        rows = table(tools(TRANSACTIONS, "describe-producers", *where))
        return all(row["CurrentTransactionStartOffset"] == "None" for row in rows)

    wait_until(is_over, "the transaction has its marker")
    ConfluentClient(coordinator.bootstrap).produce(topic, numbered(1, "after"))
    command = ("kafka-console-consumer", *where, "--offset", "0", "--isolation-level", "read_committed")
    shown = tools(*command, "--max-messages", "21").splitlines()
    assert shown == [*(f"value {number}" for number in range(20)), "after 0"]
