"""Jobs and pipelines through a Spark Connect server (`--remote sc://...`), as users start them: the client
has no JVM, and the server is a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow
import pytest
from tests.clients.broker_process import PROGRAM
from tests.spark.bare_python import ON_WORKERS, bare_python
from tests.spark.daemons import Daemon
from tests.spark.topics import Topics
from tests.spark.writing import committed_records
from tests.unit.spark.tables.filling import append

from barnabas.ids import TopicPartition
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import Mark, TableTarget
from barnabas.testing import Broker

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PIPELINE = """\
name: {topic}
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: {topic}-dead
sources:
  orders: {{topic: {topic}, decode: json, schema: "id long, amount double", bad_records: quarantine}}
steps:
  - {{name: priced, python: "pricing:price", from: [orders]}}
quality:
  priced:
    - {{name: positive, check: "amount > 0"}}
sinks:
  - {{from: priced, topic: {topic}-out, key: id}}
  - {{from: priced, table: {{path: ./tables/priced}}}}
  - from: priced
    table: {{path: ./tables/newest, format: iceberg, mode: upsert, key: [id], order_by: price}}
"""
PRICING = """\
def price(spark, orders):
    return orders.selectExpr("id", "amount", "amount * 2 AS price")
"""
Command = Callable[..., str]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # Libraries give warnings, and the garbage collector closes connections to SQLite.
    pytest.mark.filterwarnings("ignore"),
]


@contextmanager
def connect_server(folder: Path, python: Path | str = sys.executable) -> Iterator[str]:
    """Its address."""
    settings = {
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    arguments = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    arguments += ["--master", "local[2]"]
    server = Daemon(folder, "server", "spark-submit", "--class", SERVER, *arguments, python=python)
    try:
        yield f"sc://127.0.0.1:{server.logged(r'Spark Connect server started at: .*:([0-9]+)')}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture
def command(remote: str, tmp_path: Path) -> Command:
    """command("audit", ...) returns the output; it must succeed."""

    def run(*arguments: str | Path) -> str:
        words = [PROGRAM, *arguments, "--remote", remote]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        return done.stdout

    return run


def test_an_audit_of_topics_and_of_directories(
    command: Command, broker: Broker, topics: Topics, topic: str
) -> None:
    for partition in range(2):
        topics.put(topic, [b'{"n": %d}' % number for number in range(50)], partition, key=b"k%d" % partition)
    arguments = ("--topic", topic, "--duplicates", "--sequence-field", "$.n", "--json")
    for where in (("--bootstrap-server", broker.bootstrap), ("--log-dir", broker.data_dir)):
        report = json.loads(command("audit", *where, *arguments))
        assert (report["faults"], [each["records"] for each in report["partitions"]]) == (0, [50, 50])


def test_a_mirror(command: Command, broker: Broker, topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.numbers(topic, 0, 100)
    topics.admin.alter_consumer_group_offsets(f"group of {topic}", {TopicPartition(topic, 0): 40})
    arguments = ["mirror", "--source", broker.bootstrap, "--target", broker.bootstrap, "--topic", topic]
    arguments += ["--rename", "copy.{topic}", "--alias", topic, "--group", f"group of {topic}"]
    arguments += ["--checkpoint", "./mirror", "--once"]
    assert "100 records copied." in command(*arguments)
    topics.numbers(topic, 100, 130)
    assert "30 records copied." in command(*arguments)
    copies = committed_records(broker.bootstrap, f"copy.{topic}")
    assert [int(record.value) for record in copies] == list(range(130))
    assert topics.committed(f"group of {topic}")[TopicPartition(f"copy.{topic}", 0)] == 40


@pytest.mark.parametrize("form", ["delta", "iceberg", "parquet"])
def test_a_backfill(
    form: str, command: Command, broker: Broker, topics: Topics, topic: str, tmp_path: Path
) -> None:
    rows = pyarrow.table({"id": range(6), "amount": [4.0 * number for number in range(6)]})
    append(TableTarget(str(tmp_path / "payments"), format=form), rows, Mark("query", 0))
    arguments = ["backfill", "--table", "./payments", "--bootstrap-server", broker.bootstrap]
    arguments += ["--topic", topic, "--sql", "SELECT * FROM source WHERE amount > 10", "--key", "id"]
    arguments += ["--run-id", f"run of {topic}"]
    assert f"3 records sent to {topic}" in command(*arguments)
    assert "was sent before" in command(*arguments)
    records = committed_records(broker.bootstrap, topic)
    assert sorted(record.key for record in records) == [b"3", b"4", b"5"]


def test_a_pipeline(command: Command, broker: Broker, topics: Topics, topic: str, tmp_path: Path) -> None:
    for name in ("out", "dead"):
        topics.make(f"{topic}-{name}")
    (tmp_path / "pricing.py").write_text(PRICING)
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap))
    assert "is valid" in command("pipeline", "validate", file, "--deep")
    topics.put(topic, [b'{"id": 1, "amount": 2}', b"{no json", b'{"id": 2, "amount": -1}'])
    command("pipeline", "run", file, "--once")
    topics.put(topic, [b'{"id": 1, "amount": 3}', b'{"id": 3, "amount": 4}'])
    assert "STATE" in command("pipeline", "run", file, "--once")
    out = committed_records(broker.bootstrap, f"{topic}-out")
    assert sorted(json.loads(record.value)["price"] for record in out) == [4.0, 6.0, 8.0]
    table = store_of(TableTarget(str(tmp_path / "tables" / "priced"))).read()
    assert sorted(table.column("price").to_pylist()) == [4.0, 6.0, 8.0]
    newest = store_of(TableTarget(str(tmp_path / "tables" / "newest"), format="iceberg")).read()
    assert sorted(zip(newest["id"].to_pylist(), newest["price"].to_pylist(), strict=True)) == [(1, 6), (3, 8)]
    dead = committed_records(broker.bootstrap, f"{topic}-dead")
    assert sorted(record.value[:8] for record in dead) == [b'{"id":2,', b"{no json"]


def test_a_server_without_our_package_is_reported(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(topic=topic, bootstrap=broker.bootstrap))
    (tmp_path / "pricing.py").write_text(PRICING)
    with ExitStack() as stack:
        with monkeypatch.context() as server:
            server.setenv(ON_WORKERS, "1")
            server.delenv("PYTHONPATH", raising=False)
            address = stack.enter_context(connect_server(tmp_path, bare_python(tmp_path)))
        words = [PROGRAM, "pipeline", "run", file, "--once", "--remote", address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "cannot import barnabas.spark.source: No module named 'barnabas'. Install the libraries" in line
