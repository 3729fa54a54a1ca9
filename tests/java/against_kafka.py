"""Runs the client suites against Apache Kafka from Maven: the same tests must pass there.

    python -m tests.java.against_kafka [pytest's arguments]

One Kafka serves all tests, with the same quick coordinators as our broker in these tests. Tests that kill
their broker get a Kafka of their own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clients.conftest import QUICK
from tests.java.jvm import JavaMissing, class_path
from tests.java.kafka_server import running_kafka

SUITES = [each for each in ("tests/clients", "tests/kafka_tools", "tests/console") if Path(each).exists()]


def main(arguments: list[str]) -> int:
    try:
        class_path()
    except JavaMissing as reason:
        print(reason, file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="against-kafka-") as directory,
        running_kafka(Path(directory), QUICK) as kafka,
    ):
        print(f"Apache Kafka is at {kafka.bootstrap}", flush=True)
        command = [sys.executable, "-m", "pytest", *(arguments or SUITES)]
        peer = {"BARNABAS_TEST_BOOTSTRAP": kafka.bootstrap, "BARNABAS_TEST_PEER": "kafka"}
        return subprocess.run(command, env={**os.environ, **peer}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
