"""Kafka's dump-log reads the files that our broker wrote and finds no errors in them."""

import re
import signal
from pathlib import Path

import pytest
from tests.clients.client import CODECS
from tests.java.conftest import MakeServer, server_class
from tests.java.jvm import run_java
from tests.java.stocked import IDEMPOTENT, SEGMENTED, codec_topic, partition_directory, stock

pytestmark = pytest.mark.java


def dump_log(files: list[Path], *options: str) -> str:
    names = ",".join(str(path) for path in files)
    done = run_java("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Path:
    """The directory of a stopped broker whose topics were filled."""
    directory = tmp_path_factory.mktemp("dumped")
    server = server_class()(directory)
    server.start()
    try:
        stock(server.bootstrap)
    finally:
        server.stop()
    return directory


def test_every_segment_is_sound(files: Path) -> None:
    directory = partition_directory(files, SEGMENTED)
    segments = sorted(directory.glob("*.log"))
    assert len(segments) >= 4
    output = dump_log(segments, "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in output
    assert "position" in output
    offsets = [int(number) for number in re.findall(r"^\| offset: (\d+)", output, re.MULTILINE)]
    assert offsets == list(range(5000))
    assert "payload: value 4998" in output
    assert output.count("headerKeys: [number,null]") == 500


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_is_read(files: Path, codec: str) -> None:
    segments = sorted(partition_directory(files, codec_topic(codec)).glob("*.log"))
    output = dump_log(segments, "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in output
    batches = re.findall(r"compresscodec: (\w+)", output)
    assert set(batches) == {codec}
    assert len(re.findall(r"^\| offset: ", output, re.MULTILINE)) == 500


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes_agree_with_the_log(files: Path, kind: str) -> None:
    for topic in (SEGMENTED, *(codec_topic(codec) for codec in CODECS)):
        indexes = sorted(partition_directory(files, topic).glob(f"*.{kind}"))
        assert indexes
        output = dump_log(indexes, "--verify-index-only")
        assert "Mismatches" not in output
        assert "mismatch" not in output
        assert "Exception" not in output
        # Without the check the tool prints the entries; a log of megabytes must have some.
        entries = re.findall(r"^(?:offset|timestamp): \d+", dump_log(indexes), re.MULTILINE)
        assert len(entries) > (100 if topic == SEGMENTED else 3)


def test_index_sanity_check(files: Path) -> None:
    indexes = sorted(partition_directory(files, SEGMENTED).glob("*.index"))
    assert dump_log(indexes, "--index-sanity-check").count("passed sanity check") == len(indexes)


def test_producer_snapshot_is_read(files: Path) -> None:
    """A clean stop leaves a snapshot at the end of the log."""
    snapshots = sorted(partition_directory(files, IDEMPOTENT).glob("*.snapshot"))
    assert int(snapshots[-1].stem) == 30
    output = dump_log(snapshots[-1:])
    assert len(re.findall(r"producerId: \d+ producerEpoch: 0 ", output)) == 3
    assert output.count("lastSequence: 9") == 3
    assert sorted(re.findall(r"lastOffset: (\d+)", output), key=int) == ["9", "19", "29"]


def test_killed_broker_leaves_a_readable_log(make_server: MakeServer) -> None:
    server = make_server()
    stock(server.bootstrap)
    server.stop(signal.SIGKILL)
    segments = sorted(partition_directory(server.directory, SEGMENTED).glob("*.log"))
    output = dump_log(segments, "--deep-iteration")
    assert "isvalid: false" not in output
    assert len(re.findall(r"^\| offset: ", output, re.MULTILINE)) == 5000
