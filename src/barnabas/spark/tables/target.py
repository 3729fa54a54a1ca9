"""Where rows go and how: the description of a table, and the mark by which a batch is known. Pure values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

FORMATS = ("delta", "iceberg", "parquet")
MODES = ("append", "upsert")
DELETED = "_deleted"


class TableError(Exception):
    """Rows cannot go into a table; the sentence says why and what to do."""


class Conflict(TableError):
    """Somebody else has changed the table meanwhile; nothing was done, and it may be tried again."""


class Mark(NamedTuple):
    """A batch of a query. A table remembers the last of each query, and takes none twice."""

    query: str
    batch: int


@dataclass(frozen=True, slots=True)
class TableTarget:
    """`partition_by` are columns whose values become directories. An upsert replaces rows by `key`; of
    several rows of one key in a batch the last by `order_by` wins; one whose column `_deleted` is true
    deletes."""

    path: str
    format: str = "delta"
    mode: str = "append"
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: str | None = None
    evolve: bool = True

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise TableError(f"A table's format is one of {', '.join(FORMATS)}, not {self.format!r}.")
        if self.mode not in MODES:
            raise TableError(f"A table's mode is one of {', '.join(MODES)}, not {self.mode!r}.")
        if self.mode == "upsert" and (not self.key or self.format == "parquet"):
            raise TableError("An upsert needs a key, and a table of format delta or iceberg.")

    def as_options(self) -> dict[str, str]:
        """For the data source, whose options are texts."""
        values = asdict(self)
        return {
            **{name: str(values[name]) for name in ("path", "format", "mode")},
            **{name: "\t".join(values[name]) for name in ("key", "partition_by")},
            "order_by": self.order_by or "",
            "evolve": str(self.evolve).lower(),
        }


def target_of(options: Mapping[str, str]) -> TableTarget:
    """The other way round; Spark hands options over in any case."""
    given = {name.lower(): value for name, value in options.items()}
    if not given.get("path"):
        raise TableError("Say where the table is: option path.")
    values: dict[str, Any] = {"path": given["path"]}
    for name in ("format", "mode"):
        if given.get(name):
            values[name] = given[name]
    for name in ("key", "partition_by"):
        values[name] = tuple(part for part in given.get(name, "").replace(",", "\t").split("\t") if part)
    values["order_by"] = given.get("order_by") or None
    values["evolve"] = given.get("evolve", "true").lower() == "true"
    return TableTarget(**values)
