"""Parts of the sink that need no broker: stamps on batches, places of files."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import crc_is_valid, read_header
from barnabas.records.builder import read_records
from barnabas.records.tables import encode_batches
from barnabas.spark.options import OptionError
from barnabas.spark.sink.settings import WriteSettings, write_settings
from barnabas.spark.sink.staging import batch_file, job_directory, staging_root, sweep_batches, sweep_jobs
from barnabas.spark.sink.stamping import split_batches, stamp_producer

EXACT = {
    "kafka.bootstrap.servers": "localhost:1",
    "topic": "t",
    "delivery": "exactly-once",
    "transactional.id": "a/../b",
}


def settings_of(**more: str) -> WriteSettings:
    return write_settings({**EXACT, **more}, is_stream=True)


@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=30),
    st.sampled_from(["none", "gzip"]),
    st.integers(0, 2**62),
    st.integers(0, 32767),
    st.integers(0, 2**31 - 1),
)
def test_a_stamped_batch_is_the_producers_and_holds_the_same_records(
    values: list[bytes], compression: str, producer: int, epoch: int, sequence: int
) -> None:
    table = pa.table({"value": pa.array(values, pa.binary())})
    batches = encode_batches(table, 1, batch_bytes=200, compression=compression)
    found = []
    for batch in split_batches(b"".join(data for _, data, _ in batches)):
        before = sequence
        sequence = stamp_producer(batch, producer, epoch, sequence)
        header = read_header(batch)
        assert crc_is_valid(batch, 0, len(batch))
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (producer, epoch, before)
        assert sequence == (header.last_sequence + 1) % 2**31
        found += [record.value for record in read_records(batch)]
    assert found == values


@pytest.mark.parametrize(
    ("checkpoint", "root"),
    [
        ("/data/check", "/data/check.staging"),
        ("/data/check/", "/data/check.staging"),
        ("file:/data/my%20check", "/data/my check.staging"),
        ("file:///data/check", "/data/check.staging"),
    ],
)
def test_files_are_beside_the_checkpoint(checkpoint: str, root: str) -> None:
    assert staging_root(settings_of(checkpointLocation=checkpoint)) == Path(root)


def test_files_are_where_the_option_says_or_with_the_temporary_ones() -> None:
    assert staging_root(settings_of(stagingDir="/x", checkpointLocation="/y")) == Path("/x")
    assert staging_root(settings_of()).parent == Path(tempfile.gettempdir())
    with pytest.raises(OptionError, match="give stagingDir"):
        staging_root(settings_of(checkpointLocation="hdfs://host/check"))


def test_an_id_names_one_directory_whatever_is_in_it(tmp_path: Path) -> None:
    found = batch_file(settings_of(stagingDir=str(tmp_path)), 7)
    assert found.parent.parent == tmp_path / "streams"
    assert found.name.startswith("00000000000000000007-")


def test_a_sweep_takes_what_is_committed_and_nothing_else(tmp_path: Path) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    files = [batch_file(settings, batch) for batch in (1, 2, 3)]
    other = files[0].with_name("notes.txt")
    files[0].parent.mkdir(parents=True)
    for path in (*files, other):
        path.write_bytes(b"x")
    sweep_batches(settings, 2)
    assert sorted(path.exists() for path in files) == [False, False, True]
    assert other.exists()
    sweep_batches(settings_of(checkpointLocation="hdfs://host/check"), 2)


def test_a_job_sweeps_its_directory_and_those_left_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    own, others = job_directory(settings), job_directory(settings)
    own.mkdir(parents=True)
    others.mkdir()
    sweep_jobs(own)
    assert (own.exists(), others.exists()) == (False, True)
    monkeypatch.setattr("barnabas.spark.sink.staging.JOB_SECONDS_MAX", -60)
    sweep_jobs(own)
    assert not others.exists()
