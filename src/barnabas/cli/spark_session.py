"""The options for Spark that several commands have, and the Spark session created from them."""

import argparse
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.connecting import key_values
from barnabas.cli.failures import ToolError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long a Java process may take to end after it refuses connections.
EXIT_SECONDS = 2.0
# Where Spark logs errors that it also raises, with their stack traces.
ERROR_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help="where Spark runs (local[*])")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://host:15002")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )
    parser.add_argument("--ui", action="store_true", help="serve Spark's web pages, and print their address")


@contextmanager
def spark_session(
    options: argparse.Namespace, name: str, modules: Path | None = None
) -> "Iterator[SparkSession]":
    """A Spark session for the block. If one runs in this process already, it is used and not stopped.

    `modules` is a directory whose modules tasks may import. Errors of Spark's tasks are raised as one
    sentence."""
    from barnabas.spark.causes import JAVA_ENDED, cause_of

    with _session(options, name, modules) as spark:
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger

        for logger in ERROR_LOGGERS:
            PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
        if options.ui:
            print(f"Spark's web pages: {spark.sparkContext.uiWebUrl}", file=sys.stderr, flush=True)
        try:
            _check_workers(options, spark)
            yield spark
        except Exception as error:
            if _has_java_ended(EXIT_SECONDS if isinstance(error, OSError) else 0):
                # Calls to it are refused, which says nothing about the cause.
                raise ToolError(JAVA_ENDED) from error
            if isinstance(error, PySparkException):
                raise ToolError(f"Spark failed: {cause_of(error)}") from error
            raise


@contextmanager
def _session(options: argparse.Namespace, name: str, modules: Path | None) -> "Iterator[SparkSession]":
    running = _running(options)
    if running is not None:
        yield running
        return
    from barnabas.spark.session import session_of

    with _shipped(options, modules) as settings:
        spark = session_of(f"barnabas {name}", options.master, options.remote, settings)
        try:
            yield spark
        finally:
            if not _has_java_ended():
                spark.stop()


@contextmanager
def _shipped(options: argparse.Namespace, modules: Path | None) -> Iterator[dict[str, str]]:
    """The settings, with those that send our code to workers."""
    from barnabas.spark.shipping import put_on_path, shipment

    if modules is not None:
        put_on_path(modules)
    if _is_cluster(options):
        with shipment(modules, _settings(options)) as settings:
            yield settings
    else:
        yield _settings(options)


def _is_cluster(options: argparse.Namespace) -> bool:
    return options.master is not None and not options.master.startswith("local")


def _check_workers(options: argparse.Namespace, spark: "SparkSession") -> None:
    from barnabas.spark.shipping import WorkersUnfit, check_workers

    if _is_cluster(options) or options.remote is not None:
        try:
            check_workers(spark)
        except WorkersUnfit as error:
            raise ToolError(str(error)) from error


def _settings(options: argparse.Namespace) -> dict[str, str]:
    if options.ui and options.remote:
        raise ToolError("With --remote, Spark's web pages are those of the server: open them there.")
    return {**({"spark.ui.enabled": "true"} if options.ui else {}), **key_values(options.conf, "--conf")}


def _has_java_ended(seconds: float = 0) -> bool:
    """Whether the Java process that Spark started for this session is gone, or goes within this time."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _running(options: argparse.Namespace) -> "SparkSession | None":
    if options.master or options.remote:
        return None
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        # session_of raises an error that says what to install.
        return None
    return SparkSession.getActiveSession()
