"""The table of all routes of the API."""

from typing import Any

from barnabas.console import identity, messages, openapi, overview, topics
from barnabas.console.calls import Call
from barnabas.console.routing import Route, Table


async def describe(call: Call) -> dict[str, Any]:
    return openapi.document(TABLE.routes)


TABLE = Table(
    (
        *identity.ROUTES,
        Route("GET", "/api/openapi.json", describe, "This description of the API", needs_login=False),
        *overview.ROUTES,
        *topics.ROUTES,
        *messages.ROUTES,
    )
)
