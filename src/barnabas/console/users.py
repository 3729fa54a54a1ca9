"""Users with SCRAM passwords. The passwords themselves are never shown, logged or kept."""

from typing import Any

from barnabas.client.admin import ScramDeletion, ScramUpsertion
from barnabas.console.calls import Call
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.shapes import Choice, Shape, Text, Whole
from barnabas.security import scram

Item = dict[str, Any]

MECHANISMS = tuple(scram.BY_NAME)
DEFAULT_ITERATIONS = 4096
ITERATIONS_MAX = 16_384


async def users(call: Call) -> Item:
    found = await call.workspace.admin.describe_user_scram_credentials()
    items = [
        {
            "name": name,
            "mechanisms": [{"mechanism": each.mechanism, "iterations": each.iterations} for each in infos],
        }
        for name, infos in found.items()
    ]
    return call.page_of(items)


async def set_password(call: Call) -> Item:
    body = call.body
    name, mechanism = body["name"], body["mechanism"]
    change = ScramUpsertion(name, body["password"], mechanism, body["iterations"])
    if not call.is_preview:
        await call.workspace.admin.alter_user_scram_credentials([change])
    # Without the password: people copy commands into chats and tickets.
    config = f"{mechanism}=[iterations={body['iterations']},password=...]"
    command = call.command("configs", "--alter", "--user", name, "--add-config", config)
    return _answer(call, command, name, mechanism)


async def remove(call: Call) -> Item:
    name, mechanism = call.body["name"], call.body["mechanism"]
    call.check_confirmed(name)
    if not call.is_preview:
        await call.workspace.admin.alter_user_scram_credentials([ScramDeletion(name, mechanism)])
    command = call.command("configs", "--alter", "--user", name, "--delete-config", mechanism)
    return _answer(call, command, name, mechanism)


def _answer(call: Call, command: str, name: str, mechanism: str) -> Item:
    result = {"name": name, "mechanism": mechanism}
    return {"command": command, "preview": result} if call.is_preview else {"command": command, **result}


_WHO: dict[str, Shape] = {
    "name": Text("the user"),
    "mechanism": Choice(*MECHANISMS, default=MECHANISMS[-1]),
}

ROUTES = (
    Route("GET", "/api/users", users, "Users with SCRAM passwords", query=LIST_QUERY),
    Route(
        "POST",
        "/api/users",
        set_password,
        "Make a user, or set her password",
        body={
            **_WHO,
            "password": Text("the new password"),
            "iterations": Whole(default=DEFAULT_ITERATIONS, least=DEFAULT_ITERATIONS, most=ITERATIONS_MAX),
        },
    ),
    Route(
        "DELETE",
        "/api/users",
        remove,
        "Take a password from a user",
        body={**_WHO, "confirm": Text("the name of the user again", default="")},
    ),
)
