"""The Spark session of our own commands: local, on a cluster, or through Spark Connect."""

import os
import shutil
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL = "local[*]"
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Rows leave Spark for Python in batches of this size.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
}
LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}


class SparkMissing(ImportError):
    """Spark cannot be started here; the text says what to install."""


def session_of(
    name: str, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A session for `--master`, `--remote`, or this machine."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing("Pipelines run on Spark: pip install 'barnabas[spark]'.") from error
    if remote is None and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SparkMissing("Spark needs Java 17 or newer: install it, and put `java` on the PATH.")
    os.environ.setdefault("PYSPARK_PYTHON", worker_python())
    builder = SparkSession.builder.appName(name)
    if remote is not None:
        builder = builder.remote(remote)
    else:
        builder = builder.master(master or LOCAL)
    is_local = remote is None and (master or LOCAL).startswith("local")
    for key, value in {**SETTINGS, **(LOCAL_SETTINGS if is_local else {}), **(settings or {})}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        # Spark warns about settings that a running server cannot change; they are optional here.
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    if remote is None:
        session.sparkContext.setLogLevel("ERROR")
    return session


def register_own_source(spark: "SparkSession") -> None:
    """Streams that are read after this have a data source of their own, until the next call.

    All streams share one data source that Spark has found, and each stream writes settings into it when it
    starts. Two streams that start at the same moment can destroy these settings: then all later tasks of
    this Spark fail with "Task not serializable"."""
    from barnabas.spark.source import BarnabasSource

    spark.dataSource.register(BarnabasSource)


def in_fewer_tasks(frame: "DataFrame") -> "DataFrame":
    """On this machine, rows without state are written by one task for each core, and not by one for each
    partition of the topics: to begin a task costs as much as some ten thousand rows."""
    tasks = _tasks_here(frame.sparkSession)
    return frame if tasks is None else frame.coalesce(tasks)


def read_in_fewer_tasks(spark: "SparkSession", options: Mapping[str, str]) -> dict[str, str]:
    """The options of a query that reads topics. On this machine a task for each core reads several
    partitions: each input partition has a cost of its own, also where Spark coalesces them."""
    tasks, given = _tasks_here(spark), {name.lower() for name in options}
    if tasks is None or given & {"minpartitions", "maxpartitions"}:
        return dict(options)
    return {**options, "maxPartitions": str(tasks)}


def _tasks_here(spark: "SparkSession") -> int | None:
    """None on a cluster: its cores may become more, so its tasks stay as they are."""
    if not hasattr(spark, "_jsparkSession") or not str(spark.sparkContext.master).startswith("local"):
        return None
    return int(spark.sparkContext.defaultParallelism)


def worker_python() -> str:
    """The Python in which this package is installed, for the processes that Spark starts: they start faster
    with our own script (worker_python.py says why)."""
    script = Path(sys.executable).with_name("barnabas-python")
    return str(script) if script.exists() else sys.executable
