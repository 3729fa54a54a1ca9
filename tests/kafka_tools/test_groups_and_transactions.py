"""consumer-groups and transactions print what Kafka's tools print about the same groups and transactions."""

import re
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.clients.broker_process import PROGRAM
from tests.java.tools import Shell

import barnabas
from barnabas.client.types import TopicPartition

pytestmark = pytest.mark.java

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
Same = Callable[..., list[str]]


@pytest.fixture(scope="module")
def shell(jars: str) -> Iterator[Shell]:
    running = Shell()
    yield running
    running.close()


@pytest.fixture
def same_groups(bootstrap: str, shell: Shell) -> Same:
    """Runs both tools, checks that standard output is equal, and returns its lines. Kafka's tool prints some
    rows in any order."""

    def same(*arguments: str, in_order: bool = True) -> list[str]:
        words = ["--bootstrap-server", bootstrap, *arguments]
        ours = subprocess.run(
            [PROGRAM, "consumer-groups", *words], capture_output=True, text=True, timeout=120
        )
        theirs = shell(GROUPS, *words)
        ordered = list if in_order else sorted
        assert ordered(ours.stdout.splitlines()) == ordered(theirs.stdout.splitlines()), (
            f"{ours.stderr}\n{theirs.stderr}"
        )
        assert ours.returncode == 0
        return ours.stdout.splitlines()

    return same


@pytest.fixture
def group(bootstrap: str, topic: str) -> str:
    name = f"group-{uuid.uuid4().hex[:8]}"
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.alter_consumer_group_offsets(name, {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 5})
    return name


def test_lists(same_groups: Same, group: str) -> None:
    for chosen in ((), ("--state",), ("--type",), ("--state", "--type"), ("--state", "empty,stable")):
        lines = same_groups("--list", *chosen, in_order=False)
        assert any(line.startswith(group) for line in lines)


@pytest.mark.parametrize(
    "shown",
    ["", "--offsets", "--verbose", "--members", "--members --verbose", "--state", "--state --verbose"],
)
def test_a_group_without_members(same_groups: Same, group: str, shown: str) -> None:
    lines = same_groups("--describe", "--group", group, *shown.split())
    assert lines[1].startswith("GROUP")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members(same_groups: Same, bootstrap: str, topic: str, protocol: str) -> None:
    name, settled = f"group-{uuid.uuid4().hex[:8]}", threading.Event()
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "group.protocol": protocol}
    settings |= {"client.id": "reader", "group.instance.id": "static-one", "enable.auto.commit": "false"}

    def poll() -> None:
        with barnabas.Consumer(
            {"bootstrap.servers": bootstrap, "client.id": "reader", **settings}
        ) as consumer:
            consumer.subscribe([topic])
            while not settled.is_set():
                consumer.poll(0.1)

    member = threading.Thread(target=poll)
    member.start()
    try:
        with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
            deadline = time.monotonic() + 60
            while not _is_stable(admin, name):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        for shown in ("", "--verbose", "--members", "--members --verbose", "--state", "--state --verbose"):
            lines = same_groups("--describe", "--group", name, *shown.split())
            assert name in lines[2]
    finally:
        settled.set()
        member.join()


def _is_stable(admin: barnabas.Admin, name: str) -> bool:
    listed = {group.group_id: group.state for group in admin.list_consumer_groups()}
    return listed.get(name) == "Stable"


@pytest.mark.parametrize(
    "strategy",
    [
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset 2",
        "--to-offset 1000",
        "--shift-by -2",
        "--to-datetime 2023-11-14T22:13:20.003",
        "--to-datetime 2023-11-15T06:13:20.003+08:00",
        "--by-duration P9000D",
    ],
)
def test_reset_plans(same_groups: Same, group: str, strategy: str) -> None:
    reset = ("--reset-offsets", "--group", group, "--all-topics", *strategy.split())
    lines = same_groups(*reset, "--dry-run", in_order=False)
    assert len(lines) == 4
    assert len(same_groups(*reset, "--dry-run", "--export", in_order=False)) == 3


def test_deletions(same_groups: Same, bootstrap: str, shell: Shell, topic: str) -> None:
    for number in range(2):
        with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
            admin.alter_consumer_group_offsets("to-delete", {TopicPartition(topic, 0): number})
        words = [
            "--bootstrap-server",
            bootstrap,
            "--group",
            "to-delete",
            "--delete-offsets",
            "--topic",
            topic,
        ]
        if number:
            first = shell(GROUPS, *words).stdout, shell(GROUPS, *words[:4], "--delete").stdout
        else:
            run = [PROGRAM, "consumer-groups"]
            second = (
                subprocess.run([*run, *words], capture_output=True, text=True).stdout,
                subprocess.run([*run, *words[:4], "--delete"], capture_output=True, text=True).stdout,
            )
    assert first == second


@pytest.mark.parametrize("expression", ["orders.*", "orders(", "[a-", "a{2}"])
def test_regular_expressions(shell: Shell, expression: str) -> None:
    """The two tools explain in different words why an expression is wrong."""
    ours = subprocess.run(
        [PROGRAM, "consumer-groups", "--validate-regex", expression], capture_output=True, text=True
    )
    theirs = shell(GROUPS, "--validate-regex", expression)
    assert ours.stdout.partition(":")[0] == theirs.stdout.partition(":")[0]


# ---- transactions


@pytest.fixture
def open_transaction(bootstrap: str, topic: str) -> Iterator[str]:
    name = f"transaction-{uuid.uuid4().hex[:8]}"
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0)
        producer.flush()
        yield name
        producer.abort_transaction()


@pytest.mark.parametrize(
    "arguments",
    [
        "list",
        "list --transactional-id-pattern transaction-.*",
        "list --duration-filter 3600000",
        "describe --transactional-id {name}",
        "describe-producers --topic {topic} --partition 0",
        "describe-producers --topic {topic} --partition 2",
        "find-hanging --broker-id 1",
        "find-hanging --topic {topic} --max-transaction-timeout 0",
    ],
)
def test_transactions(
    bootstrap: str, shell: Shell, topic: str, open_transaction: str, arguments: str
) -> None:
    words = ["--bootstrap-server", bootstrap, *arguments.format(name=open_transaction, topic=topic).split()]
    ours = subprocess.run([PROGRAM, "transactions", *words], capture_output=True, text=True, timeout=120)
    theirs = shell(TRANSACTIONS, *words)
    assert _without_durations(ours.stdout) == _without_durations(theirs.stdout), ours.stderr
    assert ours.returncode == theirs.returncode == 0


def _without_durations(output: str) -> list[list[str]]:
    """The cells of each line, without the time for which a transaction has been open: it changes."""
    lines = [[cell.strip() for cell in line.split("\t")] for line in output.splitlines()]
    if "TransactionDurationMs" in lines[0]:
        column = lines[0].index("TransactionDurationMs")
        for line in lines[1:]:
            assert re.fullmatch(r"\d+", line[column])
            del line[column]
    return sorted(lines)
