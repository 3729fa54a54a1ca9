"""Our dump-log prints exactly what Kafka's prints for the same files, for every kind of file."""

import subprocess
from pathlib import Path

import pytest
from tests.clients.broker_process import PROGRAM
from tests.clients.client import CODECS
from tests.java.conftest import server_class
from tests.java.jvm import run_java
from tests.java.stocked import IDEMPOTENT, SEGMENTED, TIMED, codec_topic, partition_directory, stock

pytestmark = pytest.mark.java
TOPICS = (SEGMENTED, IDEMPOTENT, TIMED, *(codec_topic(codec) for codec in CODECS))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Path:
    path = tmp_path_factory.mktemp("dumped-by-both")
    server = server_class()(path)
    server.start()
    try:
        stock(server.bootstrap)
    finally:
        server.stop()
    return path


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot", ".txnindex"])
def test_the_same_is_printed(directory: Path, suffix: str) -> None:
    files = [path for topic in TOPICS for path in partition_directory(directory, topic).glob(f"*{suffix}")]
    assert files
    arguments = ["--files", ",".join(map(str, sorted(files))), "--print-data-log"]
    theirs = run_java("org.apache.kafka.tools.DumpLogSegments", *arguments)
    ours = subprocess.run([PROGRAM, "dump-log", *arguments], capture_output=True, text=True, timeout=120)
    assert ours.stdout.splitlines() == theirs.stdout.splitlines()
    assert (ours.returncode, ours.stderr) == (theirs.returncode, "")
