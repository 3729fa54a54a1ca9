"""Tables become records, once for each run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.topics import Topics
from tests.spark.writing import append_to_table

from barnabas.cli.main import main
from barnabas.spark.jobs.backfill import Backfill, backfill, records_of, rows_of
from barnabas.spark.jobs.clients import JobError
from barnabas.spark.jobs.table_frames import read_table
from barnabas.spark.sink.committing import commit_job
from barnabas.spark.sink.settings import write_settings
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [(1, "a", 1.5), (2, "b", None), (3, "b", 2.5)]


@pytest.fixture
def rows(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame(ROWS, "id int, kind string, amount double")


@pytest.mark.parametrize("form", ["delta", "iceberg", "parquet"])
def test_tables_of_each_format_are_read(
    spark: "SparkSession", rows: "DataFrame", tmp_path: Path, form: str
) -> None:
    path = str(tmp_path / "orders")
    target = TableTarget(path, form, partition_by=("kind",))
    append_to_table(rows, target)
    append_to_table(spark.createDataFrame([(4, "c", "new")], "id int, kind string, note string"), target)
    collected = read_table(spark, path).select("id", "kind", "amount", "note").orderBy("id").collect()
    assert [tuple(row) for row in collected] == [(*row, None) for row in ROWS] + [(4, "c", None, "new")]


def test_a_run_is_sent_once(
    spark: "SparkSession", rows: "DataFrame", broker: Broker, topics: Topics, topic: str
) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    job = Backfill(client, topic, f"run-{topic}", key="id")
    chosen = rows_of(spark, rows, "SELECT id, amount FROM source WHERE kind = 'b'")
    assert backfill(chosen, job) == (2, False)
    assert backfill(chosen, job) == (0, True)
    values = {record.key: record.value for part in (0, 1) for record in topics.records(topic, part)}
    assert values == {b"2": b'{"id":2,"amount":null}', b"3": b'{"id":3,"amount":2.5}'}


def test_the_transaction_itself_knows_its_run(broker: Broker, topics: Topics, topic: str) -> None:
    """Two runs that check before either is done: the second finds the marker of the first."""
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "delivery": "exactly-once"}
    settings = write_settings(given | {"transactional.id": f"id-{topic}", "runId": "1"}, is_stream=False)
    commit_job(settings, [])
    group = topics.admin.list_consumer_group_offsets(f"id-{topic}")
    (first,) = group.values()
    commit_job(settings, [])
    assert topics.admin.list_consumer_group_offsets(f"id-{topic}") == group
    again = write_settings(given | {"transactional.id": f"id-{topic}", "runId": "2"}, is_stream=False)
    commit_job(again, [])
    (second,) = topics.admin.list_consumer_group_offsets(f"id-{topic}").values()
    assert '"1"' in first.metadata and '"2"' in second.metadata


def test_how_rows_become_records(rows: "DataFrame") -> None:
    def made(**fields: Any) -> list[str]:
        return records_of(rows, Backfill({}, "t", "r", **fields)).schema.simpleString()[7:-1].split(",")

    assert made() == ["value:string"]
    assert made(key="id", value="text:kind") == ["value:string", "key:string"]
    assert records_of(rows.selectExpr("kind AS value"), Backfill({}, "t", "r", value="columns")).columns == [
        "value"
    ]
    for wrong, message in (
        ({"key": "kinds"}, "no column kinds; did you mean kind"),
        ({"value": "xml"}, "json, text:COLUMN or columns, not 'xml'"),
        ({"value": "columns"}, "Rename them in SQL"),
    ):
        with pytest.raises(JobError, match=message):
            made(**wrong)


def test_mistakes(
    spark: "SparkSession", broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["backfill", "--bootstrap-server", broker.bootstrap, "--topic", "t", "--table"]
    assert main([*arguments, str(tmp_path / "nothing")]) == 1
    assert "There is no table at" in capsys.readouterr().err
    (tmp_path / "lost" / "metadata").mkdir(parents=True)
    assert main([*arguments, str(tmp_path / "lost")]) == 1
    assert "There is no catalog of Iceberg tables" in capsys.readouterr().err
