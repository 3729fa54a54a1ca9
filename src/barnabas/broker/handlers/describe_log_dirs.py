"""DescribeLogDirs, key 35, versions 1-5: the log directories of this broker, what is in them, what is free.

Behaviour: null topics mean all partitions, an empty list none; a directory that failed has an error and no
partitions. The lag of a replica is how far its log is behind the high watermark it knows of.
Versions:  v3 an error of the whole request · v4 total and usable bytes · v5 cordoned directories.
Not done:  cordoned directories and moves between directories: nothing is ever told as either."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.log.log import Log
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted: Collection[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    logs_in: dict[Path, list[Log]] = defaultdict(list)
    for log in call.broker.logs.logs():
        if wanted is None or log.partition in wanted:
            logs_in[log.directory.parent.absolute()].append(log)
    offline = {path.absolute() for path in call.broker.logs.offline_dirs}
    directories = dict.fromkeys(Path(name).absolute() for name in call.broker.config.log_dirs)
    return DescribeLogDirsResponse(
        results=[
            _failed(path) if path in offline else _described(path, logs_in[path]) for path in directories
        ]
    )


def _failed(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))


def _described(path: Path, logs: Iterable[Log]) -> DescribeLogDirsResult:
    try:
        space = os.statvfs(path)
    except OSError:
        return _failed(path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for log in logs:
        name = log.partition.topic
        topics.setdefault(name, DescribeLogDirsTopic(name=name)).partitions.append(_partition(log))
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=list(topics.values()),
        total_bytes=space.f_blocks * space.f_frsize,
        usable_bytes=space.f_bavail * space.f_frsize,
    )


def _partition(log: Log) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=log.partition.partition,
        partition_size=log.size,
        offset_lag=max(0, log.high_watermark - log.log_end_offset),
    )
