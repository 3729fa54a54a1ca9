"""Fetch sessions (KIP-227): epochs, updates, and limits of the cache."""

import pytest

from barnabas.broker.fetch_sessions import (
    EPOCH_MAX,
    FetchPartition,
    FetchSession,
    FetchSessions,
    PartitionKey,
)
from barnabas.clock import FakeClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID
from barnabas.kernels.log_end import PartitionEnd, Permit
from barnabas.replication.gate import Asker
from barnabas.security.principal import Principal

ASKER = Asker("PLAINTEXT", "a client", 12)


def partitions_of(*topics: str, offset: int = 0, count: int = 1) -> dict[PartitionKey, FetchPartition]:
    partitions = [
        FetchPartition(topic, ZERO_UUID, index, offset, 1024) for topic in topics for index in range(count)
    ]
    return {partition.key: partition for partition in partitions}


def sessions(slots: int = 10, partitions_max: int = 1000) -> tuple[FetchSessions, FakeClock]:
    clock = FakeClock()
    return FetchSessions(clock, slots, 120.0, partitions_max), clock


def started(cache: FetchSessions, *topics: str, count: int = 1) -> FetchSession:
    session = cache.start(ASKER, partitions_of(*topics, count=count), uses_topic_ids=False)
    assert session is not None
    return session


def resume(
    cache: FetchSessions, session_id: int, epoch: int, asker: Asker = ASKER, by_id: bool = False
) -> None:
    cache.resume(session_id, epoch, asker, uses_topic_ids=by_id)


def is_refused(cache: FetchSessions, *topics: str, count: int = 1) -> bool:
    return cache.start(ASKER, partitions_of(*topics, count=count), uses_topic_ids=False) is None


def test_each_request_must_carry_the_next_epoch() -> None:
    cache, _ = sessions()
    session = started(cache, "a")
    resume(cache, session.id, 1)
    resume(cache, session.id, 2)
    with pytest.raises(KafkaError) as refused:
        resume(cache, session.id, 2)
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_is_refused() -> None:
    cache, _ = sessions()
    with pytest.raises(KafkaError) as refused:
        resume(cache, 77, 1)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_keeps_to_names_or_to_ids() -> None:
    cache, _ = sessions()
    session = started(cache, "a")
    with pytest.raises(KafkaError) as refused:
        resume(cache, session.id, 1, by_id=True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_wraps_to_one() -> None:
    cache, _ = sessions()
    session = started(cache, "a")
    session.epoch = EPOCH_MAX
    resume(cache, session.id, EPOCH_MAX)
    assert session.epoch == 1


def test_updates_add_renew_and_forget() -> None:
    cache, _ = sessions()
    session = started(cache, "a", "b")
    cache.update(session, partitions_of("b", offset=50) | partitions_of("c", offset=7), [("a", 0)])
    assert {key: kept.fetch_offset for key, kept in session.partitions.items()} == {("b", 0): 50, ("c", 0): 7}
    assert cache.partition_count == 2


def test_partitions_that_had_data_go_to_the_end() -> None:
    cache, _ = sessions()
    session = started(cache, "a", "b", "c")
    session.served([("a", 0)])
    assert [topic for topic, _ in session.partitions] == ["b", "c", "a"]


def test_a_full_cache_evicts_only_a_session_that_nobody_has_used_for_long() -> None:
    cache, clock = sessions(slots=2)
    first, second = started(cache, "a"), started(cache, "b")
    assert is_refused(cache, "c")
    clock.advance(121_000)
    resume(cache, first.id, 1)
    started(cache, "c")
    assert cache.evictions == 1
    with pytest.raises(KafkaError):
        resume(cache, second.id, 1)


def test_the_session_of_a_replica_gives_way_only_to_another_replica() -> None:
    cache, clock = sessions(slots=1)
    replica = ASKER._replace(replica_id=2, broker_epoch=7)
    assert cache.start(replica, partitions_of("a"), uses_topic_ids=False) is not None
    clock.advance(121_000)
    assert is_refused(cache, "b")
    assert cache.start(replica, partitions_of("b"), uses_topic_ids=False) is not None
    assert len(cache) == 1


def test_a_larger_session_displaces_the_smallest_of_those_that_have_existed_for_long() -> None:
    cache, clock = sessions(slots=3)
    old = [started(cache, "a", count=count) for count in (3, 2)]
    clock.advance(121_000)
    young = started(cache, "a", count=1)
    for session in (*old, young):
        resume(cache, session.id, 1)
    assert is_refused(cache, "b", count=2)
    started(cache, "b", count=3)
    with pytest.raises(KafkaError):
        resume(cache, old[1].id, 2)
    for session in (old[0], young):
        resume(cache, session.id, 2)


def test_all_sessions_together_remember_a_bounded_number_of_partitions() -> None:
    cache, clock = sessions(partitions_max=100)
    first = started(cache, "a", count=60)
    assert is_refused(cache, "b", count=41)
    assert is_refused(cache, "b", count=101)
    started(cache, "b", count=40)
    assert cache.partition_count == 100
    clock.advance(121_000)
    # Both have been quiet; they make room one after the other.
    started(cache, "c", count=90)
    assert (len(cache), cache.partition_count, cache.evictions) == (1, 90, 2)
    with pytest.raises(KafkaError):
        resume(cache, first.id, 1)


def test_a_session_that_grows_too_large_ends_and_its_client_starts_over() -> None:
    cache, _ = sessions(partitions_max=100)
    session = started(cache, "a", count=60)
    with pytest.raises(KafkaError) as refused:
        cache.update(session, partitions_of("b", count=50), [])
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(cache), cache.partition_count) == (0, 0)


def test_another_client_does_not_get_the_permits_of_a_session() -> None:
    cache, _ = sessions()
    session = started(cache, "a")
    (partition,) = session.partitions.values()
    permit = partition.permit = Permit(PartitionEnd(), 0, True, None, False)
    resume(cache, session.id, 1)
    assert partition.permit is permit
    resume(cache, session.id, 2, ASKER._replace(client_id="another"))
    assert partition.permit is None


def test_nothing_to_fetch_makes_no_session() -> None:
    cache, _ = sessions()
    assert is_refused(cache)
    assert len(cache) == 0


def test_the_session_of_another_user_is_not_found() -> None:
    cache, _ = sessions()
    session = started(cache, "a")
    other = ASKER._replace(principal=Principal("User", "bob"))
    with pytest.raises(KafkaError) as refused:
        resume(cache, session.id, 1, other)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    cache.end_of(session.id, other)
    assert cache.get(session.id) is session
    cache.end_of(session.id, ASKER)
    assert cache.get(session.id) is None
