"""Runs are loaded as they were saved, and the right two are compared."""

from pathlib import Path

import pytest
from tests.bench.figures import Sample
from tests.bench.results import Result, last_two, load_run
from tests.unit.bench.benching import RATE, rates, row, run


def test_a_run_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    written = run(row(rates(400, 410), rates(100, 90)))
    path = written.save(tmp_path)
    assert path.name == "2026-01-01T10-00-00.json"
    read = load_run(path)
    assert read.rows[0].summaries == written.rows[0].summaries
    assert read.rows[0].goals == written.rows[0].goals
    assert (read.machine, read.versions) == (written.machine, written.versions)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"rows": []}')
    with pytest.raises(ValueError, match="run it again"):
        load_run(path)


def test_a_result_keeps_rounds_the_middle_curve_and_the_last_series() -> None:
    first = Sample({RATE: 1.0}, [1.0, 2.0], {"partitions": [(1, 9.0)]})
    last = Sample({RATE: 3.0}, [3.0, 4.0], {"partitions": [(1, 8.0)]})
    result = Result.of("barnabas", [first, last], warm_rounds=2)
    assert result.summaries[RATE].middle == 2.0
    assert result.curve_us == [2.0, 3.0]
    assert result.series == {"partitions": [(1, 8.0)]}


def test_the_last_two_runs_are_those_that_share_a_row(tmp_path: Path) -> None:
    run(row(rates(1)), date="2026-01-01T10:00:00").save(tmp_path)
    run(row(rates(2)), date="2026-01-02T10:00:00").save(tmp_path)
    run(row(rates(3), name="spark-source"), date="2026-01-03T10:00:00").save(tmp_path)
    run(row(rates(4)), date="2026-01-04T10:00:00").save(tmp_path)
    before, after = last_two(tmp_path)
    assert (before.date, after.date) == ("2026-01-02T10:00:00", "2026-01-04T10:00:00")


def test_one_run_alone_is_not_compared(tmp_path: Path) -> None:
    run(row(rates(1))).save(tmp_path)
    with pytest.raises(LookupError, match="make bench"):
        last_two(tmp_path)
