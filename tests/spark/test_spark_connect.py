"""Queries through Spark Connect: the client has no JVM, and the server finds the format."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.topics import Topics

from barnabas.spark.session import worker_python

JOB = Path(__file__).with_name("connect_job.py")


@pytest.mark.timeout(600)
def test_batch_and_stream_over_connect(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.numbers(topic, 0, 7)
    done = subprocess.run(
        [sys.executable, JOB, topics.bootstrap, topic, tmp_path],
        env=os.environ | {"PYSPARK_PYTHON": worker_python()},
        capture_output=True,
        text=True,
        timeout=540,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert done.stdout.split("\n")[:2] == ["batch 7", "stream 7"]
