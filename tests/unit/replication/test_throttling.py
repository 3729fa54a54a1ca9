"""How many bytes of replication are let through, and for which replicas."""

from barnabas.clock import FakeClock
from barnabas.replication.throttling import RateLimit, names_replica


def test_without_a_rate_nothing_is_limited() -> None:
    limit = RateLimit(FakeClock())
    limit.record(1 << 40)
    assert not limit.is_exceeded() and not limit.is_set


def test_a_burst_is_counted_over_all_windows() -> None:
    clock = FakeClock()
    limit = RateLimit(clock, windows=11, window_seconds=1)
    limit.bytes_per_second = 1000
    limit.record(10_000)
    assert not limit.is_exceeded()
    limit.record(1)
    assert limit.is_exceeded()
    clock.advance(10_500)
    assert not limit.is_exceeded()


def test_a_steady_stream_passes_at_its_rate_and_no_faster() -> None:
    clock = FakeClock()
    limit = RateLimit(clock)
    limit.bytes_per_second = 1000
    sent = 0
    for _ in range(600):
        if not limit.is_exceeded():
            limit.record(500)
            sent += 500
        clock.advance(100)
    assert 55_000 <= sent <= 75_000


def test_old_windows_are_forgotten() -> None:
    clock = FakeClock()
    limit = RateLimit(clock)
    limit.bytes_per_second = 10
    limit.record(1_000_000)
    assert limit.is_exceeded()
    clock.advance(11_000)
    assert not limit.is_exceeded()


def test_replicas_are_named_one_by_one_or_all() -> None:
    assert names_replica(("*",), 3, 1)
    assert names_replica(("3:1", "4:2"), 4, 2)
    assert not names_replica(("3:1", "4:2"), 4, 1)
    assert not names_replica((), 0, 0)
