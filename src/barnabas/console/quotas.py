"""Quotas of users, client ids and addresses."""

from collections.abc import Mapping
from typing import Any

from barnabas.console.calls import Call
from barnabas.console.failures import bad_request
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.shapes import Choice, Fields, ListOf, MapOf, Nullable, Number, Text
from barnabas.security.quotas import ENTITY_TYPES, Entity, entity_of, entity_problem

Item = dict[str, Any]

# How the tool names the types.
_TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}


async def quotas(call: Call) -> Item:
    found = await call.workspace.admin.describe_client_quotas()
    return call.page_of((_item(entity, values) for entity, values in found.items()), name="text")


def _item(entity: Entity, values: Mapping[str, float | None]) -> Item:
    return {
        "entity": [{"type": kind, "name": name} for kind, name in entity],
        "values": values,
        # What the list is searched and sorted by.
        "text": ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity),
    }


async def change(call: Call) -> Item:
    entity = entity_of((each["type"], each["name"]) for each in call.body["entity"])
    values = call.body["values"]
    problem = entity_problem(entity)
    if problem is not None:
        raise bad_request(f"{problem}.")
    if not values:
        raise bad_request("Nothing is to be changed: `values` is empty.")
    await call.workspace.admin.alter_client_quotas({entity: values}, validate_only=call.is_preview)
    command = call.command("configs", *_options(entity, values))
    result = _item(entity, values)
    return {"command": command, "preview": result} if call.is_preview else {"command": command, **result}


def _options(entity: Entity, values: dict[str, float | None]) -> list[str]:
    options = ["--alter"]
    for kind, name in entity:
        options += ["--entity-type", _TYPES[kind]]
        options += ["--entity-default"] if name is None else ["--entity-name", name]
    given = [f"{key}={value:.15g}" for key, value in values.items() if value is not None]
    removed = [key for key, value in values.items() if value is None]
    if given:
        options += ["--add-config", ",".join(given)]
    if removed:
        options += ["--delete-config", ",".join(removed)]
    return options


ROUTES = (
    Route("GET", "/api/quotas", quotas, "Quotas of clients", query=LIST_QUERY),
    Route(
        "PUT",
        "/api/quotas",
        change,
        "Set quotas; null removes one",
        body={
            "entity": ListOf(
                Fields({"type": Choice(*ENTITY_TYPES), "name": Nullable(Text("null: the default"))}),
                longest=3,
            ),
            "values": MapOf(Nullable(Number())),
        },
    ),
)
