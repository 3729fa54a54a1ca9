"""Results of tests of faults: the table at the end of a run, and docs/reliability.md."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.jepsen import report
from tests.jepsen.catalogue import TESTS
from tests.jepsen.checker import Kind
from tests.jepsen.report import KAFKA, OURS, PAGE, Result, document, read_committed, update
from tests.jepsen.report_text import KINDS
from tests.jepsen.results import ROOT, Row
from tests.jepsen.summary import WIDTH, number_of, outcomes, text_of


def function(seed: int | None = 1, ok: bool = True, **other: Any) -> Row:
    """The row of a test function."""
    origin = {"peer": OURS, "run": "1", "date": "2026-01-02", "commit": "0123456789ab"}
    return {"test": "t01_leader_killed", "function": "test_it", "seed": seed, "ok": ok, **origin, **other}


def stage(seed: int, *recoveries: float, operations: int = 100, **other: Any) -> Row:
    """The row of a Stage."""
    row = function(seed, **other)
    del row["function"]
    seconds = {f"writable ({place})": each for place, each in enumerate(recoveries)}
    found = {"recovery_seconds": seconds | {"in sync at last": 99.0}, "figures": {}}
    return row | found | {"counts": {"operations": operations}}


def result(rounds: int = 20, passed: int = 20, peer: str = OURS, test: str = "T01") -> Result:
    return Result(test, peer, rounds, passed, 3.25, 1000, "2026-01-01", "0123456789ab")


# ---- the table of a run


def test_a_round_passes_if_all_functions_pass_with_its_seed() -> None:
    rows = [function(1), function(1, function="test_more"), function(2), function(2, False), function(3)]
    (found,) = outcomes(rows)
    assert (found.number, found.rounds, found.passed, found.failed) == ("T01", 3, 2, 1)


def test_a_function_without_a_seed_belongs_to_the_first_round() -> None:
    (found,) = outcomes([function(7), function(8), function(None, False)])
    assert (found.rounds, found.passed) == (2, 1)
    (found,) = outcomes([function(None)])
    assert (found.rounds, found.passed) == (1, 1)


def test_the_recovery_of_a_round_is_its_longest() -> None:
    rows = [stage(1, 3.0, 0.1), function(1), stage(2, 5.0), function(2), stage(3, 0.2, 9.0), function(3)]
    (found,) = outcomes(rows)
    assert (found.recovery_seconds_median, found.recovery_seconds_max) == (5.0, 9.0)
    assert found.operations == 300


def test_a_run_that_did_not_come_to_its_end_has_no_counts() -> None:
    (found,) = outcomes([stage(1) | {"counts": None}, function(1, False)])
    assert (found.failed, found.operations, found.recovery_seconds_max) == (1, 0, None)


def test_rows_of_other_tests_are_left_out() -> None:
    assert outcomes([function(test="soak_portion")]) == []


def test_the_table_has_a_line_for_each_test_and_fits() -> None:
    rows = [function(1), stage(1, 2.5, operations=123_456), function(1, False, test="t22_" + "torn_" * 8)]
    lines = text_of(outcomes(rows)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    (first,) = [line for line in lines if "T01 leader killed" in line]
    assert re.findall(r"[\d,.]+(?: s)?", first)[1:] == ["1", "1", "0", "2.5 s", "2.5 s", "123,456"]


# ---- what is committed


def test_a_run_replaces_a_committed_result_with_as_many_rounds() -> None:
    committed = {("T01", OURS): result(rounds=2, passed=2)}
    (updated,) = update(committed, [function(1), function(2, False)]).values()
    assert (updated.rounds, updated.passed, updated.date) == (2, 1, "2026-01-02")


def test_a_run_with_fewer_rounds_replaces_nothing() -> None:
    committed = {("T01", OURS): result()}
    assert update(committed, [function(1)]) == committed


def test_each_run_and_each_cluster_has_its_own_result() -> None:
    rows = [
        function(1, run="2"),
        function(2, run="2"),
        function(3, False, run="3"),
        function(4, False, peer=KAFKA, run="4"),
    ]
    updated = update({}, rows)
    assert updated["T01", OURS].passed == updated["T01", OURS].rounds == 2
    assert (updated["T01", KAFKA].passed, updated["T01", KAFKA].rounds) == (0, 1)


def test_the_longest_run_counts_if_there_are_hours() -> None:
    def run(hours: float, number: str) -> list[Row]:
        soak: dict[str, Any] = {"test": "t38_soak", "run": number}
        return [stage(1, 1.0, **soak) | {"figures": {"hours": hours}}, function(1, **soak)]

    updated = update({}, [*run(8.0, "1"), *run(0.05, "2")])
    assert updated["T38", OURS].hours == 8.0
    assert "| 8 hours: passed |" in document(updated)
    # A later run of as many whole hours counts instead, also if it was some minutes shorter.
    later = update({}, [*run(1.1, "1"), *run(1.02, "2")])
    assert later["T38", OURS].hours == 1.02


def test_what_is_committed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "COMMITTED", tmp_path / "results.json")
    assert read_committed() == {}
    results = {("T01", OURS): result(), ("T01", KAFKA): result(peer=KAFKA)}
    report.write_committed(results)
    assert read_committed() == results


# ---- the page


def test_the_page_is_what_the_command_writes_from_the_committed_results() -> None:
    assert PAGE.read_text() == document(read_committed()), "run: python -m tests.jepsen.report"


def test_the_page_shows_what_passed_what_failed_and_what_was_not_run() -> None:
    page = document({("T01", OURS): result(), ("T02", OURS): result(passed=19, test="T02")})
    lines = {line[2:5]: line for line in page.splitlines() if re.match(r"\| T\d\d ", line)}
    assert "T01" in lines
    assert "| 20 of 20 | 3.2 s | 2026-01-01, 0123456 |" in page
    assert "| **19 of 20** |" in page
    assert page.count("not run yet") == len(TESTS) - 2 + 2 * sum(row.on_kafka for row in TESTS.values()) - 2


def test_every_test_has_a_row() -> None:
    files = [path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_t[0-9][0-9]_*.py")]
    missing = [name for name in files if number_of(name) not in TESTS]
    assert missing == []
    assert list(TESTS) == [f"T{number:02}" for number in range(1, 39)]


def test_make_runs_on_kafka_what_the_page_compares() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (listed,) = re.findall(r"^ALL_FAULTS := \$\(if \$\(PEER\),([t\d ]+),t\)$", makefile, re.MULTILINE)
    assert listed.upper().split() == [test for test, row in TESTS.items() if row.on_kafka]


def test_every_kind_of_finding_is_explained() -> None:
    assert list(KINDS) == list(Kind)
