"""Plans of new offsets: times, durations, files, and the limits of the log."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.consumer_groups.members_view import MemberRow, assignment_text, print_members
from barnabas.cli.consumer_groups.plans import (
    GroupOffsets,
    datetime_ms,
    duration_ms,
    plans_as_csv,
    read_plans,
    strategy_of,
    within_log,
)
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_table
from barnabas.client.admin.types import (
    ConsumerGroupDescription,
    ListedOffset,
    MemberDescription,
    OffsetSpec,
)
from barnabas.client.types import Node, OffsetAndMetadata, TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Cluster:
    """Partitions with offsets 10 to 20, and a group that has committed 15 in the first."""

    def list_offsets(self, specs: dict[TopicPartition, int], *, timeout: float) -> dict[Any, ListedOffset]:
        offsets = {OffsetSpec.EARLIEST: 10, OffsetSpec.LATEST: 20, 1_000: 12, 2_000: -1}
        return {each: ListedOffset(offsets[spec], -1, 0) for each, spec in specs.items()}

    def list_consumer_group_offsets(self, group: str, *, timeout: float) -> dict[Any, OffsetAndMetadata]:
        assert group == "g"
        return {ONE: OffsetAndMetadata(15)}


def planned(*partitions: TopicPartition, **chosen: Any) -> dict[TopicPartition, int]:
    names = ("to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "to_datetime", "by_duration")
    options = argparse.Namespace(**{**dict.fromkeys(names), **chosen})
    cluster: Any = Cluster()
    return strategy_of(options)(GroupOffsets(cluster, 1.0, "g"), partitions or (ONE, TWO))


def test_seven_strategies() -> None:
    assert planned(to_earliest=True) == {ONE: 10, TWO: 10}
    assert planned(to_latest=True) == {ONE: 20, TWO: 20}
    assert planned(to_current=True) == {ONE: 15, TWO: 20}
    assert planned(to_offset=13) == {ONE: 13, TWO: 13}
    assert planned(ONE, shift_by=-2) == {ONE: 13}
    assert planned(to_datetime="1970-01-01T00:00:01.000") == {ONE: 12, TWO: 12}


def test_by_duration_counts_back_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.consumer_groups.plans.time.time", lambda: 1801.0)
    assert planned(by_duration="PT0H30M0S") == {ONE: 12, TWO: 12}


def test_an_offset_outside_of_the_log_becomes_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    cluster: Any = Cluster()
    assert within_log(GroupOffsets(cluster, 1.0, "g"), {ONE: 5, TWO: 25}) == {ONE: 10, TWO: 20}
    message = capsys.readouterr().err.splitlines()
    assert [line.partition(" offset for topic partition ")[::2] for line in message] == [
        ("Warn: New offset (5) is lower than earliest", "t-0. Value will be set to 10"),
        ("Warn: New offset (25) is higher than latest", "t-1. Value will be set to 20"),
    ]
    assert planned(ONE, shift_by=100) == {ONE: 20}


def test_a_time_after_the_last_record_is_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(ONE, to_datetime="1970-01-01T00:00:02.000Z") == {ONE: 20}
    assert (
        "Partition 0 from topic t is empty. Falling back to latest known offset." in capsys.readouterr().err
    )


def test_an_offset_that_is_not_committed_cannot_be_shifted() -> None:
    with pytest.raises(ToolError, match="Cannot shift offset for partition t-1 since there is no current"):
        planned(shift_by=1)


@pytest.mark.parametrize(
    "text, moment_ms",
    [
        ("2019-06-20T20:00:00.000", 1_561_060_800_000),
        ("2019-06-20T20:00:00.123Z", 1_561_060_800_123),
        ("2019-06-20T20:00:00.000+08:00", 1_561_032_000_000),
        ("2019-06-20T20:00:00.000+08", 1_561_032_000_000),
        ("2019-06-20T20:00:00.000-0130", 1_561_066_200_000),
    ],
)
def test_times(text: str, moment_ms: int) -> None:
    assert datetime_ms(text) == moment_ms


@pytest.mark.parametrize("text", ["2019-06-20", "2019-06-20 20:00:00", "2019-13-20T20:00:00.000", "soon"])
def test_invalid_times(text: str) -> None:
    with pytest.raises(ToolError, match="is not a time"):
        datetime_ms(text)


@pytest.mark.parametrize(
    "text, milliseconds",
    [
        ("PT0H30M0S", 1_800_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt10s", 10_000),
        ("-PT1M", -60_000),
        ("PT-1H", -3_600_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["P", "PT", "30m", "P1H", "PT1D", "P1DT", ""])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(ToolError, match="is not a duration"):
        duration_ms(text)


def test_plans_are_read_as_they_were_written(tmp_path: Path) -> None:
    plans = {"g": {ONE: 1, TWO: 2}, "h": {ONE: 3}}
    file = tmp_path / "plan.csv"
    file.write_text(plans_as_csv(plans, with_group=True))
    assert file.read_text() == "g,t,0,1\ng,t,1,2\nh,t,0,3\n"
    assert read_plans(file, ["g", "h"]) == plans
    file.write_text(plans_as_csv({"g": plans["g"]}, with_group=False) + "\n")
    assert read_plans(file, ["g"]) == {"g": plans["g"]}


@pytest.mark.parametrize("line, groups", [("t,0,1", ["g", "h"]), ("t,zero,1", ["g"]), ("t,0", ["g"])])
def test_the_error_for_an_invalid_line_names_it(tmp_path: Path, line: str, groups: list[str]) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"\n{line}\n")
    with pytest.raises(ToolError, match=r"plan\.csv, line 2: "):
        read_plans(file, groups)


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([["A", "B", "C"], ["long cell", "overflow", "end"]], [3, -4, 0])
    assert capsys.readouterr().out == "A         B    C\nlong cell overflow end\n"


def test_an_assignment() -> None:
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert assignment_text(partitions) == "a:2,10;b:0"
    assert assignment_text([]) == "-"


def test_a_group_that_is_moving_to_the_new_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    here = frozenset({ONE})
    members = tuple(
        MemberDescription(name, None, "client", "/host", here, here, 3, is_upgraded=upgraded)
        for name, upgraded in (("new", True), ("old", False))
    )
    node = Node(1, "host", 9092)
    group = ConsumerGroupDescription("g", "consumer", "Stable", "consumer", "uniform", members, node, 4, 4)
    print_members([MemberRow(group, member) for member in members], True)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines[0][5:] == [
        *("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED")
    ]
    assert [line[5:] for line in lines[1:]] == [
        ["3", "t:0", "4", "t:0", "true"],
        ["3", "t:0", "4", "t:0", "false"],
    ]
