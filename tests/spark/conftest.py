"""One broker and one Spark session for all tests of the data source.

Most tests drive the readers as Spark's Python workers do, without a JVM; those that ask for `spark` run on a
real Spark, which is started when the first of them does."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.topics import Topics

from barnabas.spark import brokers
from barnabas.spark.decode import dead_letters
from barnabas.spark.session import worker_python
from barnabas.spark.sink import clusters, sending
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For all Java processes of these tests, also those of clusters and of drivers that are killed. Java compiles
# quickly instead of well, since most of its code runs only a few times, and its collector needs no threads.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")

SESSION = {
    "spark.master": "local[2]",
    "spark.app.name": "barnabas tests",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Spark's Derby, which a test reads, would leave its log in the current directory.
    "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
    # Checkpoints of tests need not survive the machine.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """In a process of its own, as Spark's workers see brokers. BARNABAS_TEST_BOOTSTRAP=127.0.0.1:port
    points the tests at another broker, for example at Apache Kafka."""
    if FOREIGN_BOOTSTRAP:
        # Never started: only its address is of use.
        yield Broker(data_dir=Path(), port=int(FOREIGN_BOOTSTRAP.rpartition(":")[2]))
        return
    with Broker(subprocess=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def topics(broker: Broker) -> Iterator[Topics]:
    with Topics(broker.bootstrap) as topics:
        yield topics


@pytest.fixture
def topic(topics: Topics) -> str:
    """A topic of this test, with two partitions."""
    return topics.make(f"t-{uuid.uuid4().hex[:12]}")


@pytest.fixture(autouse=True, scope="session")
def quick_java() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Every `java` reads this variable.
        patch.setenv("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
        yield


@pytest.fixture(autouse=True, scope="session")
def connections_closed() -> Iterator[None]:
    yield
    dead_letters.close_all()
    sending.close_all()
    clusters.close_all()
    brokers.close_all()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    # The workers are this Python, with this package.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python()
    builder = SparkSession.builder
    for name, value in SESSION.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def options(broker: Broker, topic: str) -> dict[str, str]:
    """The options of a query of this test's topic."""
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[[str], str]:
    return lambda name="checkpoint": str(tmp_path / name)


@pytest.fixture
def stream(spark: "SparkSession", options: dict[str, str]) -> Callable[..., Any]:
    """A streaming DataFrame of this test's topic, with these options beside."""
    return lambda **more: spark.readStream.format("barnabas").options(**options, **more).load()
