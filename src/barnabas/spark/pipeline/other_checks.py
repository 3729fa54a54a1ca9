"""Checks of tables that are read, of sinks that get whole batches, and of functions of users."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from barnabas.spark.pipeline.definition import (
    DatabaseSink,
    FunctionSink,
    Pipeline,
    Sink,
    TableSink,
    TopicSink,
    path_in,
)
from barnabas.spark.pipeline.problems import meant
from barnabas.spark.tables.origin import JDBC, TableOrigin


def origin_problems(name: str, origin: TableOrigin, pipeline: Pipeline) -> Iterator[str]:
    if name in pipeline.sources:
        yield f"The name {name} is used twice: sources, tables and steps need different names."
    if bool(origin.path) == bool(origin.url):
        yield f"Table {name} needs either path, for files, or url, for a database."
    if origin.url and bool(origin.table) == bool(origin.query):
        yield f"Table {name} is in a database and needs either table or query."
    if origin.path and (origin.table or origin.query):
        yield f"Table {name} has a path: remove table and query, which are for databases."
    if origin.catalog:
        yield from _catalog_problems(origin.path, origin.format)
    if origin.query and origin.schema is None and not origin.url.startswith(JDBC):
        yield f"Table {name} is a query and needs a schema, such as 'id long, name string'."


def batch_sink_problems(sink: Sink, pipeline: Pipeline, directory: Path) -> Iterator[str]:
    if sink.source in pipeline.tables:
        yield (
            f"A sink reads the table {sink.source}, which is no stream: write a step that joins it with a"
            f" source."
        )
    if isinstance(sink, TopicSink):
        yield from cluster_problems("a sink", sink.cluster, pipeline)
    if isinstance(sink, FunctionSink) and isinstance(sink.python, str):
        yield from function_problems(f"The sink {sink.name}", sink.python, directory)
    if isinstance(sink, DatabaseSink):
        yield from _database_problems(sink)
    if isinstance(sink, TableSink):
        if sink.path.count("{") > 1:
            yield f"path of a table is {sink.path}, but may have only one column in {{}}."
        if sink.catalog:
            yield from _catalog_problems(sink.path, sink.format)


def _catalog_problems(name: str, format_: str) -> Iterator[str]:
    if format_ != "iceberg":
        yield f"The table {name} is in a catalog, which only format iceberg has, not {format_}."
    if "." not in name:
        yield f"name of a table is {name!r}, but must have a namespace, as in shop.orders."


def cluster_problems(owner: str, cluster: str | None, pipeline: Pipeline) -> Iterator[str]:
    if cluster is not None and cluster not in pipeline.clusters:
        yield (
            f"cluster of {owner} is {cluster!r}, which clusters does not have;"
            f" {meant(cluster, pipeline.clusters)}"
        )


def _database_problems(sink: DatabaseSink) -> Iterator[str]:
    if sink.url.startswith(JDBC):
        yield (
            "url of a database is one for Java: a sink needs one of SQLAlchemy, such as"
            " postgresql+psycopg://user:password@host/name."
        )
    if sink.mode == "upsert" and not sink.key:
        yield f"The table {sink.table} has mode upsert and needs a key: name the columns of the key."
    if sink.mode == "append" and sink.key:
        yield f"The table {sink.table} has mode append, which needs no key: remove key, or set mode upsert."


def function_problems(owner: str, reference: str, directory: Path) -> Iterator[str]:
    module, separator, function = reference.partition(":")
    if not separator or not function.isidentifier():
        yield f"{owner} has python: {reference}, but it must be module:function."
        return
    beside = Path(path_in(directory, f"{module.replace('.', '/')}.py"))
    try:
        exists = beside.exists() or find_spec(module) is not None
    except (ImportError, ValueError):
        exists = False
    if not exists:
        yield f"{owner} needs the module {module}, which is neither beside the file nor installed."
