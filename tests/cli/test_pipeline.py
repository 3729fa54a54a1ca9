"""The commands of `barnabas pipeline` that need no Spark: mistakes with their lines, the status of a pipeline
that has not run, maintenance of tables."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.unit.spark.tables.filling import append, orders

from barnabas.cli.pipeline import TABLE_HEADERS
from barnabas.client import Admin
from barnabas.client.admin import NewTopic
from barnabas.spark.pipeline.failures import PLANNING, LastFailure
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.topic_checks import topic_warnings
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import Mark, TableTarget

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders" / "pipeline.yaml"
SMALL = """\
name: small-{name}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  orders: {{topic: orders}}
sinks:
  - {{from: orders, topic: copies}}
"""
TABLES = """\
name: tables
checkpoint: ./state
sources:
  orders: {topic: orders, decode: json, schema: "id long"}
sinks:
  - {from: orders, table: {path: ./tables/of-delta, format: delta}}
  - {from: orders, table: {path: ./tables/of-iceberg, format: iceberg, mode: upsert, key: [id]}}
  - {from: orders, table: {path: ./tables/of-parquet, format: parquet}}
"""
BATCHES = 3


@pytest.fixture
def file(tmp_path: Path, bootstrap: str, topic_name: str) -> Path:
    path = tmp_path / "pipeline.yaml"
    path.write_text(SMALL.format(name=topic_name, bootstrap=bootstrap))
    return path


def test_the_example_is_valid(run: Run) -> None:
    ran = run("pipeline", "validate", str(EXAMPLE))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        f"{EXAMPLE} is valid: 1 sources, 3 steps, 3 sinks.",
        "SQL and tables were not checked; --deep checks them with Spark.",
    ]


def test_mistakes_are_printed_with_their_lines(run: Run, file: Path) -> None:
    file.write_text(
        file.read_text().replace("from: orders", "from: oders").replace("topic: orders", "topc: orders")
    )
    ran = run("pipeline", "validate", str(file))
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"{file}:5: source orders has no field 'topc'; did you mean topic?",
        f"{file}:5: Source orders needs either topics or a pattern.",
        f"{file}:7: A sink reads 'oders', which is not a source or step; did you mean orders?",
        f"Error: {file} has 3 mistakes; nothing was started.",
    ]


def test_a_function_that_cannot_be_imported(run: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "pricing_without_tax.py").write_text("import taxes_of_nowhere\n")
    (tmp_path / "pricing_of_others.py").write_text("def price(spark, offers):\n    return offers\n")
    steps = (
        "steps:\n"
        "  - {name: priced, python: 'pricing_without_tax:price', from: [orders]}\n"
        "  - {name: offered, python: 'pricing_of_others:price', from: [orders]}\n"
        "sinks:\n"
    )
    file.write_text(file.read_text().replace("sinks:\n", steps))
    ran = run("pipeline", "validate", str(file))
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"{file}:7: Step priced: its function pricing_without_tax:price cannot be imported:"
        " ModuleNotFoundError: No module named 'taxes_of_nowhere' (pricing_without_tax.py, line 1,"
        " in <module>)",
        f"{file}:8: Step offered calls its function with (spark, orders=...), which it does not take:"
        " missing a required argument: 'offers'.",
        f"Error: {file} has 2 mistakes; nothing was started.",
    ]
    # A pipeline with such a mistake can still be looked at.
    assert run("pipeline", "status", str(file)).code == 0


def test_topics_that_do_not_exist(file: Path, admin: Admin, topic_name: str) -> None:
    admin.create_topics([NewTopic(topic_name, 1, 1)])
    text = file.read_text().replace("topic: orders", f"topic: {topic_name}x")
    file.write_text(text.replace("topic: copies", f"topic: {topic_name}"))
    (warning,) = topic_warnings(load(file))
    assert warning == (
        f"Source orders reads the topic {topic_name}x, which does not exist; did you mean {topic_name}?"
    )


def test_the_status_without_a_broker(run: Run, file: Path, bootstrap: str, tmp_path: Path) -> None:
    file.write_text(file.read_text().replace(bootstrap, "127.0.0.1:1"))
    commits = tmp_path / "state" / "orders-to-copies" / "commits"
    commits.mkdir(parents=True)
    (commits / "4").write_text("v1")
    ran = run("pipeline", "status", str(file))
    assert ran.code == 1
    assert ran.lines[1].split()[2:5] == ["-", "-", "5"]
    (sentence,) = ran.err.splitlines()
    assert sentence.startswith("Error: The lag is not known: ")
    assert sentence.endswith(" Check that the broker runs.")
    (entry,) = json.loads(run("pipeline", "status", str(file), "--json").out)
    assert (entry["lag"], entry["batches"]) == (None, 5)


def test_a_missing_file(run: Run, tmp_path: Path) -> None:
    ran = run("pipeline", "run", str(tmp_path / "none.yaml"))
    assert (ran.code, ran.err) == (1, f"Error: {tmp_path / 'none.yaml'}: the file does not exist.\n")


def test_the_status_of_a_pipeline_that_has_not_run(run: Run, file: Path) -> None:
    ran = run("pipeline", "status", str(file))
    assert ran.code == 0
    header, line = ran.lines
    assert header.split() == ["QUERY", "GROUP", "TOPIC", "LAG", "BATCHES", "LAST-BATCH", "ROWS/S"]
    assert line.split()[0] == "orders-to-copies"
    assert line.split()[2:] == ["-", "-", "0", "-", "-"]


def test_the_status_of_a_pipeline_that_failed(run: Run, file: Path, tmp_path: Path) -> None:
    last_failure = LastFailure(load(file), tmp_path)
    last_failure.keep("orders-to-copies", "Check the path.")
    ran = run("pipeline", "status", str(file))
    assert (ran.code, ran.lines[-1]) == (0, "orders-to-copies has failed: Check the path.")
    (entry,) = json.loads(run("pipeline", "status", str(file), "--json").out)
    assert entry["error"] == "Check the path."
    commits = tmp_path / "state" / "orders-to-copies" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1")
    later = time.time() + 10
    os.utime(commits / "0", (later, later))
    assert "has failed" not in run("pipeline", "status", str(file)).out, "a later batch has ended well"
    last_failure.keep(PLANNING, "A column does not exist.")
    os.utime(commits / "0", (0, 0))
    assert (
        run("pipeline", "status", str(file))
        .lines[-1]
        .endswith("has failed: Planning failed: A column does not exist.")
    )
    last_failure.forget()
    assert "has failed" not in run("pipeline", "status", str(file)).out


def test_the_status_as_json(run: Run, file: Path) -> None:
    assert '"query": "orders-to-copies"' in run("pipeline", "status", str(file), "--json").out


def test_nothing_to_replay(run: Run, file: Path) -> None:
    ran = run("pipeline", "replay-dlq", str(file))
    assert ran.code == 1
    assert "has no dead_letters" in ran.err


@pytest.fixture
def tables(tmp_path: Path) -> list[TableTarget]:
    """A table of each format, with a small file for each batch."""
    (tmp_path / "tables.yaml").write_text(TABLES)
    targets = [
        TableTarget(str(tmp_path / "tables" / f"of-{form}"), format=form)
        for form in ("delta", "iceberg", "parquet")
    ]
    for target in targets:
        for batch in range(BATCHES):
            append(target, orders((batch, "tea", 2.5)), Mark("query", batch))
    return targets


LIBRARIES_WARN = pytest.mark.filterwarnings("ignore")


@LIBRARIES_WARN
def test_tables_are_maintained(run: Run, tmp_path: Path, tables: list[TableTarget]) -> None:
    ran = run("pipeline", "maintain", str(tmp_path / "tables.yaml"), "--keep-days", "0")
    assert (ran.code, ran.err) == (0, "")
    header, *lines = [line.split() for line in ran.lines]
    assert header == TABLE_HEADERS
    assert header[:4] == ["TABLE", "FORMAT", "FILES", "AFTER"]
    assert [line[:4] for line in lines] == [
        ["of-delta", "delta", "3", "1"],
        ["of-iceberg", "iceberg", "3", "1"],
        ["of-parquet", "parquet", "3", "3"],
    ]
    assert all(int(line[4]) > 0 and int(line[5]) > 0 for line in lines)
    for target in tables:
        assert sorted(store_of(target).read().column("id").to_pylist()) == [0, 1, 2]


@LIBRARIES_WARN
def test_the_report_as_json(run: Run, tmp_path: Path, tables: list[TableTarget]) -> None:
    ran = run("pipeline", "maintain", str(tmp_path / "tables.yaml"), "--keep-days", "0", "--json")
    reports = json.loads(ran.out)
    assert [each["table"] for each in reports] == [target.path for target in tables]
    assert [(each["files_before"], each["files_after"]) for each in reports] == [(3, 1), (3, 1), (3, 3)]
    assert {each["problem"] for each in reports} == {None}


@LIBRARIES_WARN
def test_files_younger_than_a_week_are_kept(run: Run, tmp_path: Path, tables: list[TableTarget]) -> None:
    ran = run("pipeline", "maintain", str(tmp_path / "tables.yaml"), "--json")
    assert {each["files_swept"] for each in json.loads(ran.out)} == {0}


@LIBRARIES_WARN
def test_a_missing_table_does_not_stop_the_others(
    run: Run, tmp_path: Path, tables: list[TableTarget]
) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(TABLES.replace("of-delta", "of-nobody"))
    ran = run("pipeline", "maintain", str(file))
    assert ran.code == 1
    path = tmp_path / "tables" / "of-nobody"
    assert ran.err == f"Error: There is no delta table at {path} yet: run the pipeline first.\n"
    assert ran.lines[1].split() == ["of-nobody", "delta", *["-"] * 6]
    assert ran.lines[2].split()[:4] == ["of-iceberg", "iceberg", "3", "1"]


@LIBRARIES_WARN
def test_a_damaged_table_is_reported_in_a_sentence(
    run: Run, tmp_path: Path, tables: list[TableTarget]
) -> None:
    for path in Path(tables[0].path).rglob("_delta_log/*.json"):
        path.write_text("{")
    ran = run("pipeline", "maintain", str(tmp_path / "tables.yaml"))
    assert ran.code == 1
    assert ran.err.startswith(f"Error: {tables[0].path}: ")
    assert len(ran.err.splitlines()) == 1


def test_no_table_to_maintain(run: Run, file: Path) -> None:
    ran = run("pipeline", "maintain", str(file))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"Error: {file} has no sink that is a table, so there is nothing to maintain.\n"


@pytest.mark.parametrize("days", ["-1", "week", "inf", "nan"])
def test_invalid_numbers_of_days(run: Run, file: Path, days: str) -> None:
    ran = run("pipeline", "maintain", str(file), f"--keep-days={days}")
    assert ran.code == 1
    assert f"{days!r} is not a number of days" in ran.err


@LIBRARIES_WARN
def test_no_spark_is_loaded(run_process: Run, tmp_path: Path, tables: list[TableTarget]) -> None:
    script = tmp_path / "without_spark.py"
    script.write_text(
        "import sys\nsys.modules['pyspark'] = None\n"
        "from barnabas.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    arguments = [str(script), "pipeline", "maintain", str(tmp_path / "tables.yaml")]
    ran = run_process(*arguments, program=Path(sys.executable))
    assert (ran.code, ran.err) == (0, "")


def test_a_project_for_spark_is_written(run: Run, tmp_path: Path) -> None:
    ran = run("pipeline", "export", str(EXAMPLE), str(tmp_path / "project"))
    assert (ran.code, ran.err) == (0, "")
    assert (
        ran.lines[-1] == f"Run it: spark-pipelines run --spec {tmp_path / 'project' / 'spark-pipeline.yml'}"
    )
