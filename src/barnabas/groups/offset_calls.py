"""Calls about offsets: who may make them, what they change, and which offsets expire.

Errors are part of the answers."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.coordination.step import JournalRecord, Producer, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups import offset_requests
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.directory import AnyGroup, GroupDirectory
from barnabas.groups.group import Committer, Group
from barnabas.groups.offsets import NO_EXPIRY, CommittedOffset, OffsetStore, offset_tombstone
from barnabas.groups.settings import GroupSettings, TopicsView
from barnabas.ids import Uuid
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

# A step is one batch, so many records are removed in several steps.
REMOVALS_PER_STEP = 1000
# From this version on clients know the error code for a group that does not exist.
_KNOWS_NOT_FOUND_FROM = 9


class OffsetCalls:
    def __init__(self, groups: GroupDirectory, settings: GroupSettings, topics: TopicsView) -> None:
        self._groups = groups
        self._settings = settings
        self._topics = topics

    # Committing

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> Step[OffsetCommitResponse]:
        generation = request.generation_id_or_member_epoch
        committer = Committer(request.member_id, request.group_instance_id, generation, request.topics)
        group = self._groups.find(request.group_id)
        try:
            if group is None:
                is_known = version >= _KNOWS_NOT_FOUND_FROM
                missing = ErrorCode.GROUP_ID_NOT_FOUND if is_known else ErrorCode.ILLEGAL_GENERATION
                _check_simple(committer, missing)
            else:
                group.check_commit(committer, transactional=False, version=version)
        except KafkaError as error:
            return Step(offset_requests.refused_commit(request, error.code))
        metadata_max = self._settings.offset_metadata_max_bytes
        response, records = offset_requests.commit(request, self._topics, metadata_max, now_ms)
        step = Step(response, records)
        if isinstance(group, ClassicGroup):
            step.timers += group.touch(request.member_id)
        return step

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> Step[TxnOffsetCommitResponse]:
        generation = request.generation_id
        committer = Committer(request.member_id, request.group_instance_id, generation, request.topics)
        group = self._groups.find(request.group_id)
        try:
            if not request.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            if group is None:
                _check_simple(committer, ErrorCode.ILLEGAL_GENERATION)
            else:
                group.check_commit(committer, transactional=True, version=version)
        except KafkaError as error:
            refusal = offset_requests.refused_commit_in_transaction(request, _for_producer(error.code))
            return Step(refusal)
        metadata_max = self._settings.offset_metadata_max_bytes
        response, records = offset_requests.commit_in_transaction(request, self._topics, metadata_max, now_ms)
        return Step(response, records, producer=Producer(request.producer_id, request.producer_epoch))

    # Fetching and deleting

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> Step[OffsetFetchResponseGroup]:
        group = self._groups.find(request.group_id)
        try:
            if group is not None:
                group.check_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            return Step(OffsetFetchResponseGroup(group_id=request.group_id, error_code=error.code))
        response = offset_requests.fetch(request, self._groups.offsets, self._topics, require_stable)
        # A coordinator that was replaced, and does not know it yet, would answer with offsets of the past.
        return Step(response, must_be_newest=True)

    def delete(self, request: OffsetDeleteRequest) -> Step[OffsetDeleteResponse]:
        group = self._groups.find(request.group_id)
        try:
            if not request.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_offset_delete()
        except KafkaError as error:
            return Step(OffsetDeleteResponse(error_code=error.code))
        response, records = offset_requests.delete(request, self._groups.offsets, group.is_subscribed_to)
        return Step(response, records)

    # Offsets of these groups that are no longer needed; the reply says whether there is more to remove.

    def expire(self, group_ids: Iterable[str], now_ms: int) -> Step[bool]:
        records: list[JournalRecord] = []
        for group_id in group_ids:
            group = self._groups.find(group_id)
            if group is not None:
                records += self._expired(group, now_ms)
            if len(records) >= REMOVALS_PER_STEP:
                break
        return _portion(records)

    def _expired(self, group: AnyGroup, now_ms: int) -> list[JournalRecord]:
        retention_ms = self._settings.offsets_retention_ms
        records, is_everything = expired_offsets(group, self._groups.offsets, retention_ms, now_ms)
        awaits_members = isinstance(group, ClassicGroup) and bool(group.pending_members)
        if is_everything and group.is_empty and not awaits_members:
            # The group is removed last, so that no offsets are left without their group.
            records += self._groups.tombstones(group)
        return records

    def remove_topics(self, group_ids: Iterable[str], topics: Mapping[str, Uuid]) -> Step[bool]:
        return _portion(self._groups.offsets.removal_of_topics(group_ids, topics))

    def remove_old_topics(self, group_ids: Iterable[str]) -> Step[bool]:
        return _portion(self._groups.offsets.removal_of_old_topics(group_ids, self._topics.topic_id))


def _portion(records: list[JournalRecord]) -> Step[bool]:
    return Step(len(records) >= REMOVALS_PER_STEP, records[:REMOVALS_PER_STEP])


def _check_simple(committer: Committer, missing: ErrorCode) -> None:
    """If the group does not exist, only a consumer that is in no group may commit; that creates the group."""
    if committer.generation >= 0:
        raise KafkaError(missing)


def _for_producer(code: ErrorCode) -> ErrorCode:
    """Producers do not know the error code for a stale member epoch."""
    return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code


class Expired(NamedTuple):
    records: list[JournalRecord]
    # No offset of the group is left and no open transaction will add one, so an empty group may be removed.
    is_everything: bool


def expired_offsets(group: Group, store: OffsetStore, retention_ms: int, now_ms: int) -> Expired:
    """Offsets are kept while the group reads their topic or an open transaction has committed them."""
    records = []
    stay = 0
    for partition, committed in store.of_group(group.group_id):
        is_in_use = group.is_subscribed_to(partition.topic) or store.is_pending(group.group_id, partition)
        if is_in_use or not _is_expired(group, committed, retention_ms, now_ms):
            stay += 1
        else:
            records.append(offset_tombstone(group.group_id, partition))
    return Expired(records, stay == 0 and not store.has_open_transactions(group.group_id))


def _is_expired(group: Group, committed: CommittedOffset, retention_ms: int, now_ms: int) -> bool:
    start_ms = group.retention_start_ms(committed.commit_ms)
    if start_ms is None:
        return False
    if committed.expire_ms != NO_EXPIRY:
        return now_ms >= committed.expire_ms
    return now_ms - start_ms >= retention_ms
