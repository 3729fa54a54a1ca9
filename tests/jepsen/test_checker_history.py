"""Recording and reading histories, and the command that checks kept files."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.jepsen.checker import Kind, Rules, check
from tests.jepsen.checker.__main__ import main
from tests.jepsen.history import HistoryError, Recorder, merge, read
from tests.jepsen.story import KEY, Story

ROOT = Path(__file__).parents[2]
EVENT = '{"time":%d,"process":%d,"type":"%s","function":"send","value":[["send","events-0",7]]}\n'


def record_one_value(path: Path, acknowledged_at: int = 0, read_at: int = 0) -> None:
    with Recorder(path) as recorder:
        recorder.invoke(1, "send", [["send", KEY, 41]])
        recorder.complete(1, "ok", [["send", KEY, [acknowledged_at, 41]]])
        recorder.invoke(2, "poll", [["poll"]])
        recorder.complete(2, "ok", [["poll", {KEY: [[read_at, 41]]}]])


# ---- recording


def test_what_is_recorded_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    record_one_value(path)
    history = merge([path])
    assert [operation.type for operation in history] == ["invoke", "ok", "invoke", "ok"]
    assert [operation.index for operation in history] == [0, 1, 2, 3]
    assert [operation.process for operation in history] == [1, 1, 2, 2]
    assert history[0].value == (("send", KEY, 41),)
    assert history[1].value == (("send", KEY, (0, 41)),)
    assert list(history[3].value[0][1][KEY]) == [(0, 41)]
    assert history[0].time < history[1].time < history[2].time < history[3].time
    assert str(history[3]) == f'3: process 2 ok poll [["poll", {{"{KEY}": [[0, 41]]}}]]'


def test_sends_in_flight_are_read_with_their_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with Recorder(path) as recorder:
        recorder.invoke(1, "send", [["send", KEY, 41], ["send", KEY, 42]])
        recorder.complete(1, "unknown", [["send", KEY, [0, 41], "ok"], ["send", KEY, 42]])
    assert merge([path])[1].value == (("send", KEY, (0, 41), "ok"), ("send", KEY, 42))


def test_a_completion_repeats_what_was_invoked(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with Recorder(path) as recorder:
        recorder.invoke(1, "txn", [["send", KEY, 41]], commit=False)
        recorder.complete(1, "unknown", error="timed out")
    completion = merge([path])[1]
    assert completion.value == (("send", KEY, 41),)
    assert (completion.commit, completion.error) == (False, "timed out")
    assert str(completion).endswith("to be aborted (timed out)")


def test_each_line_is_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with Recorder(path) as recorder:
        recorder.invoke(1, "poll", [["poll"]])
        assert len(list(read(path))) == 1
        recorder.crash(1)
        assert len(list(read(path))) == 2


def test_an_existing_history_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    record_one_value(path)
    with pytest.raises(FileExistsError):
        Recorder(path)


def test_a_process_does_one_operation_at_a_time(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        recorder.invoke(1, "poll", [["poll"]])
        with pytest.raises(HistoryError, match="before its last operation has ended"):
            recorder.invoke(1, "poll", [["poll"]])
        recorder.crash(1)
        with pytest.raises(HistoryError, match="has invoked none"):
            recorder.complete(1, "ok")
        recorder.invoke(1, "poll", [["poll"]])


def test_several_threads_use_one_recorder(tmp_path: Path) -> None:
    path, threads, rounds = tmp_path / "history.jsonl", 8, 200
    with Recorder(path) as recorder:

        def send(process: int) -> None:
            for number in range(rounds):
                recorder.invoke(process, "send", [["send", KEY, process * rounds + number]])
                recorder.complete(process, "unknown")

        running = [threading.Thread(target=send, args=(process,)) for process in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    lines = list(read(path))
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    assert check(lines).counts.unknown == threads * rounds


CHILD = """
import sys
from pathlib import Path
from tests.jepsen.history import Recorder

recorder, process = Recorder(Path(sys.argv[1])), int(sys.argv[2])
for number in range(10**9):
    recorder.invoke(process, "send", [["send", "events-0", number * 2 + process]])
    recorder.complete(process, "unknown")
    if number == 100:
        print("ready", flush=True)
"""


def test_processes_that_are_killed_leave_what_they_had_recorded(tmp_path: Path) -> None:
    paths = [tmp_path / "0.jsonl", tmp_path / "1.jsonl"]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, path, str(process)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for process, path in enumerate(paths)
    ]
    try:
        for child in children:
            assert child.stdout and child.stdout.readline() == "ready\n"
    finally:
        for child in children:
            child.kill()
            child.communicate()
    history = merge(paths)
    assert [operation.time for operation in history] == sorted(operation.time for operation in history)
    assert {operation.process for operation in history} == {0, 1}
    verdict = check(history)
    assert verdict.ok and verdict.counts.unknown > 200


# ---- reading


def test_files_are_merged_by_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(EVENT % (10, 1, "invoke") + EVENT % (40, 1, "ok"))
    other.write_text(EVENT % (20, 2, "invoke") + EVENT % (30, 2, "ok"))
    history = merge([one, other])
    assert [(operation.index, operation.time) for operation in history] == [
        (0, 10),
        (1, 20),
        (2, 30),
        (3, 40),
    ]


def test_part_of_a_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    whole, torn = EVENT % (1, 1, "invoke"), EVENT % (2, 1, "ok")
    for length in range(len(torn) - 1):
        path.write_text(whole + torn[:length])
        assert len(list(read(path))) == 1
    path.write_text(whole + torn[:-1])
    assert len(list(read(path))) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"time":1,"proc', "is not JSON"),
        ("[1,2]", "is no event"),
        ('{"time":1,"process":1,"type":"ok","function":"poll"}', "KeyError('value')"),
        ('{"time":1,"process":1,"type":"okay","function":"poll","value":[]}', "type is 'okay'"),
        ('{"time":1,"process":1,"type":"ok","function":"pull","value":[]}', "function is 'pull'"),
        (
            '{"time":1,"process":1,"type":"ok","function":"poll","value":[["pull"]]}',
            "micro-operation is 'pull'",
        ),
        ('{"time":1,"process":1,"type":"ok","function":"poll","value":7}', "is no event"),
        (
            '{"time":1,"process":1,"type":"ok","function":"poll","value":[["poll",{"k":[[1,2,3]]}]]}',
            "is no event",
        ),
        ('{"time":1,"process":1,"type":"ok","function":"send","value":[["send",7]]}', "is no event"),
        (
            '{"time":1,"process":1,"type":"ok","function":"send","value":[["send","k",[1,7],"perhaps"]]}',
            "outcome is ['perhaps']",
        ),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(EVENT % (1, 1, "invoke") + line + "\n" + EVENT % (2, 1, "ok"))
    with pytest.raises(HistoryError) as caught:
        merge([path])
    assert str(caught.value).startswith(f"{path}:2: ") and reason in str(caught.value)


# ---- histories that do not keep their own rules


def test_a_value_that_is_sent_twice_cannot_be_judged() -> None:
    story = Story()
    story.client().sends(1, at=0)
    story.client().sends(1, at=1)
    with pytest.raises(HistoryError, match="value 1"):
        story.verdict()


def test_a_completion_without_an_invocation_cannot_be_judged() -> None:
    story = Story()
    story.record(1, "ok", "poll", [("poll", {})])
    with pytest.raises(HistoryError, match="completion without its invocation"):
        story.verdict()


def test_two_operations_at_once_cannot_be_judged() -> None:
    story = Story()
    client = story.client()
    client.begins("poll", ("poll",))
    client.begins("poll", ("poll",))
    with pytest.raises(HistoryError, match="second operation"):
        story.verdict()


def test_a_crash_ends_what_the_client_was_doing() -> None:
    story = Story()
    client = story.client()
    client.begins("send", ("send", KEY, 1))
    client.crashes()
    client.polls((0, 1))
    assert story.kinds() == []
    assert story.verdict().counts.unknown == 1


# ---- the verdict and the command


def test_a_verdict_says_how_much_there_was_to_judge() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, outcome="unknown")
    writer.sends(3, outcome="fail")
    reader.polls((0, 1))
    verdict = story.verdict()
    assert verdict and verdict.ok
    counts = verdict.counts
    assert (counts.operations, counts.committed, counts.unknown, counts.aborted, counts.read) == (
        4,
        1,
        1,
        1,
        1,
    )
    assert str(verdict) == "4 operations; values: 1 committed, 1 aborted, 1 unknown, 1 read\nnothing found"


def test_a_verdict_shows_a_few_findings_of_each_kind() -> None:
    story = Story()
    writer, reader = story.clients(2)
    for value in range(100):
        writer.sends(value, at=value)
    reader.polls((99, 99))
    verdict = story.verdict(Rules(read_to_end=False))
    assert not verdict and not verdict.ok
    lines = str(verdict).splitlines()
    assert lines[1] == "found: 99 lost-write"
    assert "value 0 was acknowledged at offset 0" in lines[2]
    assert lines[3] == '    1: process 0 ok send [["send", "events-0", [0, 0]]]'
    assert lines[-1] == "and 94 more"
    assert len(lines) == 2 + 5 * 3 + 1


def test_long_operations_are_cut() -> None:
    story = Story()
    writer, reader = story.clients(2)
    for value in range(100):
        writer.sends(value, at=value)
    reader.polls(*((value, value) for value in range(1, 100)))
    assert all(len(line) <= 210 for line in str(story.verdict()).splitlines())


def test_the_command_checks_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, broken = tmp_path / "clean.jsonl", tmp_path / "broken.jsonl"
    record_one_value(clean)
    assert main([str(clean)]) == 0
    assert "nothing found" in capsys.readouterr().out
    record_one_value(broken, acknowledged_at=0, read_at=3)
    assert main([str(broken)]) == 1
    assert Kind.DUPLICATE in capsys.readouterr().out
    assert main([str(broken), "--not-idempotent"]) == 0


def test_the_command_has_a_word_for_each_rule(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with Recorder(path) as recorder:
        recorder.invoke(1, "send", [["send", KEY, 1]])
        recorder.complete(1, "ok", [["send", KEY, [9, 1]]])
        recorder.invoke(1, "txn", [["send", KEY, 2]], commit=False)
        recorder.complete(1, "ok", [["send", KEY, [4, 2]]])
        recorder.invoke(2, "poll", [["poll"]])
        recorder.complete(2, "ok", [["poll", {KEY: [[4, 2]]}]])
    words = ["--not-idempotent", "--read-uncommitted", "--not-read-to-end"]
    assert main([str(path), *words]) == 0
    for word in words:
        assert main([str(path), *(set(words) - {word})]) == 1, word


def test_the_command_names_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("nonsense\n")
    assert main([str(path)]) == 2
    assert f"{path}:1" in capsys.readouterr().err
    assert main([str(tmp_path / "missing")]) == 2
