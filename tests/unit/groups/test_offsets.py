"""Committed offsets: plain, in transactions, removed, expired."""

import pytest

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode
from barnabas.groups import offset_requests
from barnabas.groups.group import Committer
from barnabas.groups.offset_calls import expired_offsets
from barnabas.groups.offsets import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetStore,
    offset_record,
    offset_tombstone,
)
from barnabas.groups.record_schemas import OffsetCommitKey, OffsetCommitValue
from barnabas.groups.records import decode
from barnabas.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "group"
T0 = TopicPartition("topic", 0)
T1 = TopicPartition("topic", 1)
TOPIC_ID = b"i" * 16
OTHER_ID = b"o" * 16
RETENTION_MS = 1000


class Topics:
    """A view of one topic."""

    def partition_count(self, topic: str) -> int | None:
        return 2 if topic == "topic" else None

    def topic_id(self, topic: str) -> Uuid | None:
        return TOPIC_ID if topic == "topic" else None

    def topic_name(self, topic_id: Uuid) -> str | None:
        return "topic" if topic_id == TOPIC_ID else None

    def names(self) -> list[str]:
        return ["topic"]


class SomeGroup:
    """A group whose answers the test chooses."""

    def __init__(self, reads: frozenset[str] = frozenset(), kept_from_ms: int | None = None) -> None:
        self.group_id = GROUP
        self.state_name = "Empty"
        self.protocol_type = "consumer"
        self.is_empty = not reads
        self.reads = reads
        self.kept_from_ms = kept_from_ms
        self.keeps_all = False

    def check_commit(self, committer: Committer, *, transactional: bool, version: int) -> None: ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.reads

    def retention_start_ms(self, commit_ms: int) -> int | None:
        if self.keeps_all:
            return None
        return commit_ms if self.kept_from_ms is None else self.kept_from_ms

    def tombstones(self) -> list[JournalRecord]:
        return []


def apply(store: OffsetStore, records: list[JournalRecord], producer_id: int | None = None) -> None:
    for record in records:
        decoded = decode(record)
        assert decoded is not None
        assert isinstance(decoded.key, OffsetCommitKey)
        assert decoded.value is None or isinstance(decoded.value, OffsetCommitValue)
        store.apply(decoded.key, decoded.value, producer_id)


def put(
    store: OffsetStore, partition: TopicPartition, offset: int, producer_id: int | None = None
) -> CommittedOffset:
    committed = CommittedOffset(offset, leader_epoch=3, metadata=f"at {offset}", commit_ms=100)
    apply(store, [offset_record(GROUP, partition, committed)], producer_id)
    return committed


@pytest.fixture
def store() -> OffsetStore:
    return OffsetStore()


# Commits outside transactions


def test_the_last_commit_counts_even_if_its_offset_is_lower(store: OffsetStore) -> None:
    put(store, T0, 50)
    last = put(store, T0, 20)
    assert store.get(GROUP, T0) == last
    assert store.get(GROUP, T1) is None
    assert store.get("another", T0) is None


def test_a_tombstone_removes_one_partition(store: OffsetStore) -> None:
    put(store, T0, 50)
    put(store, T1, 51)
    apply(store, [offset_tombstone(GROUP, T0)])
    assert store.get(GROUP, T0) is None
    assert store.get(GROUP, T1) is not None
    apply(store, [offset_tombstone(GROUP, T1)])
    assert store.group_ids() == set()


# Transactions


def test_offsets_of_a_transaction_are_visible_when_it_commits(store: OffsetStore) -> None:
    before = put(store, T0, 10)
    inside = put(store, T0, 20, producer_id=7)
    assert store.get(GROUP, T0) == before
    assert store.is_pending(GROUP, T0)
    assert not store.is_pending(GROUP, T1)
    assert not store.is_pending("another", T0)

    store.end_transaction(7, is_commit=True)
    assert store.get(GROUP, T0) == inside
    assert not store.is_pending(GROUP, T0)
    assert not store.has_open_transactions(GROUP)


def test_offsets_of_an_aborted_transaction_are_removed(store: OffsetStore) -> None:
    before = put(store, T0, 10)
    put(store, T0, 20, producer_id=7)
    put(store, T1, 21, producer_id=7)
    store.end_transaction(7, is_commit=False)
    assert store.get(GROUP, T0) == before
    assert store.get(GROUP, T1) is None
    assert not store.has_open_transactions(GROUP)


def test_a_later_offset_of_the_same_transaction_replaces_the_earlier(store: OffsetStore) -> None:
    put(store, T0, 20, producer_id=7)
    later = put(store, T0, 30, producer_id=7)
    store.end_transaction(7, is_commit=True)
    assert store.get(GROUP, T0) == later


def test_a_commit_replaces_an_earlier_one_of_a_transaction(store: OffsetStore) -> None:
    put(store, T0, 20, producer_id=7)
    plain = put(store, T0, 5)
    store.end_transaction(7, is_commit=True)
    assert store.get(GROUP, T0) == plain


def test_a_partition_stays_unstable_until_its_last_transaction_ends(store: OffsetStore) -> None:
    put(store, T0, 20, producer_id=7)
    late = put(store, T0, 30, producer_id=8)
    store.end_transaction(8, is_commit=True)
    assert store.get(GROUP, T0) == late
    assert store.is_pending(GROUP, T0)
    store.end_transaction(7, is_commit=True)
    assert store.get(GROUP, T0) == late
    assert not store.is_pending(GROUP, T0)


def test_a_marker_without_offsets_changes_nothing(store: OffsetStore) -> None:
    before = put(store, T0, 10)
    store.end_transaction(99, is_commit=True)
    assert store.get(GROUP, T0) == before


def test_a_tombstone_also_removes_what_is_pending(store: OffsetStore) -> None:
    put(store, T0, 20, producer_id=7)
    put(store, T1, 21, producer_id=7)
    apply(store, [offset_tombstone(GROUP, T0)])
    assert not store.is_pending(GROUP, T0)
    store.end_transaction(7, is_commit=True)
    assert store.get(GROUP, T0) is None
    assert store.get(GROUP, T1) is not None


# What removes


def test_removal_of_a_group_covers_pending_offsets_once(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T0, 20, producer_id=7)
    put(store, T1, 21, producer_id=7)
    records = store.removal_of_group(GROUP)
    assert records == [offset_tombstone(GROUP, T0), offset_tombstone(GROUP, T1)]
    apply(store, records)
    assert store.durable_state() == OffsetStore().durable_state()


def test_removal_of_a_topic_keeps_the_offsets_of_another_topic_with_its_name(store: OffsetStore) -> None:
    new = CommittedOffset(1, topic_id=TOPIC_ID)
    old = CommittedOffset(2, topic_id=OTHER_ID)
    unknown = CommittedOffset(3)
    apply(store, [offset_record("new", T0, new), offset_record("old", T0, old)])
    apply(store, [offset_record("unknown", T0, unknown)])
    apply(store, [offset_record("elsewhere", TopicPartition("another", 0), unknown)])
    records = store.removal_of_topics(store.group_ids(), {"topic": OTHER_ID})
    assert sorted(records) == sorted([offset_tombstone("old", T0), offset_tombstone("unknown", T0)])


def test_there_is_no_tombstone_for_an_offset_that_does_not_exist(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T1, 20, producer_id=7)
    assert store.removal(GROUP, T0) == [offset_tombstone(GROUP, T0)]
    assert store.removal(GROUP, T1) == [offset_tombstone(GROUP, T1)]
    assert store.removal(GROUP, TopicPartition("topic", 2)) == []
    assert store.removal("another", T0) == []


# Requests


def commit_request(metadata: str | None = "m", **fields: object) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=11, committed_leader_epoch=4, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(name="topic", partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP, topics=[topic], **fields)  # type: ignore[arg-type]


def fetched(store: OffsetStore, *, require_stable: bool = False, topic_id: Uuid = ZERO_UUID) -> object:
    topic = OffsetFetchRequestTopics(name="topic", topic_id=topic_id, partition_indexes=[0])
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    answer = offset_requests.fetch(request, store, Topics(), require_stable)
    assert (answer.group_id, answer.error_code, len(answer.topics)) == (GROUP, 0, 1)
    partition = answer.topics[0].partitions[0]
    return (
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.metadata,
        partition.error_code,
    )


def test_offset_epoch_and_metadata_come_back_as_committed(store: OffsetStore) -> None:
    done = offset_requests.commit(commit_request(), Topics(), 10, 1234)
    assert done.response.topics[0].name == "topic"
    assert done.response.topics[0].partitions[0].error_code == 0
    apply(store, done.records)
    assert fetched(store) == (11, 4, "m", 0)
    assert store.get(GROUP, T0) == CommittedOffset(11, 4, "m", 1234, NO_EXPIRY, TOPIC_ID)


def test_no_commit_is_no_error(store: OffsetStore) -> None:
    assert fetched(store) == (-1, -1, "", 0)


def test_metadata_may_be_absent(store: OffsetStore) -> None:
    apply(store, offset_requests.commit(commit_request(metadata=None), Topics(), 10, 0).records)
    assert fetched(store) == (11, 4, "", 0)


def test_too_much_metadata_fails_only_its_partition(store: OffsetStore) -> None:
    request = commit_request(metadata="x" * 11)
    fine = OffsetCommitRequestPartition(partition_index=1, committed_offset=3, committed_metadata="x" * 10)
    request.topics[0].partitions.append(fine)
    done = offset_requests.commit(request, Topics(), 10, 0)
    codes = [partition.error_code for partition in done.response.topics[0].partitions]
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    apply(store, done.records)
    assert store.get(GROUP, T0) is None
    assert store.get(GROUP, T1) is not None


def test_a_retention_time_of_the_client_becomes_an_expiry_time(store: OffsetStore) -> None:
    apply(store, offset_requests.commit(commit_request(retention_time_ms=500), Topics(), 10, 1000).records)
    committed = store.get(GROUP, T0)
    assert committed is not None
    assert committed.expire_ms == 1500


def test_an_offset_of_an_older_topic_with_the_same_name_is_not_returned(store: OffsetStore) -> None:
    request = commit_request()
    request.topics[0].topic_id = OTHER_ID
    apply(store, offset_requests.commit(request, Topics(), 10, 0).records)
    assert fetched(store, topic_id=OTHER_ID) == (11, 4, "m", 0)
    assert fetched(store, topic_id=TOPIC_ID) == (-1, -1, "", 0)
    assert fetched(store) == (11, 4, "m", 0)


def test_require_stable_waits_for_open_transactions(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T0, 20, producer_id=7)
    assert fetched(store) == (10, 3, "at 10", 0)
    assert fetched(store, require_stable=True) == (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    store.end_transaction(7, is_commit=True)
    assert fetched(store, require_stable=True) == (20, 3, "at 20", 0)


def test_all_topics_are_fetched_without_naming_them(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T1, 11)
    put(store, TopicPartition("gone", 4), 12)
    put(store, T1, 30, producer_id=7)
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    answer = offset_requests.fetch(request, store, Topics(), require_stable=True)
    offsets = {
        (topic.name, topic.topic_id, partition.partition_index): (
            partition.committed_offset,
            partition.error_code,
        )
        for topic in answer.topics
        for partition in topic.partitions
    }
    assert offsets == {
        ("topic", TOPIC_ID, 0): (10, 0),
        ("topic", TOPIC_ID, 1): (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT),
        ("gone", ZERO_UUID, 4): (12, 0),
    }


def test_a_transactional_commit_writes_the_same_records(store: OffsetStore) -> None:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=11, committed_leader_epoch=4, committed_metadata="m"
    )
    long = TxnOffsetCommitRequestPartition(partition_index=1, committed_metadata="x" * 11)
    topic = TxnOffsetCommitRequestTopic(name="topic", partitions=[partition, long])
    request = TxnOffsetCommitRequest(group_id=GROUP, producer_id=7, topics=[topic])
    done = offset_requests.commit_in_transaction(request, Topics(), 10, 1234)
    assert done.records == offset_requests.commit(commit_request(), Topics(), 10, 1234).records
    codes = [partition.error_code for partition in done.response.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_refusals_name_every_partition() -> None:
    refused = offset_requests.refused_commit(commit_request(), ErrorCode.UNKNOWN_MEMBER_ID)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    topic = TxnOffsetCommitRequestTopic(name="topic", partitions=[TxnOffsetCommitRequestPartition()])
    request = TxnOffsetCommitRequest(group_id=GROUP, topics=[topic])
    fenced = offset_requests.refused_commit_in_transaction(request, ErrorCode.FENCED_INSTANCE_ID)
    assert fenced.topics[0].partitions[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_offsets_of_topics_in_use_are_not_deleted(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, TopicPartition("other", 0), 10)
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)],
            )
            for name in ("topic", "other")
        ],
    )
    done = offset_requests.delete(request, store, lambda topic: topic == "topic")
    assert done.records == [offset_tombstone(GROUP, TopicPartition("other", 0))]
    codes = [[partition.error_code for partition in topic.partitions] for topic in done.response.topics]
    assert codes == [[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2, [ErrorCode.NONE] * 2]


# Expiry: `put` commits at 100


def test_offsets_expire_when_their_time_is_over(store: OffsetStore) -> None:
    put(store, T0, 10)
    group = SomeGroup()
    assert expired_offsets(group, store, RETENTION_MS, 1099) == ([], False)
    assert expired_offsets(group, store, RETENTION_MS, 1100) == ([offset_tombstone(GROUP, T0)], True)


def test_the_group_may_say_when_the_time_begins(store: OffsetStore) -> None:
    put(store, T0, 10)
    group = SomeGroup(kept_from_ms=600)
    assert expired_offsets(group, store, RETENTION_MS, 1599).records == []
    assert expired_offsets(group, store, RETENTION_MS, 1600).records == [offset_tombstone(GROUP, T0)]


def test_offsets_of_subscribed_topics_stay(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, TopicPartition("other", 0), 10)
    expired = expired_offsets(SomeGroup(reads=frozenset({"topic"})), store, RETENTION_MS, 10**6)
    assert expired == ([offset_tombstone(GROUP, TopicPartition("other", 0))], False)


def test_offsets_are_kept_while_an_open_transaction_has_them(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T0, 20, producer_id=7)
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 10**6) == ([], False)
    store.end_transaction(7, is_commit=False)
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 10**6).is_everything


def test_a_group_is_kept_while_an_open_transaction_adds_to_it(store: OffsetStore) -> None:
    put(store, T0, 10)
    put(store, T1, 20, producer_id=7)
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 10**6) == ([offset_tombstone(GROUP, T0)], False)


def test_an_expiry_time_of_the_client_comes_before_the_retention(store: OffsetStore) -> None:
    apply(store, [offset_record(GROUP, T0, CommittedOffset(1, commit_ms=100, expire_ms=300))])
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 299).records == []
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 300).records == [offset_tombstone(GROUP, T0)]


def test_a_group_may_keep_everything(store: OffsetStore) -> None:
    apply(store, [offset_record(GROUP, T0, CommittedOffset(1, commit_ms=100, expire_ms=300))])
    group = SomeGroup()
    group.keeps_all = True
    assert expired_offsets(group, store, RETENTION_MS, 10**6) == ([], False)


def test_a_group_without_offsets_has_nothing_to_keep(store: OffsetStore) -> None:
    assert expired_offsets(SomeGroup(), store, RETENTION_MS, 0) == ([], True)
