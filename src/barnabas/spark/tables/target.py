"""The description of a table to write to, and the mark of a batch. Pure values."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

FORMATS = ("delta", "iceberg", "parquet")
MODES = ("append", "upsert")
DELETED = "_deleted"
# Names and values, as a value that can be compared and pickled.
Settings = tuple[tuple[str, str], ...]


class TableError(Exception):
    """Rows cannot be written to a table; the text says why and what to do."""


class Conflict(TableError):
    """Another writer has changed the table meanwhile. Nothing was done, and it may be tried again."""


class Mark(NamedTuple):
    """A batch of a query. A table stores the last mark of each query, so no batch is written twice."""

    query: str
    batch: int

    @property
    def property(self) -> str:
        """The name of the property of an Iceberg table or snapshot that stores the batch."""
        return f"barnabas.batch.{self.query}"

    def as_options(self) -> dict[str, str]:
        """The mark as options of the data source, for df.write in foreachBatch."""
        return {"query_id": self.query, "batch_id": str(self.batch)}


def member_query(query: str, member: str) -> str:
    """The name of a query in the marks of one of the sinks that share it; `member` is empty if none do."""
    return f"{query}/{member}" if member else query


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A table: where it is, and how rows are written to it.

    `partition_by` are columns whose values become directories. An upsert replaces rows by `key`; a row
    whose column `_deleted` is true deletes them. If a batch has several rows with one key, the last one by
    `order_by` is used. With settings of a `catalog`, for Iceberg, `path` is the name of the table in it."""

    path: str
    format: str = "delta"
    mode: str = "append"
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: str | None = None
    evolve: bool = True
    # They may have passwords in them.
    catalog: Settings = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise TableError(
                f"The format of a table must be one of {', '.join(FORMATS)}, not {self.format!r}."
            )
        if self.mode not in MODES:
            raise TableError(f"The mode of a table must be one of {', '.join(MODES)}, not {self.mode!r}.")
        if self.mode == "upsert" and (not self.key or self.format == "parquet"):
            raise TableError("The mode upsert needs a key, and a table of format delta or iceberg.")

    def as_options(self) -> dict[str, str]:
        """The target as options of the data source."""
        values = asdict(self)
        return {
            **{name: str(values[name]) for name in ("path", "format", "mode")},
            **{name: "\t".join(values[name]) for name in ("key", "partition_by")},
            "order_by": self.order_by or "",
            "evolve": str(self.evolve).lower(),
            **settings_option("catalog", self.catalog),
        }


def settings_option(name: str, settings: Settings) -> dict[str, str]:
    """Settings as an option of the data source; none if there are none."""
    return {name: json.dumps(dict(settings))} if settings else {}


def settings_in(given: Mapping[str, str], name: str) -> Settings:
    return tuple(json.loads(given[name]).items()) if given.get(name) else ()


def target_of(options: Mapping[str, str]) -> TableTarget:
    """The target from options of the data source; the case of names does not matter."""
    given = {name.lower(): value for name, value in options.items()}
    if not given.get("path"):
        raise TableError("The option path is missing: set it to the path of the table.")
    values: dict[str, Any] = {"path": given["path"]}
    for name in ("format", "mode"):
        if given.get(name):
            values[name] = given[name]
    for name in ("key", "partition_by"):
        values[name] = tuple(part for part in given.get(name, "").replace(",", "\t").split("\t") if part)
    values["order_by"] = given.get("order_by") or None
    values["evolve"] = given.get("evolve", "true").lower() == "true"
    values["catalog"] = settings_in(given, "catalog")
    return TableTarget(**values)


def mark_of(options: Mapping[str, str]) -> Mark | None:
    """The mark from options of the data source, if they have one."""
    given = {name.lower(): value for name, value in options.items()}
    if "query_id" not in given or "batch_id" not in given:
        return None
    return Mark(given["query_id"], int(given["batch_id"]))
