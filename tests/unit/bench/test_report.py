"""Tables, the page and the pictures show the results of a run, also the goals that it missed."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from rich.console import Console
from tests.bench.document import place, section
from tests.bench.figures import CURVE_PARTS
from tests.bench.goals import KAFKA, OURS, Goal
from tests.bench.lines import failures, tables
from tests.bench.pictures import growth_lines, latency_curves, ratio_bars
from tests.bench.report import print_run
from tests.bench.results import Result, RowResult
from tests.unit.bench.benching import rates, row, run

CLIENT_RATE = "records_per_second"
MET = row(rates(500, 510, 490), rates(100, 110, 90))
MISSED = row(rates(200, 200), rates(100, 100), name="p1m", goal=3.0)


def clients() -> RowResult:
    results = [Result("ours send", [{CLIENT_RATE: 6e5}]), Result("other send", [{CLIENT_RATE: 3e5}])]
    goals = [Goal(CLIENT_RATE, 5.0, "other send", "ours send")]
    return RowResult("client-produce", "clients", "values", CLIENT_RATE, goals, results)


def test_brokers_are_shown_side_by_side_with_ratio_and_verdict() -> None:
    (table,) = tables(run(MET, MISSED))
    assert table.columns == ["row", "figure", OURS, KAFKA, "ratio", "goal"]
    assert table.lines[0].cells == ["p16k", "MB/s", "500 ±2%", "100 ±10%", "5.00x", ">= 4x, met"]
    assert table.lines[1].cells == ["p1m", "MB/s", "200 ±0%", "100 ±0%", "2.00x", ">= 3x, missed"]


def test_alone_there_is_no_ratio_and_no_verdict() -> None:
    (table,) = tables(run(row(rates(500))))
    assert table.columns == ["row", "figure", OURS, "goal"]
    assert table.lines[0].cells == ["p16k", "MB/s", "500", ">= 4x"]


def test_clients_are_shown_below_each_other() -> None:
    (table,) = tables(run(clients()))
    assert [line.cells[1] for line in table.lines] == ["ours send", "other send"]
    assert table.lines[0].cells[2:] == ["600 k rec/s", "2.00x other send (>= 5x, missed)"]


def test_a_goal_that_is_a_fixed_value_has_no_ratio() -> None:
    goals = [Goal(CLIENT_RATE, 7e5, None, "ours send")]
    (table,) = tables(run(replace(clients(), goals=goals)))
    assert table.lines[0].cells[2:] == ["600 k rec/s", ">= 700000, missed"]


def test_a_failed_row_is_a_line_of_its_own_and_counts_as_missed() -> None:
    broken = RowResult(
        "e2e", "broker", "work", "p50_us", [], [Result(OURS, [], failure="RuntimeError: gone")]
    )
    (table,) = tables(run(broken))
    assert table.lines[0].cells[1] == "barnabas failed: RuntimeError: gone"
    assert failures([broken]) == ["e2e (barnabas) failed: RuntimeError: gone"]


def test_the_terminal_shows_every_group() -> None:
    console = Console(width=140, record=True, file=None, quiet=False)
    with console.capture() as captured:
        print_run(console, run(MET, clients()))
    assert "500 ±2%" in captured.get()
    assert "600 k rec/s" in captured.get()


def test_the_page_gets_table_machine_versions_and_missed_goals() -> None:
    result = run(MET, MISSED)
    (table,) = tables(result)
    text = section(result, table, ["broker-ratios"])
    assert "| p16k | MB/s | 500 ±2% | 100 ±10% | 5.00x | >= 4x, met |" in text
    assert "cores 2" in text
    assert "commit abc" in text
    assert "- p1m: >= 3x MB/s of kafka: 2x, missed" in text
    assert "p16k: >=" not in text
    assert "![Times better, with the goals](pictures/broker-ratios.svg)" in text


def test_only_the_part_of_the_group_is_replaced() -> None:
    page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\nkept\n<!-- end y -->\n"
    placed = place(page, "x", "new")
    assert placed == page.replace("old", "new")
    with pytest.raises(ValueError, match="no place for z"):
        place(page, "z", "new")


def test_pictures_are_wellformed_and_drawn_only_where_there_is_something() -> None:
    curve = [float(number + 1) for number in range(len(CURVE_PARTS))]
    latency = RowResult("ack", "broker", "a < b", "p50_us", [], [Result(OURS, [{"p50_us": 9.0}], 0, curve)])
    points = {"partitions": [[1, 20.0], [2000, 25.0]]}
    growth = RowResult(
        "partitions", "growth", "w", "cpu_us_per_request", [], [Result(OURS, [], series=points)]
    )
    result = run(MET, MISSED, latency, growth, clients())
    for picture in (ratio_bars(result), latency_curves(result), growth_lines(result)):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert ratio_bars(result).count("rx='2'") == 3
    assert ratio_bars(run(row(rates(1)))) == latency_curves(run(MET)) == growth_lines(run(MET)) == ""
