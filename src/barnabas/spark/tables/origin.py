"""The description of a table to read: files, or a table or a query of a database. Pure values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from barnabas.spark.tables.target import Settings, settings_in, settings_option

FORMATS = ("delta", "iceberg", "parquet", "csv")
BATCH, START = "batch", "start"
REFRESHES = (BATCH, START)
# URLs that Spark itself reads, with a driver in Java.
JDBC = "jdbc:"
_OPTIONS = ("path", "format", "url", "table", "query", "refresh")


@dataclass(frozen=True, slots=True)
class TableOrigin:
    """Files have a `path`; a database has a `url` and either a `table` or a `query`. `schema` is written as
    in CREATE TABLE. With settings of a `catalog`, for Iceberg, `path` is the name of the table in it. With
    `refresh` batch a stream reads the table again for each of its batches, in one
    task; with start it reads the version of its start, in many tasks."""

    path: str = ""
    format: str = "delta"
    # It may have a password in it.
    url: str = field(default="", repr=False)
    table: str = ""
    query: str = ""
    schema: str | None = None
    refresh: str = BATCH
    catalog: Settings = field(default=(), repr=False)

    def as_options(self) -> dict[str, str]:
        """The origin as options of the data source."""
        values = asdict(self)
        named = {name: values[name] for name in _OPTIONS if values[name]}
        return {**named, **settings_option("catalog", self.catalog)}


def origin_of(options: Mapping[str, str]) -> TableOrigin:
    """The origin from options of the data source; the case of names does not matter."""
    given = {name.lower(): value for name, value in options.items()}
    values = {name: given[name] for name in _OPTIONS if given.get(name)}
    return TableOrigin(**values, catalog=settings_in(given, "catalog"))
