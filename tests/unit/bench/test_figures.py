"""The summary of several rounds, and when rounds agree."""

import pytest
from tests.bench.figures import CURVE_PARTS, METRICS, Summary, agree, latency_sample, middle_curve, percentile


def test_the_figure_of_rounds_is_the_middle_one_and_its_spread_their_distance() -> None:
    summary = Summary.of([90.0, 120.0, 100.0])
    assert (summary.middle, summary.least, summary.most) == (100.0, 90.0, 120.0)
    assert summary.spread == pytest.approx(0.3)


def test_rounds_of_nothing_have_no_spread() -> None:
    assert Summary.of([0.0, 0.0]).spread == 0.0


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(100, 91, True), (91, 100, True), (100, 89, False)]
)
def test_rounds_agree_within_a_tenth_of_the_larger(first: float, second: float, expected: bool) -> None:
    assert agree(first, second) is expected


def test_a_percentile_is_interpolated_between_its_neighbours() -> None:
    assert percentile([1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert percentile([1.0, 2.0, 4.0], 1.0) == 4.0
    assert percentile([7.0], 0.999) == 7.0


def test_an_empty_sequence_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="empty sequence"):
        percentile([], 0.5)


def test_latencies_become_microseconds_percentiles_and_a_rising_curve() -> None:
    sample = latency_sample([number / 1e6 for number in range(1000, 0, -1)], resident_megabytes=5.0)
    assert sample.values["p50_us"] == pytest.approx(500.5)
    assert sample.values["p99_us"] == pytest.approx(990.01)
    assert sample.values["p999_us"] == pytest.approx(999.001)
    assert sample.values["resident_megabytes"] == 5.0
    assert len(sample.curve_us) == len(CURVE_PARTS)
    assert list(sample.curve_us) == sorted(sample.curve_us)


def test_the_curve_of_rounds_is_the_middle_at_every_part() -> None:
    assert middle_curve([[1.0, 9.0], [2.0, 8.0], [3.0, 7.0]]) == [2.0, 8.0]


def test_a_figure_is_shown_in_its_unit() -> None:
    assert METRICS["records_per_second"].show(1_234_567) == "1,235 k rec/s"
    assert METRICS["rows_per_second"].show(1_234_567) == "1.23 M rows/s"
