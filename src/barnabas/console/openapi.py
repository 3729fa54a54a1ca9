"""The OpenAPI description of the API, made from the declarations of its routes."""

from collections.abc import Iterable
from typing import Any

from barnabas import __version__
from barnabas.console.routing import Route
from barnabas.console.shapes import REQUIRED, Fields, described

OPENAPI_VERSION = "3.1.0"

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "Barnabas console", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "barnabas_console_PORT"},
                "token": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__module__.rpartition(".")[2] + "_" + route.handler.__name__,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route),
        "responses": {"200": {"description": "The result"}, "default": _refused()},
        "security": [{} if route.is_safe else {"session": [], "token": []}],
    }
    if route.body is not None:
        schema = Fields(route.body).schema()
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    in_path = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in route.segments
        if part.startswith("{")
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": shape.default is REQUIRED,
            "description": shape.doc,
            "schema": described(shape),
        }
        for name, shape in route.all_query.items()
    ]
    return [*in_path, *in_query]


def _refused() -> dict[str, Any]:
    return {
        "description": "Refused or failed",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
