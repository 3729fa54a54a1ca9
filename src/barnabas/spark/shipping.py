"""Sends code to the workers of a cluster, and checks that they can run it.

Workers get this package with its compiled kernels, and the modules beside the file of a pipeline, as an
archive that Spark unpacks there: compiled modules cannot be imported from a zip. Libraries must be installed
on the workers. Writes a temporary file; sets PYTHONPATH for processes that Spark starts on this machine."""

import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import barnabas

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

FOLDER = "barnabas_shipped"
ARCHIVES = "spark.archives"
WORKER_PATH = "spark.executorEnv.PYTHONPATH"
# Spark finds data sources in the modules whose names begin like this.
PACKAGES = ("barnabas", "pyspark_barnabas", "pyspark_barnabas_table")
SUFFIXES = (".py", ".so", ".json", ".txt")
# What tasks import.
MODULES = ("pyarrow", "barnabas.spark.source", "barnabas.spark.tables.sink", "barnabas.spark.tables.files")


class WorkersUnfit(Exception):
    """The workers of a cluster cannot run our tasks; the text says what is missing there."""


@contextmanager
def shipment(modules: Path | None, settings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The settings of a session whose workers get the package and the modules in this directory.

    The archive must stay until the session ends: workers that start later get it too."""
    with tempfile.TemporaryDirectory(prefix="barnabas-") as folder:
        archive = Path(folder) / f"{FOLDER}.zip"
        write_archive(archive, modules)
        yield {
            **settings,
            ARCHIVES: ",".join(filter(None, (settings.get(ARCHIVES), f"{archive}#{FOLDER}"))),
            WORKER_PATH: os.pathsep.join(filter(None, (FOLDER, settings.get(WORKER_PATH)))),
        }


def write_archive(archive: Path, modules: Path | None) -> None:
    """Modules of the pipeline come last, so they cannot hide our own."""
    source = Path(barnabas.__file__).parent.parent
    names: dict[str, Path] = {}
    for package in PACKAGES:
        for path in _files(source / package):
            names.setdefault(path.relative_to(source).as_posix(), path)
    for path in _modules(modules) if modules is not None else ():
        names.setdefault(path.relative_to(modules or path).as_posix(), path)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for name, path in names.items():
            written.write(path, name)


def _files(package: Path) -> Iterator[Path]:
    for path in sorted(package.rglob("*")):
        if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
            yield path


def _modules(directory: Path) -> Iterator[Path]:
    """The modules and packages in a directory."""
    yield from sorted(directory.glob("*.py"))
    for initial in sorted(directory.glob("*/__init__.py")):
        yield from _files(initial.parent)


def put_on_path(modules: Path) -> None:
    """Let processes that Spark starts on this machine import the modules in a directory."""
    parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    directory = str(modules.absolute())
    if directory not in parts:
        os.environ["PYTHONPATH"] = os.pathsep.join([directory, *filter(None, parts)])


def check_workers(spark: "SparkSession") -> None:
    """Run one small job on the workers; raises WorkersUnfit if they cannot run our tasks."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql.utils import is_remote

    from barnabas.spark.causes import cause_of

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        answers = _answers_of_server(spark) if is_remote() else _answers_of_workers(spark)
    except (Py4JJavaError, PySparkException) as error:
        raise WorkersUnfit(
            f"The workers cannot run Python {version}: {cause_of(error)}. Install it there with pyarrow, and"
            " set PYSPARK_PYTHON to its path."
        ) from error
    problems = sorted(answer for answer in answers if answer)
    if problems:
        raise WorkersUnfit(
            f"The workers cannot run the tasks: {problems[0]}. Install the libraries there, for example with"
            f" pip install 'barnabas[spark]' for Python {version}."
        )


def _answers_of_workers(spark: "SparkSession") -> list[str]:
    context = spark.sparkContext
    count = max(2, context.defaultParallelism)
    answers: list[str] = context.parallelize(range(count), count).map(_look()).distinct().collect()
    return answers


def _answers_of_server(spark: "SparkSession") -> list[str]:
    """A Connect server gets nothing from us: it finds data sources when it starts, in what is installed."""
    look = _look()

    def answers(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([look(0)])], ["answer"])

    rows = spark.range(0, 2, 1, 2).mapInArrow(answers, "answer string").distinct().collect()
    return [str(row[0]) for row in rows]


def _look() -> Any:
    """A function for workers. It is inside of another one so that Spark sends its code: the workers may not
    be able to import this module."""
    modules = MODULES

    def look(_: int) -> str:
        import importlib
        import platform

        for module in modules:
            try:
                importlib.import_module(module)
            except Exception as error:
                place = f"{platform.node()} (Python {platform.python_version()}, {platform.machine()})"
                return f"{place} cannot import {module}: {error}"
        return ""

    return look
