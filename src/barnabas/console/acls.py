"""Access control lists: who may do what; adding and removing them."""

from typing import Any

from barnabas.client.admin import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from barnabas.console.calls import Call
from barnabas.console.failures import bad_request
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.shapes import Choice, Shape, Text
from barnabas.security.acls import CLUSTER_NAME, OPERATIONS

Item = dict[str, Any]

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


async def acls(call: Call) -> Item:
    found = await call.workspace.admin.describe_acls()
    return call.page_of(map(_item, found), name="text")


def _item(acl: Acl) -> Item:
    item = {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }
    # What the list is searched and sorted by.
    return item | {"text": " ".join(item.values())}


async def add(call: Call) -> Item:
    acl = _acl(call.body)
    if not call.is_preview:
        await call.workspace.admin.create_acls([acl])
    return _answer(call, acl, ["--add"])


async def remove(call: Call) -> Item:
    acl = _acl(call.body)
    exactly = AclFilter(*acl)
    if call.is_preview:
        return _answer(call, acl, ["--remove", "--force"])
    deleted = await call.workspace.admin.delete_acls([exactly])
    return _answer(call, acl, ["--remove", "--force"]) | {"deleted": len(deleted[exactly])}


def _acl(body: Item) -> Acl:
    acl = Acl(
        ResourceType[body["resource_type"]],
        CLUSTER_NAME if body["resource_type"] == "CLUSTER" else body["resource_name"],
        PatternType[body["pattern_type"]],
        body["principal"],
        body["host"],
        Operation[body["operation"]],
        Permission[body["permission"]],
    )
    if not acl.resource_name:
        raise bad_request("resource_name must not be empty; * means all.")
    kind, _, name = acl.principal.partition(":")
    if not kind or not name:
        raise bad_request("The principal must be such as User:alice; User:* means everybody.")
    if acl.operation is not Operation.ALL and acl.operation not in OPERATIONS[acl.resource_type]:
        known = ", ".join(each.name for each in (*OPERATIONS[acl.resource_type], Operation.ALL))
        raise bad_request(f"For {acl.resource_type.name} the operation must be one of {known}.")
    return acl


def _answer(call: Call, acl: Acl, options: list[str]) -> Item:
    verb = "allow" if acl.permission is Permission.ALLOW else "deny"
    options = [*options, f"--{verb}-principal", acl.principal, f"--{verb}-host", acl.host]
    options += ["--operation", acl.operation.name.title().replace("_", "")]
    if acl.resource_type is ResourceType.CLUSTER:
        options.append("--cluster")
    else:
        options += [_FLAGS[acl.resource_type], acl.resource_name]
    options += ["--resource-pattern-type", acl.pattern_type.name.lower()]
    command = call.command("acls", *options)
    return (
        {"command": command, "preview": _item(acl)} if call.is_preview else {"command": command, **_item(acl)}
    )


_BINDING: dict[str, Shape] = {
    "resource_type": Choice(*(each.name for each in ResourceType if each is not ResourceType.ANY)),
    "resource_name": Text("* means all", default=""),
    "pattern_type": Choice("LITERAL", "PREFIXED", default="LITERAL"),
    "principal": Text("such as User:alice"),
    "host": Text("* means any", default="*"),
    "operation": Choice(*(each.name for each in Operation if each is not Operation.ANY)),
    "permission": Choice("ALLOW", "DENY", default="ALLOW"),
}

ROUTES = (
    Route("GET", "/api/acls", acls, "The access control lists", query=LIST_QUERY),
    Route("POST", "/api/acls", add, "Allow or deny something", body=_BINDING),
    Route("DELETE", "/api/acls", remove, "Remove exactly this one", body=_BINDING),
)
