"""The commands of docs/jobs.md do what the page says."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.topics import Topics
from tests.spark.writing import append_to_table

from barnabas.cli.main import main
from barnabas.ids import TopicPartition
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
COMMANDS = dict(re.findall(r"<!-- example: (\w+) -->\n```sh\nbarnabas (.*?)```", PAGE, re.DOTALL))
PRINTED = dict(re.findall(r"<!-- example: (\w+) -->\n```sh\n[^`]*```\n\n```\n(.*?)```", PAGE, re.DOTALL))


def test_the_examples(
    spark: "SparkSession",
    broker: Broker,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(COMMANDS) == ["audit", "directory", "mirror", "backfill"]
    monkeypatch.chdir(tmp_path)
    topics.make("payments", 1)
    topics.make("payments-again", 1)
    topics.put("payments", [b'{"n":%d}' % number for number in range(100)], key=b"k")
    topics.admin.alter_consumer_group_offsets("billing", {TopicPartition("payments", 0): 40})
    rows = [(number, 4.0 * number) for number in range(6)]
    append_to_table(
        spark.createDataFrame(rows, "id int, amount double"),
        TableTarget(str(tmp_path / "tables" / "payments")),
    )
    for name, command in COMMANDS.items():
        words = shlex.split(command.replace("\\\n", " ").replace("./data", str(broker.data_dir)))
        # The same cluster is source and target, which --rename allows.
        words = [broker.bootstrap if word in ("localhost:9092", "localhost:9093") else word for word in words]
        assert main(words) == 0, name
        printed = capsys.readouterr().out
        if name in PRINTED:
            assert [line.split() for line in printed.splitlines()] == [
                line.split() for line in PRINTED[name].splitlines()
            ]
    assert [record.key for record in topics.records("payments-again")] == [b"3", b"4", b"5"]
    assert topics.committed("billing")[TopicPartition("eu.payments", 0)] == 40
