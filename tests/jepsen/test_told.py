"""What clients were told during a part of a run, found in a history that is written by hand."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.jepsen.availability import OWN_END
from tests.jepsen.history import Recorder
from tests.jepsen.told import acknowledged, failures, rebalances, send_seconds

from barnabas.ids import TopicPartition

PLACE, OTHER = TopicPartition("events", 0), TopicPartition("events", 1)


@pytest.fixture
def stage(tmp_path: Path) -> Any:
    return SimpleNamespace(directory=tmp_path)


@pytest.fixture
def recorder(tmp_path: Path) -> Any:
    with Recorder(tmp_path / "history-1.jsonl") as recorder:
        yield recorder


def send(recorder: Recorder, value: int, outcome: str = "ok", place: TopicPartition = PLACE) -> None:
    recorder.invoke(1, "send", [["send", str(place), value]])
    recorder.complete(1, outcome, [["send", str(place), [value, value]]])


def test_records_count_that_were_sent_and_acknowledged_in_the_time(stage: Any, recorder: Recorder) -> None:
    send(recorder, 1)
    begin = time.monotonic()
    send(recorder, 2)
    send(recorder, 3, place=OTHER)
    send(recorder, 4, "unknown")
    end = time.monotonic()
    send(recorder, 5)
    (found,) = acknowledged(stage, [PLACE], begin, end)
    assert found == "2 at offset 2 of events-0, to process 1"
    assert len(acknowledged(stage, [PLACE, OTHER], 0)) == 4
    assert len(send_seconds(stage, begin)) == 3


def test_a_send_that_began_before_the_time_does_not_count(stage: Any, recorder: Recorder) -> None:
    recorder.invoke(1, "send", [["send", str(PLACE), 1]])
    begin = time.monotonic()
    recorder.complete(1, "ok", [["send", str(PLACE), [0, 1]]])
    assert acknowledged(stage, [PLACE], begin) == []


def test_what_fails_counts_unless_a_client_wanted_it(stage: Any, recorder: Recorder) -> None:
    begin = time.monotonic()
    send(recorder, 1)
    send(recorder, 2, "unknown")
    recorder.invoke(1, "txn", [["send", str(PLACE), 3]])
    recorder.complete(1, "fail", None, OWN_END)
    recorder.invoke(1, "commit", [["commit", "group", {}]])
    recorder.complete(1, "fail", None, "no")
    assert len(failures(stage, ["send", "txn"], begin)) == 1
    assert len(failures(stage, ["send", "txn", "commit"], begin)) == 2
    # An operation that goes on has not failed.
    recorder.invoke(2, "send", [["send", str(PLACE), 4]])
    assert len(failures(stage, ["send"], begin)) == 1


def test_rebalances(stage: Any, recorder: Recorder) -> None:
    for found in ([["poll", {}]], [["rebalance", [str(PLACE)]], ["poll", {}]]):
        recorder.invoke(1, "poll", [["poll"]])
        recorder.complete(1, "ok", found)
    assert len(rebalances(stage, 0)) == 1
    assert rebalances(stage, time.monotonic()) == []
