"""Maintains the tables of a pipeline, without Spark, even while the pipeline runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.spark.pipeline.definition import Pipeline, TableSink
from barnabas.spark.tables.maintenance import Maintained
from barnabas.spark.tables.store import maintain
from barnabas.spark.tables.target import TableError, TableTarget


class TableReport(NamedTuple):
    """What was done for a table, or why nothing could be done."""

    target: TableTarget
    done: Maintained | None
    problem: str | None


def tables_of(pipeline: Pipeline, directory: Path) -> list[TableTarget]:
    """The tables of a pipeline, each once, in the order of the sinks."""
    targets = [
        target for sink in pipeline.sinks if isinstance(sink, TableSink) for target in sink.targets(directory)
    ]
    return list({target.path: target for target in targets}.values())


def maintain_tables(targets: list[TableTarget], keep_days: float) -> Iterator[TableReport]:
    """Maintain each table; an error in one does not stop the others."""
    for target in targets:
        try:
            yield TableReport(target, maintain(target, keep_days), None)
        except TableError as error:
            yield TableReport(target, None, str(error))
        except Exception as error:
            # The libraries of the formats have no common error class.
            first_line = next(iter(str(error).splitlines()), "")
            yield TableReport(target, None, f"{target.path}: {type(error).__name__}: {first_line}")
