"""What DescribeLogDirs answers about directories, partitions and space."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def describe(stage: Any, topics: list[DescribableLogDirTopic] | None = None, version: int = 5) -> list[Any]:
    response = stage.ask(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == ErrorCode.NONE
    results: list[Any] = response.results
    return results


def partitions(result: Any) -> set[tuple[str, int]]:
    return {(topic.name, part.partition_index) for topic in result.topics for part in topic.partitions}


@pytest.mark.parametrize("version", range(1, 6))
def test_all_partitions_with_their_sizes(stage: Any, tmp_path: Path, version: int) -> None:
    stage.create("t", 2)
    stage.append("t", 10)
    (result,) = describe(stage, version=version)
    assert (result.error_code, result.log_dir) == (ErrorCode.NONE, str(tmp_path / "logs"))
    assert partitions(result) == {("t", 0), ("t", 1)}
    sizes = {part.partition_index: part.partition_size for part in result.topics[0].partitions}
    assert sizes == {0: stage.replicas.leader("t", 0).log.size, 1: 0}
    assert sizes[0] > 0
    assert not any(part.offset_lag or part.is_future_key for part in result.topics[0].partitions)
    if version >= 4:
        space = os.statvfs(tmp_path)
        assert result.total_bytes == space.f_blocks * space.f_frsize
        assert 0 < result.usable_bytes <= result.total_bytes
    else:
        assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def test_only_the_requested_partitions(stage: Any) -> None:
    stage.create("a", 2)
    stage.create("b")
    requested = [DescribableLogDirTopic(topic="a", partitions=[1, 7]), DescribableLogDirTopic(topic="gone")]
    (some,) = describe(stage, requested)
    assert partitions(some) == {("a", 1)}
    (none,) = describe(stage, [])
    assert none.topics == []


def test_every_directory_is_listed_even_an_empty_one(make_stage: Any, tmp_path: Path) -> None:
    names = [str(tmp_path / "one"), str(tmp_path / "two")]
    stage = make_stage(log_dirs=",".join(names))
    stage.create("t")
    results = describe(stage)
    assert [result.log_dir for result in results] == names
    assert sorted(len(result.topics) for result in results) == [0, 1]


def test_a_directory_that_failed_has_an_error_and_nothing_else(make_stage: Any, tmp_path: Path) -> None:
    stage = make_stage(log_dirs=f"{tmp_path / 'one'},{tmp_path / 'two'}")
    stage.create("t", 4)
    log = stage.replicas.leader("t", 0).log
    log.storage_error(OSError(5, "Input/output error"))
    failed = str(log.directory.parent)
    results = {result.log_dir: result for result in describe(stage)}
    assert (results[failed].error_code, results[failed].topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert (results[failed].total_bytes, results[failed].usable_bytes) == (-1, -1)
    (sound,) = [result for name, result in results.items() if name != failed]
    assert sound.error_code == ErrorCode.NONE
    assert len(partitions(sound)) == 2


def test_a_directory_that_is_gone_is_an_error(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").rename(tmp_path / "elsewhere")
    (result,) = describe(stage)
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (tmp_path / "elsewhere").rename(tmp_path / "logs")
