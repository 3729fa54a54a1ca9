"""How the answers look to requests that are refused as a whole, and to refused elements of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.groups.classic.answers import join_refused
from barnabas.wire.message import Message
from barnabas.wire.messages import (
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_client_quotas,
    elect_leaders,
    offset_commit,
    txn_offset_commit,
    write_txn_markers,
)

if TYPE_CHECKING:
    from barnabas.broker.authorization.rules import Refuse, Rights


def whole(response: type[Message]) -> Refuse:
    """An answer with one error for all."""
    has_message = "error_message" in response.DEFAULTS

    def refuse(rights: Rights, request: Any, code: ErrorCode) -> Message:
        message = {"error_message": code.text} if has_message else {}
        return response(error_code=code, **message)

    return refuse


def by_partition(
    topic_type: Callable[..., Any],
    partition_type: Callable[..., Any],
    *,
    names: tuple[str, ...] = ("name",),
    index: str = "partition_index",
    **defaults: Any,
) -> Callable[[Any, ErrorCode], Work[Any]]:
    """The answer to a refused topic: all its partitions have the error. `names` and `index` are fields of
    both the request and the answer."""

    def refuse(topic: Any, code: ErrorCode) -> Work[Any]:
        answer = topic_type(**{each: getattr(topic, each) for each in names}, partitions=[])
        for partition in topic.partitions:
            number = {index: getattr(partition, index)}
            answer.partitions.append(partition_type(**number, error_code=code, **defaults))
            yield
        return answer

    return refuse


def of_join(rights: Rights, request: Any, code: ErrorCode) -> Message:
    return join_refused(code, request.member_id, rights.call.version)


def by_topic(response: type[Message], answers: str, refuse: Callable[[Any, ErrorCode], Work[Any]]) -> Refuse:
    """An answer in which all partitions of all topics have the error."""

    def refuse_all(rights: Rights, request: Any, code: ErrorCode) -> Work[Message]:
        topics = []
        for topic in request.topics:
            topics.append((yield from refuse(topic, code)))
        return response(**{answers: topics})

    return refuse_all


COMMITTED = by_partition(
    offset_commit.OffsetCommitResponseTopic,
    offset_commit.OffsetCommitResponsePartition,
    names=("name", "topic_id"),
)
COMMITTED_IN_TRANSACTION = by_partition(
    txn_offset_commit.TxnOffsetCommitResponseTopic, txn_offset_commit.TxnOffsetCommitResponsePartition
)
of_commit = by_topic(offset_commit.OffsetCommitResponse, "topics", COMMITTED)
of_commit_in_transaction = by_topic(
    txn_offset_commit.TxnOffsetCommitResponse, "topics", COMMITTED_IN_TRANSACTION
)


def of_create_acls(rights: Rights, request: Any, code: ErrorCode) -> Message:
    result = create_acls.AclCreationResult(error_code=code, error_message=code.text)
    return create_acls.CreateAclsResponse(results=[result] * len(request.creations))


def of_delete_acls(rights: Rights, request: Any, code: ErrorCode) -> Message:
    result = delete_acls.DeleteAclsFilterResult(error_code=code, error_message=code.text)
    return delete_acls.DeleteAclsResponse(filter_results=[result] * len(request.filters))


def of_quotas(rights: Rights, request: Any, code: ErrorCode) -> Message:
    return describe_client_quotas.DescribeClientQuotasResponse(
        error_code=code, error_message=code.text, entries=None
    )


def of_changed_quotas(rights: Rights, request: Any, code: ErrorCode) -> Message:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.ResponseEntryData(
                error_code=code, error_message=code.text, entity=entry.entity
            )
            for entry in request.entries
        ]
    )


def of_changed_credentials(rights: Rights, request: Any, code: ErrorCode) -> Message:
    names = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=code, error_message=code.text
            )
            for name in names
        ]
    )


def of_moved_replicas(rights: Rights, request: Any, code: ErrorCode) -> Message:
    topics: dict[str, dict[int, None]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    messages = alter_replica_log_dirs
    return messages.AlterReplicaLogDirsResponse(
        results=[
            messages.AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    messages.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ]
    )


def of_elections(rights: Rights, request: Any, code: ErrorCode) -> Message:
    messages = elect_leaders
    return messages.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            messages.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    messages.PartitionResult(partition_id=index, error_code=code, error_message=None)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


_REASSIGNED = by_partition(
    alter_partition_reassignments.ReassignableTopicResponse,
    alter_partition_reassignments.ReassignablePartitionResponse,
    error_message=None,
)


def of_reassignments(rights: Rights, request: Any, code: ErrorCode) -> Work[Message]:
    response = alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        error_code=code, error_message=code.text
    )
    for topic in request.topics:
        response.responses.append((yield from _REASSIGNED(topic, code)))
    return response


def of_markers(rights: Rights, request: Any, code: ErrorCode) -> Message:
    messages = write_txn_markers
    return messages.WriteTxnMarkersResponse(
        markers=[
            messages.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    messages.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            messages.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
