"""A mirror that is killed repeatedly while records arrive copies each of them once and in order."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.test_jobs_mirror import committed
from tests.spark.topics import Topics

from barnabas.client.admin.types import OffsetSpec
from barnabas.ids import TopicPartition
from barnabas.spark.jobs.mirror import Mirror, mirror_once
from barnabas.spark.settings import Topics as Wanted
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = 3
START_SECONDS_MAX = 240.0
PAUSE_SECONDS = 0.2


def end_of(topics: Topics, copy: str) -> int:
    if copy not in topics.admin.list_topics():
        return 0
    where = TopicPartition(copy, 0)
    return topics.admin.list_offsets({where: OffsetSpec.LATEST})[where].offset


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_again_and_again(
    spark: "SparkSession", broker: Broker, topics: Topics, topic: str, tmp_path: Path
) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    command = [sys.executable, "-m", "barnabas.cli.main", "mirror", "--topic", topic, "--alias", topic]
    command += ["--source", broker.bootstrap, "--target", broker.bootstrap, "--rename", "copy.{topic}"]
    command += ["--checkpoint", checkpoint, "--every", "0", "--option", "maxOffsetsPerTrigger=40"]
    command += ["--master", "local[1]"]
    chance, sent = random.Random(topic), 0
    for number in range(KILLS):
        before = end_of(topics, f"copy.{topic}")
        with (tmp_path / f"output-{number}").open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS_MAX
        while end_of(topics, f"copy.{topic}") <= before:
            assert process.poll() is None, (tmp_path / f"output-{number}").read_text()
            assert time.monotonic() < deadline, "the mirror copies nothing"
            topics.numbers(topic, sent, sent + 50)
            sent += 50
            time.sleep(PAUSE_SECONDS)
        time.sleep(chance.random())
        process.kill()
        process.wait()
    client = {"bootstrap.servers": broker.bootstrap}
    job = Mirror(client, client, Wanted((topic,)), checkpoint, alias=topic, rename="copy.{topic}")
    mirror_once(spark, job)
    values = [int(record.value) for record in committed(broker, f"copy.{topic}")]
    assert values == list(range(sent))
