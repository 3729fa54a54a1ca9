"""A broker, and a Spark that has the stock connector on its class path.

Spark takes jars only when its JVM starts: these tests do not share a process with those of tests/spark."""

import os
import sys
import uuid
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.spark.topics import Topics
from tests.spark_kafka.jars import JarsMissing, connector_jars

from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def jars() -> list[str]:
    try:
        return connector_jars()
    except JarsMissing as reason:
        pytest.fail(str(reason), pytrace=False)


@pytest.fixture(scope="session")
def spark(jars: list[str], tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(jars),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # Py4J's gateway leaves sockets of its handshake to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2", "log.retention.ms": "-1"}, subprocess=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def topics(broker: Broker) -> Iterator[Topics]:
    with Topics(broker.bootstrap) as topics:
        yield topics


@pytest.fixture
def topic(topics: Topics) -> str:
    """A topic of this test, with two partitions."""
    return topics.make(f"t-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def options(broker: Broker, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
