"""DescribeLogDirs, key 35, versions 1-5: the log directories of this broker, what is in them, what is free.

Behaviour: null topics mean all partitions, an empty list none; a directory that failed has an error and no
partitions. The lag of a replica is how far its log is behind the high watermark it knows of.
A copy that will take the place of a log in another directory is shown as a future replica; its lag is what it
still has to copy.
Versions:  v3 an error of the whole request · v4 total and usable bytes · v5 cordoned directories.
Not done:  cordoned directories, which are never reported."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.log.log import Log
from barnabas.log.manager import LogManager
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> Work[DescribeLogDirsResponse]:
    requested: set[tuple[str, int]] | None = None
    if request.topics is not None:
        requested = set()
        for topic in request.topics:
            requested.update((topic.topic, index) for index in topic.partitions)
            yield
    logs_in: dict[Path, list[Log]] = defaultdict(list)
    for log in (*call.broker.logs.logs(), *call.broker.logs.futures.values()):
        if requested is None or log.partition in requested:
            logs_in[log.directory.parent.absolute()].append(log)
        yield
    offline = {path.absolute() for path in call.broker.logs.offline_dirs}
    directories = dict.fromkeys(Path(name).absolute() for name in call.broker.config.log_dirs)
    response = DescribeLogDirsResponse()
    for path in directories:
        is_offline = path in offline
        response.results.append(
            _failed(path) if is_offline else (yield from _described(path, logs_in[path], call.broker.logs))
        )
    return response


def _failed(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))


def _described(path: Path, logs: Iterable[Log], manager: LogManager) -> Work[DescribeLogDirsResult]:
    try:
        space = os.statvfs(path)
    except OSError:
        return _failed(path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for log in logs:
        name = log.partition.topic
        if name not in topics:
            topics[name] = DescribeLogDirsTopic(name=name)
        topics[name].partitions.append(_partition(log, manager))
        yield
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=list(topics.values()),
        total_bytes=space.f_blocks * space.f_frsize,
        usable_bytes=space.f_bavail * space.f_frsize,
    )


def _partition(log: Log, manager: LogManager) -> DescribeLogDirsPartition:
    current = manager.get(log.partition)
    is_future = current is not None and current is not log
    end = current.log_end_offset if current is not None and is_future else log.high_watermark
    return DescribeLogDirsPartition(
        partition_index=log.partition.partition,
        partition_size=log.size,
        offset_lag=max(0, end - log.log_end_offset),
        is_future_key=is_future,
    )
