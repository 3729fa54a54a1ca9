"""The table of all routes of the API."""

from typing import Any

from barnabas.console import (
    acls,
    brokers,
    configs,
    downloading,
    groups,
    identity,
    messages,
    openapi,
    overview,
    pipelines,
    producing,
    quotas,
    replication,
    resetting,
    tailing,
    topics,
    transactions,
    users,
)
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
        *configs.ROUTES,
        *messages.ROUTES,
        *tailing.ROUTES,
        *downloading.ROUTES,
        *producing.ROUTES,
        *groups.ROUTES,
        *resetting.ROUTES,
        *brokers.ROUTES,
        *replication.ROUTES,
        *transactions.ROUTES,
        *acls.ROUTES,
        *users.ROUTES,
        *quotas.ROUTES,
        *pipelines.ROUTES,
    )
)
