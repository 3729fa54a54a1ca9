"""An audit finds deliberate damage, and nothing in a log without damage."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.topics import Topics

from barnabas.cli.main import main
from barnabas.records.batch import read_header
from barnabas.records.builder import build_batch, read_records, rebuild_batch
from barnabas.spark.jobs import segments
from barnabas.spark.jobs.audit import Checks, DirectoryLog, Report, TopicLog, audit
from barnabas.spark.jobs.clients import JobError
from barnabas.spark.jobs.segment_indexes import check_indexes
from barnabas.spark.jobs.segment_records import SegmentRecords
from barnabas.spark.settings import Topics as Wanted
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME = 1_700_000_000_000


def batch(base: int, count: int, *, key: bytes = b"k", time: int = TIME, **fields: int | bool) -> bytearray:
    records = [(time + number, key, b"%d" % (base + number), ()) for number in range(count)]
    return build_batch(records, base_offset=base, **fields)  # type: ignore[arg-type]


def segment(directory: Path, base: int, *batches: bytearray) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base:020}.log"
    path.write_bytes(b"".join(batches))
    return path


def kinds(report: Report) -> set[tuple[int, str, int | None, int]]:
    return {(each.partition, each.check, each.offset, each.amount) for each in report.findings}


def test_a_whole_topic(spark: "SparkSession", broker: Broker, topics: Topics, topic: str) -> None:
    topics.numbers(topic, 0, 100)
    topics.put_in_transaction(topic, [b"100", b"101"], commits=True)
    topics.put_in_transaction(topic, [b"102"], commits=False)
    topics.put(topic, [b"7"], timestamp=TIME)
    log = TopicLog({"bootstrap.servers": broker.bootstrap}, Wanted((topic,)), tasks_min=3)
    report = audit(spark, log)
    first, second = report.partitions
    assert (first.first, first.last, first.records, first.markers) == (0, 105, 104, 2)
    assert (first.missing, first.compacted, first.repeated, first.backwards) == (0, 0, 0, 1)
    assert (second.first, second.records) == (None, 0), "nothing was written to it"
    assert report.faults == 0
    assert [each.check for each in report.findings] == ["time"]


def test_what_readers_of_records_see(
    spark: "SparkSession", broker: Broker, topics: Topics, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2, 2, 5, 4):
        topics.put(topic, [b'{"v":{"n":%d}}' % number], key=b"a", headers=[("n", b"%d" % number)])
    topics.put(topic, [b"{}"], key=b"b")
    arguments = ["audit", "--bootstrap-server", broker.bootstrap, "--topic", topic]
    assert main([*arguments, "--duplicates", "--sequence-field", "$.v.n", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["faults"] == 3
    assert [(each["check"], each["offset"], each["is_wrong"]) for each in printed["findings"]] == [
        ("duplicate", 1, True),
        ("key-order", 2, True),
        ("key-order", 4, True),
        ("no-number", 5, False),
    ]
    assert "key a: 4.0 follows 5.0" in printed["findings"][2]["detail"]
    assert main(arguments) == 0
    assert "2 partitions, 6 records: nothing is wrong." in capsys.readouterr().out


def test_broken_segments(spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    producer = {"producer_id": 7, "producer_epoch": 0, "leader_epoch": 3}
    damaged = batch(20, 5, leader_epoch=3)
    damaged[-1] ^= 1
    segment(
        tmp_path / "orders-0",
        0,
        batch(0, 10, base_sequence=0, **producer),
        batch(10, 5, base_sequence=10, **producer),
        batch(15, 5, base_sequence=10, **producer),
        damaged,
    )
    segment(tmp_path / "orders-0", 25, batch(25, 5, leader_epoch=2), batch(40, 2, leader_epoch=3))
    log = batch(0, 3), batch(3, 3)
    path = segment(tmp_path / "orders-1", 0, *log)
    path.with_suffix(".index").write_bytes((5).to_bytes(4) + (len(log[0]) + 1).to_bytes(4))
    segment(tmp_path / "other-0", 5, batch(5, 1), bytearray(b"rubbish"))
    report = audit(spark, DirectoryLog([tmp_path], ("orders",)), Checks(repeats=True))
    assert kinds(report) == {
        (0, "repeated", 15, 5),
        (0, "bytes", 20, 1),
        (0, "gap", 25, 5),
        (0, "epoch", 25, 1),
        (0, "gap", 40, 10),
        (0, "time", 10, 1),
        (0, "time", 15, 1),
        (0, "time", 25, 1),
        (0, "time", 40, 1),
        (1, "time", 3, 1),
        (1, "index", 5, 1),
        (0, "duplicate", 0, 1),
        (0, "duplicate", 1, 1),
        (0, "duplicate", 2, 1),
        (0, "duplicate", 3, 1),
        (0, "duplicate", 4, 1),
    }
    assert report.faults == 12, "six times the same record, of which five are printed"
    assert [each.missing for each in report.partitions] == [15, 0]
    assert main(["audit", "--log-dir", str(tmp_path), "--topic", "other"]) == 1
    printed = capsys.readouterr().out
    assert "other-0 at offset 6: 00000000000000000005.log: 7 bytes from position" in printed
    assert "1 partition, 1 record: 1 fault." in printed


def test_compaction_explains_what_is_not_there(spark: "SparkSession", tmp_path: Path) -> None:
    whole = batch(0, 10)
    thinned = rebuild_batch(
        read_header(whole), [each for each in read_records(whole) if each.offset in (3, 9)]
    )
    segment(tmp_path / "table-0", 0, thinned, batch(50, 1), batch(99, 1), batch(110, 1))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\ntable 0 100\n")
    report = audit(spark, DirectoryLog([tmp_path]))
    (table,) = report.partitions
    assert (table.records, table.compacted, table.missing) == (5, 8 + 40 + 48, 10)
    assert {each[1:3] for each in kinds(report) if each[1] != "time"} == {("gap", 110)}


def test_the_directory_of_a_broker_that_runs(
    spark: "SparkSession", broker: Broker, topics: Topics, topic: str
) -> None:
    topics.numbers(topic, 0, 500)
    topics.put_in_transaction(topic, [b"500"], commits=False)
    topics.put_in_transaction(topic, [b"500"], commits=True)
    report = audit(spark, DirectoryLog([broker.data_dir], (topic,)), Checks(repeats=True))
    assert (report.faults, report.findings) == (0, []), "an aborted record that is sent again is no repeat"
    assert [(each.records, each.markers) for each in report.partitions] == [(502, 2), (0, 0)]


def test_records_of_segments_are_cut_into_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow

    monkeypatch.setattr("barnabas.spark.jobs.segment_records.ROWS_MAX", 4)
    segment(tmp_path / "t-0", 0, batch(0, 9), batch(9, 3), batch(12, 1))
    paths = segments.segments_of([tmp_path], ())
    task = SegmentRecords(paths)
    batches = list(task(iter([pyarrow.record_batch([[0]], names=["id"])])))
    assert [each.num_rows for each in batches] == [4, 4, 4, 1]
    assert [offset for each in batches for offset in each.column("offset").to_pylist()] == list(range(13))


def test_indexes_that_agree_and_that_do_not(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000010.log"
    batches = {0: (14, 100), 80: (19, 90), 160: (24, 120)}
    entries = [(4).to_bytes(4) + (0).to_bytes(4), (14).to_bytes(4) + (160).to_bytes(4), bytes(8)]
    log.with_suffix(".index").write_bytes(b"".join(entries))
    times = [(100).to_bytes(8) + (4).to_bytes(4), (120).to_bytes(8) + (14).to_bytes(4)]
    log.with_suffix(".timeindex").write_bytes(b"".join(times))
    assert list(check_indexes(log, 10, batches)) == []
    log.with_suffix(".timeindex").write_bytes(times[1] + times[0])
    assert [fault[1] for fault in check_indexes(log, 10, batches)] == [14]
    assert [fault[1] for fault in check_indexes(log, 10, {0: (14, 99), 160: (24, 120)})] == [14]


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(JobError, match="There is no segment of orders there"):
        DirectoryLog([tmp_path], ("orders",))
    with pytest.raises(SystemExit):
        main(["audit", "--topic", "orders"])
    assert "one of the arguments --bootstrap-server" in capsys.readouterr().err.lower()
