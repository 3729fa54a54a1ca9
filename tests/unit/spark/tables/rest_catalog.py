"""A catalog with Iceberg's REST interface, as far as the client needs it; tables are registered in SQLite."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import SortOrder

STATUS = {NoSuchTableError: 404, NamespaceAlreadyExistsError: 409, CommitFailedException: 409}


class _Server(ThreadingHTTPServer):
    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.catalog = SqlCatalog(
            "served", uri=f"sqlite:///{directory / 'served.db'}", warehouse=f"file://{directory}"
        )
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._answer(None)

    def do_HEAD(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *args: Any) -> None:
        """Do not print requests."""

    def _answer(self, body: Any) -> None:
        parts = [unquote(part) for part in self.path.partition("?")[0].strip("/").split("/")][1:]
        with self.server.lock:
            try:
                code, answer = 200, self._result(parts, body)
            except tuple(STATUS) as error:
                kind = type(error).__name__
                code = STATUS[type(error)]
                answer = {"error": {"message": str(error), "type": kind, "code": code}}
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _result(self, parts: list[str], body: Any) -> Any:
        catalog = self.server.catalog
        if parts == ["config"]:
            return {"defaults": {}, "overrides": {}}
        if parts == ["namespaces"]:
            catalog.create_namespace(tuple(body["namespace"]))
            return {"namespace": body["namespace"], "properties": {}}
        namespace = tuple(parts[1].split("\x1f"))
        if len(parts) == 3:
            return _loaded(
                catalog.create_table(
                    (*namespace, body["name"]),
                    Schema.model_validate(body["schema"]),
                    location=body.get("location"),
                    partition_spec=PartitionSpec.model_validate(body["partition-spec"]),
                    sort_order=SortOrder.model_validate(body["write-order"]),
                    properties=body.get("properties") or {},
                )
            )
        table = catalog.load_table((*namespace, parts[3]))
        if body is None:
            return _loaded(table)
        request = CommitTableRequest.model_validate({**body, "identifier": _identifier(namespace, parts[3])})
        done = catalog.commit_table(table, request.requirements, request.updates)
        return {"metadata-location": done.metadata_location, "metadata": _plain(done.metadata)}


def _identifier(namespace: tuple[str, ...], name: str) -> dict[str, Any]:
    return {"namespace": list(namespace), "name": name}


def _loaded(table: Table) -> dict[str, Any]:
    return {"metadata-location": table.metadata_location, "metadata": _plain(table.metadata), "config": {}}


def _plain(metadata: Any) -> Any:
    return json.loads(metadata.model_dump_json(by_alias=True))


@contextmanager
def rest_catalog(directory: Path) -> Iterator[str]:
    """The URL of a catalog whose tables are below the directory."""
    server = _Server(directory)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.catalog.engine.dispose()
