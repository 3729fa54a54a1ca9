"""What fetch sessions promise (KIP-227)."""

import pytest

from barnabas.broker.fetch_sessions import EPOCH_MAX, FetchPartition, FetchSessions
from barnabas.clock import FakeClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID


def wanted(topic: str, index: int = 0, offset: int = 0) -> FetchPartition:
    return FetchPartition(topic, ZERO_UUID, index, offset, 1024)


def sessions(slots: int = 10) -> tuple[FetchSessions, FakeClock]:
    clock = FakeClock()
    return FetchSessions(clock, slots, 120.0), clock


def test_each_request_must_carry_the_next_epoch() -> None:
    cache, _ = sessions()
    session = cache.start(False, [wanted("a")])
    assert session is not None
    cache.resume(session.id, 1, False)
    cache.resume(session.id, 2, False)
    with pytest.raises(KafkaError) as refused:
        cache.resume(session.id, 2, False)
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_is_refused() -> None:
    cache, _ = sessions()
    with pytest.raises(KafkaError) as refused:
        cache.resume(77, 1, False)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_keeps_to_names_or_to_ids() -> None:
    cache, _ = sessions()
    session = cache.start(False, [wanted("a")])
    assert session is not None
    with pytest.raises(KafkaError) as refused:
        cache.resume(session.id, 1, True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_wraps_to_one() -> None:
    cache, _ = sessions()
    session = cache.start(False, [wanted("a")])
    assert session is not None
    session.epoch = EPOCH_MAX
    cache.resume(session.id, EPOCH_MAX, False)
    assert session.epoch == 1


def test_updates_add_renew_and_forget() -> None:
    cache, _ = sessions()
    session = cache.start(False, [wanted("a"), wanted("b")])
    assert session is not None
    session.update([wanted("b", offset=50), wanted("c", offset=7)], [("a", 0)])
    assert {key: kept.fetch_offset for key, kept in session.partitions.items()} == {("b", 0): 50, ("c", 0): 7}


def test_partitions_that_had_data_go_to_the_end() -> None:
    cache, _ = sessions()
    session = cache.start(False, [wanted("a"), wanted("b"), wanted("c")])
    assert session is not None
    session.served([("a", 0)])
    assert [topic for topic, _ in session.partitions] == ["b", "c", "a"]


def test_a_full_cache_evicts_only_a_session_that_has_been_quiet() -> None:
    cache, clock = sessions(slots=2)
    first, second = cache.start(False, [wanted("a")]), cache.start(False, [wanted("b")])
    assert first is not None and second is not None
    assert cache.start(False, [wanted("c")]) is None
    clock.advance(121_000)
    cache.resume(first.id, 1, False)
    third = cache.start(False, [wanted("c")])
    assert third is not None
    assert cache.evictions == 1
    with pytest.raises(KafkaError):
        cache.resume(second.id, 1, False)


def test_nothing_to_fetch_makes_no_session() -> None:
    cache, _ = sessions()
    assert cache.start(False, []) is None
    assert len(cache) == 0
