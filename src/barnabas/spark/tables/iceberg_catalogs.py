"""Where an Iceberg table is registered: in `catalog.db` (SQLite) beside it, or in a catalog that its settings
name, such as a REST service or another database."""

import os
import re
import weakref
from pathlib import Path
from typing import NamedTuple

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError

from barnabas.spark.tables.target import Settings, TableError

NAMESPACE = "barnabas"
CATALOG_FILE = "catalog.db"
LOCAL = "file://"
VARIABLES = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.region": "AWS_REGION"}


class Registered(NamedTuple):
    """A table in a catalog. Without a location the catalog chooses one."""

    catalog: Catalog
    name: str
    location: str | None


def registered(path: str, settings: Settings) -> Registered:
    """The place of a table: `path` is its directory or, with settings of a catalog, its name in it."""
    if settings:
        return _named(path, settings)
    directory = Path(path).absolute()
    return Registered(catalog_of(directory.parent), f"{NAMESPACE}.{directory.name}", f"{LOCAL}{directory}")


def _named(name: str, settings: Settings) -> Registered:
    namespace, _, table = name.rpartition(".")
    if not namespace or not table:
        raise TableError(
            f"The name of an Iceberg table must have a namespace, as in shop.orders, not {name!r}."
        )
    try:
        catalog = load_catalog(NAMESPACE, **{**_from_environment(), **dict(settings)})
    except (ImportError, ValueError, KeyError) as error:
        raise TableError(
            f"The catalog of {name} cannot be used: {error}. Its settings are those of pyiceberg, such as"
            f" type and uri."
        ) from error
    _close_when_unused(catalog)
    _create_namespace(catalog, namespace)
    return Registered(catalog, name, None)


def _from_environment() -> dict[str, str]:
    """Variables that other libraries read themselves, as settings of pyiceberg, which does not."""
    return {name: os.environ[variable] for name, variable in VARIABLES.items() if variable in os.environ}


def catalog_of(path: Path) -> Catalog:
    """The catalog of the tables in a directory, `catalog.db`. Other tools can open it in the same way."""
    path.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(NAMESPACE, uri=f"sqlite:///{path / CATALOG_FILE}", warehouse=f"{LOCAL}{path}")
    _close_when_unused(catalog)
    _create_namespace(catalog, NAMESPACE)
    return catalog


def _close_when_unused(catalog: Catalog) -> None:
    """Close the connections of a catalog in a database when nothing uses the catalog any more.

    A table holds its catalog for as long as it is used, so nobody else knows when that is."""
    if isinstance(catalog, SqlCatalog):
        weakref.finalize(catalog, catalog.engine.dispose)


def _create_namespace(catalog: Catalog, name: str) -> None:
    try:
        catalog.create_namespace(name)
    except NamespaceAlreadyExistsError:
        return


def path_of(location: str) -> str:
    """A location as a path for filesystem_of(). Java writes a local file as file:/path, others as
    file:///path."""
    return re.sub("^file:/+", "/", location)


def uri_of(path: str) -> str:
    """A path as Iceberg names files."""
    return path if "://" in path else f"{LOCAL}{path}"
