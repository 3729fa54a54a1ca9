"""Tables as DataFrames. The library of the table format lists the files, and tasks read them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark.jobs.clients import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Features that Spark's Parquet reader does not know.
UNREADABLE_FEATURES = {"deletionVectors", "columnMapping"}


def format_of(path: str) -> str:
    """The table format of a directory, from what is in it."""
    root = Path(path)
    if (root / "_delta_log").exists():
        return "delta"
    if (root / "metadata").exists():
        return "iceberg"
    return "parquet"


def read_table(spark: "SparkSession", path: str, form: str | None = None) -> "DataFrame":
    """The table as it is now; JobError if it cannot be read."""
    if "://" not in path:
        if not Path(path).exists():
            raise JobError(f"There is no table at {path}.")
        # The process of Spark may have another working directory.
        path = str(Path(path).absolute())
    kind = form or format_of(path)
    try:
        if kind == "delta":
            return _delta(spark, path)
        if kind == "iceberg":
            return _iceberg(spark, path)
    except ImportError as error:
        raise JobError(f"Tables of {kind} need libraries: pip install 'barnabas[spark]'.") from error
    return _parquet(spark, path)


def _delta(spark: "SparkSession", path: str) -> "DataFrame":
    import pyarrow
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(path)
    except TableNotFoundError as error:
        raise JobError(f"There is no Delta table at {path}.") from error
    unknown = UNREADABLE_FEATURES & set(table.protocol().reader_features or ())
    if unknown:
        raise JobError(
            f"The Delta table at {path} uses {', '.join(sorted(unknown))}, which is not supported: rewrite it"
            " without, or copy the rows into another table."
        )
    return _files(spark, table.file_uris(), pyarrow.schema(table.schema().to_arrow()), path)


def _iceberg(spark: "SparkSession", path: str) -> "DataFrame":
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    from barnabas.spark.tables.iceberg_catalogs import CATALOG_FILE, NAMESPACE, catalog_of

    root = Path(path).absolute()
    if not (root.parent / CATALOG_FILE).exists():
        raise JobError(
            f"There is no catalog of Iceberg tables at {root.parent / CATALOG_FILE}; check the path."
        )
    try:
        table = catalog_of(root.parent).load_table(f"{NAMESPACE}.{root.name}")
    except NoSuchTableError as error:
        raise JobError(f"There is no Iceberg table {root.name} in {root.parent / CATALOG_FILE}.") from error
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise JobError(f"The Iceberg table at {path} has delete files: compact it first.")
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return _files(spark, [task.file.file_path for task in tasks], schema, f"{path}/data")


def _parquet(spark: "SparkSession", path: str) -> "DataFrame":
    from barnabas.spark.tables.parquet import COMMITS, ParquetStore
    from barnabas.spark.tables.target import TableTarget

    reader = spark.read
    if "://" not in path and (Path(path) / COMMITS).exists():
        store = ParquetStore(TableTarget(path, "parquet"))
        store.finish_moves()
        return reader.schema(_schema(store.schema())).parquet(path)
    return reader.option("mergeSchema", "true").parquet(path)


def _files(spark: "SparkSession", files: list[str], schema: Any, root: str) -> "DataFrame":
    """With the schema of the table: in files that are older than a column, the column is null."""
    if not files:
        return spark.createDataFrame([], _schema(schema))
    return spark.read.schema(_schema(schema)).option("basePath", root).parquet(*files)


def _schema(arrow_schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema, prefer_timestamp_ntz=True)
