"""Parts of the sink that need no broker: settings, stamps on batches, and staged files."""

import os
import stat
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
from barnabas.spark.sink.staging import (
    batch_file,
    create_file,
    job_directory,
    job_file,
    staging_root,
    sweep_batches,
    sweep_jobs,
)
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
    read = []
    for batch in split_batches(b"".join(data for _, data, _ in batches)):
        before = sequence
        sequence = stamp_producer(batch, producer, epoch, sequence)
        header = read_header(batch)
        assert crc_is_valid(batch, 0, len(batch))
        assert header.is_transactional
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (producer, epoch, before)
        assert sequence == (header.last_sequence + 1) % 2**31
        read += [record.value for record in read_records(batch)]
    assert read == values


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
    own = f"barnabas-staging-{os.getuid()}"
    assert staging_root(settings_of(stagingDir="/x", checkpointLocation="/y")) == Path("/x") / own
    assert staging_root(settings_of()) == Path(tempfile.gettempdir()) / own
    with pytest.raises(OptionError, match="set stagingDir"):
        staging_root(settings_of(checkpointLocation="hdfs://host/check"))


def test_an_id_names_one_directory_whatever_is_in_it(tmp_path: Path) -> None:
    path = batch_file(settings_of(checkpointLocation=f"{tmp_path}/check"), 7)
    assert path.parent.parent == tmp_path / "check.staging" / "streams"
    assert path.name.startswith("00000000000000000007-")


def test_a_sweep_removes_committed_files_and_nothing_else(tmp_path: Path) -> None:
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


def test_a_job_removes_its_directory_and_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    own, others = job_directory(settings), job_directory(settings)
    own.mkdir(parents=True)
    others.mkdir()
    sweep_jobs(own)
    assert (own.exists(), others.exists()) == (False, True)
    monkeypatch.setattr("barnabas.spark.sink.staging.JOB_SECONDS_MAX", -60)
    sweep_jobs(own)
    assert not others.exists()


def test_the_staging_root_is_private_and_holds_the_files(tmp_path: Path) -> None:
    settings = settings_of(stagingDir=f"{tmp_path}/not/yet/there")
    root = staging_root(settings)
    for path in (batch_file(settings, 1), job_file(job_directory(settings))):
        with create_file(path) as file:
            file.write(b"x")
        assert path.is_relative_to(root)
        assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_root_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    root = staging_root(settings)
    root.mkdir()
    root.chmod(0o777)
    create_file(batch_file(settings, 1)).close()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def left_by_a_job(root: Path) -> Path:
    """A directory in `root` that a sweep of jobs would remove."""
    left = root / "jobs" / "left"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    return left


def test_a_root_that_is_a_link_is_refused_and_not_swept(tmp_path: Path) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    left = left_by_a_job(elsewhere)
    staging_root(settings).symlink_to(elsewhere)
    for path in (batch_file(settings, 1), job_file(job_directory(settings))):
        with pytest.raises(OptionError, match="cannot be opened as a directory"):
            create_file(path)
    staged = elsewhere / batch_file(settings, 1).relative_to(staging_root(settings))
    staged.parent.mkdir(parents=True)
    staged.touch()
    sweep_batches(settings, 1)
    sweep_jobs(job_directory(settings))
    assert staged.exists()
    assert left.exists()


def test_a_root_of_another_user_is_refused_and_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(stagingDir=str(tmp_path))
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    root = staging_root(settings)
    left = left_by_a_job(root)
    with pytest.raises(OptionError, match=f"belongs to the user with id {another - 1}"):
        create_file(batch_file(settings, 1))
    sweep_jobs(job_directory(settings))
    assert left.exists()


def test_batches_of_a_query_have_a_name_and_a_number() -> None:
    batch = {"queryId": "q", "batchId": "7"}
    assert write_settings({**EXACT, **batch}, is_stream=False)["batchId"] == 7
    for wrong, more, is_stream in (
        ("belong together", {"queryId": "q"}, False),
        ("belong together", {"batchId": "7"}, False),
        ("without batchId", {**batch, "runId": "r"}, False),
        ("Spark numbers the batches", batch, True),
        ("needs delivery=exactly-once", {**batch, "delivery": "at-least-once"}, False),
    ):
        given = {
            name: value
            for name, value in EXACT.items()
            if "delivery" not in more or name != "transactional.id"
        }
        with pytest.raises(OptionError, match=wrong):
            write_settings({**given, **more}, is_stream=is_stream)
