"""AlterReplicaLogDirs, key 34, versions 1-2: move replicas between the log directories of this broker.

Behaviour: a directory of log.dirs is named by its absolute path; any other path is LOG_DIR_NOT_FOUND. A
replica that is in the directory already stays there. A partition that is named twice has one result, for
the last directory.
Not done:  moves; INVALID_REQUEST where the replica is in another directory."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(
    call: Call, request: AlterReplicaLogDirsRequest
) -> Work[AlterReplicaLogDirsResponse]:
    logs = call.broker.logs
    known = {str(directory.path.absolute()) for directory in logs.directories}
    offline = {str(path.absolute()) for path in logs.offline_dirs}
    paths: dict[TopicPartition, str] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            yield
            for index in topic.partitions:
                yield
                paths[TopicPartition(topic.name, index)] = directory.path
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for partition, path in paths.items():
        yield
        code = _refuse_directory(path, known, offline) or _refuse_replica(call, partition, path)
        result = AlterReplicaLogDirPartitionResult(
            partition_index=partition.partition, error_code=code or ErrorCode.NONE
        )
        topic_result = results.get(partition.topic)
        if topic_result is None:
            topic_result = results[partition.topic] = AlterReplicaLogDirTopicResult(
                topic_name=partition.topic
            )
        topic_result.partitions.append(result)
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _refuse_directory(path: str, known: Collection[str], offline: Collection[str]) -> ErrorCode | None:
    if path not in known:
        return ErrorCode.LOG_DIR_NOT_FOUND
    return ErrorCode.KAFKA_STORAGE_ERROR if path in offline else None


def _refuse_replica(call: Call, partition: TopicPartition, path: str) -> ErrorCode | None:
    log = call.broker.logs.get(partition)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if log.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return None if str(log.directory.parent.absolute()) == path else ErrorCode.INVALID_REQUEST
