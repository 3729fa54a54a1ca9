"""Where the paths of a pipeline's file point, and the tables of its sinks. Touches no Spark."""

from pathlib import Path

from barnabas.spark.pipeline.definition import TableSink
from barnabas.spark.tables.target import TableTarget


def path_in(directory: Path, text: str) -> str:
    """A path of the file, which begins at its directory; one with a scheme (s3://...) is left as it is."""
    return text if "://" in text else str((directory / text).resolve())


def table_of(sink: TableSink, directory: Path) -> TableTarget:
    return TableTarget(
        path=path_in(directory, sink.path),
        format=sink.format,
        mode=sink.mode,
        key=sink.key,
        partition_by=sink.partition_by,
        order_by=sink.order_by,
        evolve=sink.evolve,
    )
