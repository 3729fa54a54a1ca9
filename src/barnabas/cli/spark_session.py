"""The options for Spark that several commands have, and the Spark session created from them."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.connecting import key_values
from barnabas.cli.failures import ToolError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help="where Spark runs (local[*])")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://host:15002")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


@contextmanager
def spark_session(options: argparse.Namespace, name: str) -> "Iterator[SparkSession]":
    """A Spark session for the block. If one runs in this process already, it is used and not stopped.

    Errors of Spark's tasks are raised as one sentence."""
    from barnabas.spark.queries import cause_of
    from barnabas.spark.session import session_of

    settings = key_values(options.conf, "--conf")
    running = _running(options)
    spark = running or session_of(f"barnabas {name}", options.master, options.remote, settings)

    from pyspark.errors import PySparkException

    try:
        yield spark
    except PySparkException as error:
        raise ToolError(f"Spark failed: {cause_of(error)}") from error
    finally:
        if running is None:
            spark.stop()


def _running(options: argparse.Namespace) -> "SparkSession | None":
    if options.master or options.remote:
        return None
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        # session_of raises an error that says what to install.
        return None
    return SparkSession.getActiveSession()
