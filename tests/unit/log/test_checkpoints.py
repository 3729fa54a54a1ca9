"""The small files, byte for byte as Kafka writes them, and how damaged ones are handled."""

from pathlib import Path

import pytest

from barnabas.ids import TopicPartition, uuid_from_string
from barnabas.log import checkpoints, names
from barnabas.log.checkpoints import MetaProperties
from barnabas.log.disk import RealDisk

DISK = RealDisk()
UUID = uuid_from_string("Zm9vYmFyYmF6cXV4MTIzNA")


def test_an_offset_checkpoint_is_version_count_and_lines(tmp_path: Path) -> None:
    path = tmp_path / names.RECOVERY_POINTS
    offsets = {TopicPartition("orders", 0): 42, TopicPartition("a-b.c_d", 11): 0}
    checkpoints.write_offsets(DISK, path, offsets)
    assert path.read_bytes() == b"0\n2\norders 0 42\na-b.c_d 11 0\n"
    assert checkpoints.read_offsets(DISK, path) == offsets


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n2\norders 0 42\n",
        b"0\n1\norders 42\n",
        b"0\n1\norders x 42\n",
        b"\xff\xfe\n",
        b"0\n",
        b"",
    ],
)
def test_a_damaged_checkpoint_is_treated_as_missing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / names.RECOVERY_POINTS
    path.write_bytes(content)
    assert checkpoints.read_offsets(DISK, path) == {}


def test_a_checkpoint_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / names.LOG_STARTS
    for offset in (1, 2):
        checkpoints.write_offsets(DISK, path, {TopicPartition("t", 0): offset})
    assert [entry.name for entry in tmp_path.iterdir()] == [names.LOG_STARTS]
    assert checkpoints.read_offsets(DISK, path) == {TopicPartition("t", 0): 2}


def test_meta_properties(tmp_path: Path) -> None:
    meta = MetaProperties("cluster-1", 3, UUID)
    checkpoints.write_meta_properties(DISK, tmp_path, meta)
    assert (tmp_path / names.META_PROPERTIES).read_text().splitlines() == [
        "cluster.id=cluster-1",
        "directory.id=Zm9vYmFyYmF6cXV4MTIzNA",
        "node.id=3",
        "version=1",
    ]
    assert checkpoints.read_meta_properties(DISK, tmp_path) == meta


def test_meta_properties_as_java_writes_them(tmp_path: Path) -> None:
    text = "#\n#Mon Jan 05 2026\ncluster.id=c\nnode.id=1\ndirectory.id=Zm9vYmFyYmF6cXV4MTIzNA\nversion=1\n"
    (tmp_path / names.META_PROPERTIES).write_text(text)
    assert checkpoints.read_meta_properties(DISK, tmp_path) == MetaProperties("c", 1, UUID)


def test_meta_properties_that_cannot_be_parsed_are_an_error(tmp_path: Path) -> None:
    assert checkpoints.read_meta_properties(DISK, tmp_path) is None
    (tmp_path / names.META_PROPERTIES).write_text("cluster.id=c\n")
    with pytest.raises(ValueError, match=r"meta\.properties"):
        checkpoints.read_meta_properties(DISK, tmp_path)


def test_the_clean_shutdown_marker_is_valid_once(tmp_path: Path) -> None:
    assert not checkpoints.take_clean_shutdown(DISK, tmp_path)
    checkpoints.write_clean_shutdown(DISK, tmp_path, 7)
    assert (tmp_path / names.CLEAN_SHUTDOWN).read_bytes() == b'{"version":0,"brokerEpoch":7}'
    assert checkpoints.take_clean_shutdown(DISK, tmp_path)
    assert not checkpoints.take_clean_shutdown(DISK, tmp_path)


def test_partition_metadata_has_no_newline_at_its_end(tmp_path: Path) -> None:
    checkpoints.write_partition_metadata(DISK, tmp_path, UUID)
    content = (tmp_path / names.PARTITION_METADATA).read_bytes()
    assert content == b"version: 0\ntopic_id: Zm9vYmFyYmF6cXV4MTIzNA"
    assert checkpoints.read_partition_metadata(DISK, tmp_path) == UUID


@pytest.mark.parametrize("content", [b"", b"version: 0", b"version: 9\ntopic_id: Zm9vYmFy", b"x\ny"])
def test_damaged_partition_metadata_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / names.PARTITION_METADATA).write_bytes(content)
    assert checkpoints.read_partition_metadata(DISK, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000042.log", (42, ".log", "")),
        ("00000000000000000042.timeindex.swap", (42, ".timeindex", ".swap")),
        ("00000000000000000042.snapshot.deleted", (42, ".snapshot", ".deleted")),
        ("42.log", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_names_of_files(name: str, parsed: tuple[int, str, str] | None) -> None:
    assert names.parse_offset_file(name) == parsed


def test_names_of_directories() -> None:
    assert names.parse_partition_directory("my-topic-with-dashes-12") == TopicPartition(
        "my-topic-with-dashes", 12
    )
    assert names.parse_partition_directory("nodash") is None
    renamed = names.delete_directory_name(TopicPartition("t" * 249, 3))
    assert len(renamed) <= 255 and renamed.endswith("-delete")
    assert names.is_delete_directory(renamed)
    assert names.parse_partition_directory(renamed) is None
    assert not names.is_delete_directory("please-delete")
