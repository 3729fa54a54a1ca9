"""Rates and token buckets: the numbers of Kafka's own tests and documents, and what holds for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.rates import Rate, TokenBucket, Windows


def test_a_spike_is_throttled_until_the_average_is_within_the_bound() -> None:
    rate, now = Rate(Windows()), 0
    for _ in range(10):
        rate.record(400, now)
        assert rate.throttle_ms(500, now) == 0
        now += 1000
    now += 500
    rate.record(2300, now)
    # 400 * 10 + 2300 in 10.5 seconds are 600 per second; (600 - 500) / 500 * 10.5 s.
    assert rate.measure(now) == 600
    assert rate.throttle_ms(500, now) == 2100


def test_a_spike_is_forgotten_when_its_window_is_over() -> None:
    rate, now = Rate(Windows()), 0
    rate.record(100_000, now)
    assert rate.throttle_ms(500, now) > 0
    for _ in range(10):
        now += 1000
        rate.record(400, now)
    assert rate.throttle_ms(500, now) > 0
    now += 1000
    assert rate.throttle_ms(500, now) == 0


def test_the_first_request_is_judged_over_all_windows() -> None:
    rate = Rate(Windows(11, 1))
    rate.record(5000, 7)
    assert rate.elapsed_ms(7) == 10_000
    assert rate.throttle_ms(500, 7) == 0
    rate.record(1, 7)
    assert rate.measure(7) == pytest.approx(500.1)


def test_what_was_taken_back_does_not_count() -> None:
    rate = Rate(Windows())
    rate.record(9000, 0)
    rate.record(-9000, 0)
    assert rate.measure(0) == 0


def test_nothing_is_left_after_all_windows() -> None:
    rate = Rate(Windows(3, 2))
    rate.record(1, 0)
    assert rate.measure(5999) > 0
    assert rate.measure(6000) == 0
    assert rate.last_ms is None


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 1e9)), min_size=1, max_size=60),
    st.integers(2, 20),
    st.integers(1, 3),
    st.floats(1, 1e6),
)
def test_waiting_for_the_throttle_time_brings_the_rate_within_the_bound(
    events: list[tuple[int, float]], count: int, seconds: int, bound: float
) -> None:
    rate, now = Rate(Windows(count, seconds)), 0
    for pause, value in events:
        now += pause
        rate.record(value, now)
    throttle = rate.throttle_ms(bound, now)
    assert throttle >= 0
    observed, elapsed = rate.measure(now), rate.elapsed_ms(now)
    if throttle:
        # Half a millisecond is lost by rounding.
        assert observed * elapsed / (elapsed + throttle + 1) <= bound * (1 + 1e-9)
    # In any case everything is forgotten when all windows are over.
    assert rate.throttle_ms(bound, now + (count + 1) * seconds * 1000) == 0


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1000)), max_size=100))
def test_the_rate_is_the_sum_of_the_last_windows(events: list[tuple[int, float]]) -> None:
    """Compared with a list of everything: a sample is kept as long as any event in it is young enough."""
    rate, now = Rate(Windows(11, 1)), 0
    samples: list[list[tuple[int, float]]] = []
    for pause, value in events:
        now += pause
        samples = [sample for sample in samples if now - sample[-1][0] < 11_000]
        if not samples or now - samples[-1][0][0] >= 1000:
            samples.append([])
        samples[-1].append((now, value))
        rate.record(value, now)
        total = sum(value for sample in samples for _, value in sample)
        assert rate.measure(now) * rate.elapsed_ms(now) / 1000 == pytest.approx(total)


def test_a_burst_is_paid_back_at_the_rate_of_the_bucket() -> None:
    bucket = TokenBucket(Windows(100, 1))
    assert bucket.tokens(5, 0) == 500
    bucket.record(560, 5, 0)
    assert bucket.tokens(5, 0) == -60
    assert bucket.throttle_ms(5, 0) == 12_000
    assert bucket.throttle_ms(5, 11_000) == 1000
    assert bucket.throttle_ms(5, 12_000) == 0


def test_a_bucket_never_has_more_than_its_burst() -> None:
    bucket = TokenBucket(Windows(11, 1))
    bucket.record(10, 10, 0)
    assert bucket.tokens(10, 0) == 100
    assert bucket.tokens(10, 500) == 105
    assert bucket.tokens(10, 1_000_000) == 110


def test_a_smaller_bound_makes_the_burst_smaller_at_once() -> None:
    bucket = TokenBucket(Windows(10, 1))
    assert bucket.tokens(10, 0) == 100
    assert bucket.tokens(1, 0) == 10


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 500)), max_size=50), st.floats(0.1, 100))
def test_after_the_throttle_time_no_tokens_are_owed(events: list[tuple[int, int]], bound: float) -> None:
    bucket, now = TokenBucket(Windows()), 0
    for pause, value in events:
        now += pause
        bucket.record(value, bound, now)
    wait = bucket.throttle_ms(bound, now)
    assert bucket.tokens(bound, now + wait + 1) >= -1e-6
