"""consumer-groups against a broker."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.types import TopicPartition

Tool = Callable[..., Ran]
START_MS = 1_700_000_000_000
OFFSET_HEADERS = [
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
]


@pytest.fixture
def topic(bootstrap: str, admin: barnabas.Admin, topic_name: str) -> str:
    """Partitions 0 and 1 with ten records each, a second apart."""
    admin.create_topics([NewTopic(topic_name, partitions=2, configs={"retention.ms": "-1"})])
    with barnabas.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(20):
            producer.send(
                topic_name, b"%d" % number, partition=number % 2, timestamp=START_MS + number // 2 * 1000
            )
    return topic_name


@pytest.fixture
def group(admin: barnabas.Admin, topic: str) -> str:
    """A group without members that has read a little."""
    name = f"of-{topic}"
    admin.alter_consumer_group_offsets(name, {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 10})
    return name


@pytest.fixture
def tool(run: Run, bootstrap: str) -> Tool:
    def tool(*arguments: str) -> Ran:
        return run("consumer-groups", "--bootstrap-server", bootstrap, *arguments)

    return tool


@contextmanager
def member(bootstrap: str, group: str, topic: str, **settings: str) -> Iterator[None]:
    """A member that polls until the block ends; the block begins when it has partitions."""
    has_partitions, ended = threading.Event(), threading.Event()

    def poll() -> None:
        with barnabas.Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id="reader",
            enable_auto_commit="false",
            **settings,
        ) as consumer:
            consumer.subscribe([topic])
            while not ended.is_set():
                consumer.poll(0.1)
                if consumer.assignment():
                    has_partitions.set()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert has_partitions.wait(60)
        yield
    finally:
        ended.set()
        thread.join()


def committed(admin: barnabas.Admin, group: str) -> dict[int, int]:
    return {each.partition: place.offset for each, place in admin.list_consumer_group_offsets(group).items()}


# ---- listing and describing


def test_groups_are_listed(tool: Tool, group: str) -> None:
    assert group in tool("--list").lines
    by_state = tool("--list", "--state").lines
    assert by_state[0].split() == ["GROUP", "STATE"]
    assert [group, "Empty"] in [line.split() for line in by_state]
    both = tool("--list", "--state", "empty, stable", "--type", "Classic").lines
    assert both[0].split() == ["GROUP", "TYPE", "STATE"]
    assert [group, "Classic", "Empty"] in [line.split() for line in both]
    assert group not in tool("--list", "--state", "Stable").out
    assert group not in tool("--list", "--type", "consumer").out
    assert {"group": group, "type": "Classic", "state": "Empty", "isSimple": True} in json.loads(
        tool("--list", "--json").out
    )


def test_offsets_and_lag(tool: Tool, group: str, topic: str) -> None:
    ran = tool("--describe", "--group", group)
    assert ran.code == 0
    assert ran.err == f"\nConsumer group '{group}' has no active members.\n"
    assert [line.split() for line in ran.lines] == [
        [],
        [
            "GROUP",
            "TOPIC",
            "PARTITION",
            "CURRENT-OFFSET",
            "LOG-END-OFFSET",
            "LAG",
            "CONSUMER-ID",
            "HOST",
            "CLIENT-ID",
        ],
        [group, topic, "0", "3", "10", "7", "-", "-", "-"],
        [group, topic, "1", "10", "10", "0", "-", "-", "-"],
    ]
    assert "LEADER-EPOCH" in tool("--describe", "--group", group, "--offsets", "--verbose").lines[1]
    first, second = json.loads(tool("--describe", "--group", group, "--json").out)
    assert (first["currentOffset"], first["logEndOffset"], first["lag"]) == (3, 10, 7)
    assert second["partition"] == 1 and second["consumerId"] is None


def test_offsets_of_a_deleted_topic(tool: Tool, admin: barnabas.Admin, group: str, topic: str) -> None:
    admin.create_topics([NewTopic(f"{topic}-gone", partitions=1)])
    admin.alter_consumer_group_offsets(group, {TopicPartition(f"{topic}-gone", 0): 0})
    admin.delete_topics([f"{topic}-gone"])
    # Its offsets are deleted a little later. The others are shown before and after that.
    shown = tool("--describe", "--group", group)
    assert shown.code == 0
    assert [group, topic, "1", "10", "10", "0"] in [line.split()[:6] for line in shown.lines]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_state(tool: Tool, bootstrap: str, group: str, topic: str, protocol: str) -> None:
    name = f"{group}-{protocol}"
    with member(bootstrap, name, topic, group_protocol=protocol, group_instance_id="mine"):
        # The group becomes stable after its member has its partitions.
        deadline = time.monotonic() + 60
        while "Stable" not in (state := tool("--describe", "--group", name, "--state")).out:
            assert time.monotonic() < deadline, state
        offsets = tool("--describe", "--group", name)
        members = tool("--describe", "--group", name, "--members", "--verbose").lines
        states = tool("--describe", "--group", name, "--state", "--verbose").lines
        (as_json,) = json.loads(tool("--describe", "--group", name, "--members", "--json").out)
        refused = tool("--reset-offsets", "--group", name, "--topic", topic, "--to-latest", "--execute")
        not_deleted = tool("--delete", "--group", name)
    assert [line.split()[2:6] for line in offsets.lines[2:]] == [["0", "-", "10", "-"], ["1", "-", "10", "-"]]
    assert offsets.lines[2].split()[-1] == "reader"
    assert members[1].split()[:6] == [
        "GROUP",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
    ]
    cells = members[2].split()
    assert cells[2] == "mine" and cells[4:6] == ["reader", "2"]
    both = f"{topic}:0,1"
    if protocol == "classic":
        assert cells[6:] == ["-", both, "-", "-"]
        assert states[2].split()[-5:] == ["range", "Stable", "-", "-", "1"]
        assert as_json["currentEpoch"] is None and as_json["isUpgraded"] is None
    else:
        assert cells[7] == both and cells[9] == both and cells[6] == cells[8]
        assert states[2].split()[-5:-3] == ["uniform", "Stable"]
        assert as_json["currentEpoch"] > 0 and as_json["isUpgraded"] is True
    assert as_json["assignment"] == [{"topic": topic, "partition": number} for number in (0, 1)]
    assert refused.code == 1
    assert (
        f"can only be reset if the group '{name}' is inactive, but the current state is Stable" in refused.err
    )
    assert not_deleted.code == 1 and f"* Group '{name}' could not be deleted due to: " in not_deleted.err


def test_a_group_that_does_not_exist(tool: Tool, group: str) -> None:
    ran = tool("--describe", "--group", "nobody", "--group", group)
    assert ran.code == 1
    assert "Error: Consumer group 'nobody' does not exist." in ran.err
    assert group in ran.out


def test_all_groups(tool: Tool, group: str, topic: str) -> None:
    assert [group, topic, "0", "3"] in [line.split()[:4] for line in tool("--describe", "--all-groups").lines]
    states = json.loads(tool("--describe", "--all-groups", "--state", "--json").out)
    mine = next(each for each in states if each["group"] == group)
    assert (mine["state"], mine["members"], mine["type"]) == ("Empty", 0, "Classic")


# ---- resetting

MIDDLE = "2023-11-14T22:13:25.000"  # five seconds after the first record


@pytest.mark.parametrize(
    "strategy, expected",
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 10}),
        (("--to-current",), {0: 3, 1: 10}),
        (("--to-offset", "4"), {0: 4, 1: 4}),
        (("--to-offset", "400"), {0: 10, 1: 10}),
        (("--shift-by", "-2"), {0: 1, 1: 8}),
        (("--shift-by", "2"), {0: 5, 1: 10}),
        (("--to-datetime", MIDDLE), {0: 5, 1: 5}),
        (("--by-duration", "P10000D"), {0: 0, 1: 0}),
        (("--by-duration", "PT0H30M0S"), {0: 10, 1: 10}),
    ],
)
def test_offsets_are_reset(
    tool: Tool,
    admin: barnabas.Admin,
    group: str,
    topic: str,
    strategy: tuple[str, ...],
    expected: dict[int, int],
) -> None:
    reset = ("--reset-offsets", "--group", group, "--all-topics", *strategy)
    plan = tool(*reset, "--dry-run")
    assert (plan.code, committed(admin, group)) == (0, {0: 3, 1: 10})
    assert [line.split() for line in plan.lines] == [
        [],
        ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"],
        *([group, topic, str(partition), str(offset)] for partition, offset in expected.items()),
    ]
    done = tool(*reset, "--execute")
    assert (done.code, done.out, committed(admin, group)) == (0, plan.out, expected)


def test_without_execute_only_a_plan(tool: Tool, admin: barnabas.Admin, group: str) -> None:
    ran = tool("--reset-offsets", "--group", group, "--all-topics", "--to-earliest")
    assert ran.code == 0
    assert ran.err.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert committed(admin, group) == {0: 3, 1: 10}


def test_some_partitions_of_a_topic(tool: Tool, admin: barnabas.Admin, group: str, topic: str) -> None:
    reset = ("--reset-offsets", "--group", group, "--to-offset", "1", "--execute")
    assert tool(*reset, "--topic", f"{topic}:1", "--json").code == 0
    assert committed(admin, group) == {0: 3, 1: 1}
    refused = tool(*reset, "--topic", f"{topic}:1,7")
    assert refused.code == 1 and f'The partitions "{topic}-7" do not exist' in refused.err
    assert tool(*reset, "--topic", f"{topic}:x").err.count("Invalid partition 'x' specified") == 1
    assert tool(*reset, "--topic", "no-such-topic").code == 1
    assert committed(admin, group) == {0: 3, 1: 1}


def test_a_reset_may_create_a_group(tool: Tool, admin: barnabas.Admin, topic: str) -> None:
    new = f"new-{topic}"
    assert tool("--reset-offsets", "--group", new, "--topic", topic, "--to-latest", "--execute").code == 0
    assert committed(admin, new) == {0: 10, 1: 10}
    shift = tool("--reset-offsets", "--group", f"{new}-er", "--topic", topic, "--shift-by", "1", "--execute")
    assert shift.code == 1
    assert (
        f"Cannot shift offset for partition {topic}-0 since there is no current committed offset" in shift.err
    )


def test_a_plan_is_exported_and_imported(
    tool: Tool, admin: barnabas.Admin, group: str, topic: str, tmp_path: Path
) -> None:
    plan = tool("--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--dry-run", "--export")
    assert plan.out == f"{topic},0,0\n{topic},1,0\n\n"
    file = tmp_path / "plan.csv"
    file.write_text(plan.out.replace(",1,0", ",1,6"))
    assert tool("--reset-offsets", "--group", group, "--from-file", str(file), "--execute").code == 0
    assert committed(admin, group) == {0: 0, 1: 6}
    file.write_text(f"{group},{topic},0,9\nother-{group},{topic},1,2\n")
    both = ("--group", group, "--group", f"other-{group}", "--group", f"third-{group}")
    ran = tool("--reset-offsets", *both, "--from-file", str(file), "--execute", "--export")
    assert ran.code == 1 and f"No reset plan for group third-{group} found" in ran.err
    assert ran.out == f"{group},{topic},0,9\nother-{group},{topic},1,2\n\n"
    assert committed(admin, group) == {0: 9, 1: 6} and committed(admin, f"other-{group}") == {1: 2}


# ---- deleting


def test_groups_are_deleted_and_failures_are_printed(tool: Tool, group: str) -> None:
    ran = tool("--delete", "--group", "nobody", "--group", group)
    assert ran.code == 1
    assert ran.out == f"These consumer groups were deleted successfully: '{group}'\n"
    assert "* Group 'nobody' could not be deleted due to: " in ran.err
    assert group not in tool("--list").lines


def test_a_group_is_deleted(tool: Tool, group: str) -> None:
    assert tool("--delete", "--group", group).out == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )
    assert json.loads(tool("--delete", "--group", group, "--json").out)[0]["error"] is not None


def test_offsets_are_deleted(tool: Tool, admin: barnabas.Admin, group: str, topic: str) -> None:
    ran = tool("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert ran.code == 0
    assert ran.lines[0] == f"Request succeeded for deleting offsets from group {group}."
    assert [line.split() for line in ran.lines[2:]] == [
        ["TOPIC", "PARTITION", "STATUS"],
        [topic, "1", "Successful"],
    ]
    assert committed(admin, group) == {0: 3}
    partly = tool("--delete-offsets", "--group", group, "--topic", "no-such-topic", "--topic", topic)
    assert partly.code == 1
    assert ["no-such-topic", "-", "Error:"] in [line.split()[:3] for line in partly.lines]
    assert committed(admin, group) == {}


# ---- usage


def test_a_regex_is_checked_without_a_broker(run: Run) -> None:
    valid = run("consumer-groups", "--validate-regex", "orders.*")
    assert (valid.code, valid.out) == (0, "The regular expression `orders.*` is valid.\n")
    wrong = run("consumer-groups", "--validate-regex", "orders(")
    assert wrong.code == 1 and wrong.out.startswith("The regular expression `orders(` is invalid: ")


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "Command must include exactly one action"),
        (("--list", "--describe"), "Command must include exactly one action"),
        (("--describe",), "Option --describe takes one of these options: --group, --all-groups."),
        (("--describe", "--group", "g", "--members", "--offsets"), "takes at most one of these options"),
        (("--describe", "--group", "g", "--state", "Stable"), "does not take a value for --state"),
        (
            ("--list", "--state", "Sleepy"),
            "Invalid state list 'Sleepy'. Valid states are: Preparing",
        ),
        (("--list", "--type", "odd"), "Invalid types list 'odd'. Valid types are: Classic, Consumer"),
        (("--delete", "--group", "g", "--topic", "t"), "topic-specific offset deletion"),
        (("--delete-offsets", "--group", "g"), "needs one --group and at least one --topic"),
        (
            ("--reset-offsets", "--group", "g", "--topic", "t"),
            "takes exactly one of these options",
        ),
        (("--reset-offsets", "--group", "g", "--to-latest"), "One of the reset scopes should be defined"),
        (
            ("--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run", "--execute"),
            "only accepts one of --execute and --dry-run",
        ),
        (
            ("--reset-offsets", "--group", "g", "--topic", "t", "--by-duration", "soon", "--dry-run"),
            "'soon' is not a duration",
        ),
    ],
)
def test_wrong_options(tool: Tool, arguments: tuple[str, ...], sentence: str) -> None:
    ran = tool(*arguments)
    assert ran.code == 1 and ran.out == ""
    assert sentence in ran.err
