"""AlterReplicaLogDirs, key 34, versions 1-2: move replicas between the log directories of this broker.

Behaviour: a directory of log.dirs is named by its absolute path; any other path is LOG_DIR_NOT_FOUND. The
answer comes when the move has begun (broker/log_moves.py); DescribeLogDirs shows how far it is. A request
with the directory where the replica is ends a move. A replica that does not exist yet is
REPLICA_NOT_AVAILABLE, and will be created in the directory. A partition that is named twice has one result,
for the last directory.
Not done:  a move that a restart interrupts does not go on by itself."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.directories import LogDirectory
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
    directories = {str(directory.path.absolute()): directory for directory in logs.directories}
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
        result = AlterReplicaLogDirPartitionResult(
            partition_index=partition.partition, error_code=_move(call, partition, directories.get(path))
        )
        topic_result = results.get(partition.topic)
        if topic_result is None:
            topic_result = results[partition.topic] = AlterReplicaLogDirTopicResult(
                topic_name=partition.topic
            )
        topic_result.partitions.append(result)
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(call: Call, partition: TopicPartition, directory: LogDirectory | None) -> ErrorCode:
    """Begin to move the replica, or say why not."""
    logs = call.broker.logs
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    log = logs.get(partition)
    if not directory.online or (log is not None and log.offline):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if log is not None:
        try:
            call.broker.log_moves.start(partition, directory)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE
    if call.broker.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    logs.preferred_directories[partition] = directory
    return ErrorCode.REPLICA_NOT_AVAILABLE
