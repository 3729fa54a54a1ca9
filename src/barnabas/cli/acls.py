"""`barnabas acls`: kafka-acls.sh: add, remove and list access control lists."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.principal import parse_principal

DESCRIPTION = """\
Access control lists: who may do what with topics, groups, transactional ids and the cluster. The brokers need
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer."""
EXAMPLES = """\
  barnabas acls --bootstrap-server localhost:9092 --list --topic orders
  barnabas acls --bootstrap-server localhost:9092 --add --allow-principal User:alice --operation Read \\
      --topic orders
  barnabas acls --bootstrap-server localhost:9092 --add --allow-principal User:alice --consumer \\
      --topic orders --group g
  barnabas acls --bootstrap-server localhost:9092 --remove --topic ord \\
      --resource-pattern-type prefixed --force
"""

# A resource as an option names it; and what is allowed or denied with it.
Resource: TypeAlias = tuple[ResourceType, str, PatternType]
Entry: TypeAlias = tuple[str, str, Operation, Permission]
CLUSTER: Resource = (ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
NAMED_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
# As users write them: ClusterAction.
OPERATION_NAMES = {
    operation.name.title().replace("_", ""): operation
    for operation in Operation
    if operation is not Operation.ANY
}
_OPERATIONS_BY_LOWER_CASE = {name.lower(): operation for name, operation in OPERATION_NAMES.items()}
PRODUCER_TOPIC = (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
PRODUCER_ID = (Operation.WRITE, Operation.DESCRIBE)
CONSUMER_TOPIC = (Operation.READ, Operation.DESCRIBE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_flags=("--bootstrap-server",), server_group=server)
    server.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="as --bootstrap-server")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--add", action="store_true", help="add ACLs")
    action.add_argument("--remove", action="store_true", help="remove ACLs")
    action.add_argument("--list", action="store_true", help="print ACLs")
    for flag, text in (
        ("--topic", "a topic; * for all"),
        ("--group", "a consumer group; * for all"),
        ("--transactional-id", "a transactional id; * for all"),
        ("--delegation-token", "a delegation token; * for all"),
        ("--user-principal", "a user, as the resource"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="NAME", help=text)
    for flag, text in (
        ("--principal", "--list: only ACLs of these users, as User:name"),
        ("--allow-principal", "a user to allow, as User:name; User:* for all"),
        ("--deny-principal", "a user to deny, as User:name; it outweighs what is allowed"),
        ("--allow-host", "a host from which they are allowed; * for all, which is the default"),
        ("--deny-host", "a host from which they are denied; * for all, which is the default"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="WHO", help=text)
    parser.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument(
        "--operation", action="append", default=[], help=f"one of {', '.join(OPERATION_NAMES)}; default All"
    )
    parser.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        default="literal",
        choices=[pattern.name.lower() for pattern in PatternType],
        help="how names are compared: literal, or prefixed for all names that begin so; to list and remove "
        "also any (both types with exactly this name) and match (all ACLs that concern the name)",
    )
    for flag, text in (
        ("--producer", "the ACLs that a producer needs: Write, Describe and Create for topics"),
        ("--consumer", "the ACLs that a consumer needs: Read and Describe for topics, Read for groups"),
        ("--idempotent", "with --producer: also IdempotentWrite for the cluster"),
        ("--force", "do not ask for confirmation"),
    ):
        parser.add_argument(flag, action="store_true", help=text)


def run(options: argparse.Namespace) -> int:
    options.bootstrap_server = options.bootstrap_server or options.bootstrap_controller
    _check(options)
    if options.list:
        _list(options)
    elif options.add:
        _add(options)
    else:
        _remove(options)
    return 0


def _check(options: argparse.Namespace) -> None:
    who = ("allow_principal", "allow_host", "deny_principal", "deny_host")
    forbidden = {
        "list": ("producer", "consumer", *who),
        "producer": ("operation", "deny_principal", "deny_host"),
        "consumer": ("operation", "deny_principal", "deny_host"),
    }
    for option, others in forbidden.items():
        for other in others:
            if getattr(options, option) and getattr(options, other):
                raise ToolError(f"--{option} cannot be used with --{other.replace('_', '-')}.")
    if options.principal and not options.list:
        raise ToolError("--principal is only for --list.")
    if options.producer and not options.topic:
        raise ToolError("--producer needs --topic.")
    if options.idempotent and not options.producer:
        raise ToolError("--idempotent is only for --producer.")
    other_resource = not options.producer and (options.cluster or options.transactional_id)
    if options.consumer and (not options.topic or not options.group or other_resource):
        raise ToolError("--consumer needs --topic and --group, without --cluster and --transactional-id.")
    for name in options.operation:
        if name.strip().lower() not in _OPERATIONS_BY_LOWER_CASE:
            raise ToolError(f"--operation {name} is not one of {', '.join(OPERATION_NAMES)}.")


# ---- the actions


def _add(options: argparse.Namespace) -> None:
    if options.resource_pattern_type not in ("literal", "prefixed"):
        raise ToolError(f"--resource-pattern-type {options.resource_pattern_type} cannot be used with --add.")
    changes = _changes(options)
    if not all(changes.values()):
        raise ToolError("--add needs --allow-principal or --deny-principal.")
    with admin_of(options) as admin:
        for resource, entries in changes.items():
            existing = set(admin.describe_acls(AclFilter(*resource)))
            acls = [Acl(*(resource + entry)) for entry in entries]
            for acl in acls:
                if acl in existing:
                    print(f"Acl (pattern={_pattern(resource)}, entry={_entry(acl)}) already exists.")
            new = [acl for acl in acls if acl not in existing]
            if new:
                print(f"Adding ACLs for resource `{_pattern(resource)}`: \n {_entries(new)}\n")
                admin.create_acls(new)


def _remove(options: argparse.Namespace) -> None:
    changes = _changes(options)
    with admin_of(options) as admin:
        for resource, entries in changes.items():
            pattern = _pattern(resource)
            if entries:
                shown = _entries(Acl(*(resource + entry)) for entry in entries)
                question = f"remove ACLs: \n {shown}\n from resource filter `{pattern}`"
                filters = [AclFilter(*(resource + entry)) for entry in entries]
            else:
                question = f"delete all ACLs for resource filter `{pattern}`"
                filters = [AclFilter(*resource)]
            if _confirms(options, f"Are you sure you want to {question}? (y/n)"):
                admin.delete_acls(filters)


def _list(options: argparse.Namespace) -> None:
    filters = [AclFilter(*resource) for resource in _resources(options)] or [AclFilter()]
    with admin_of(options) as admin:
        acls = {acl: None for each in filters for acl in admin.describe_acls(each)}
    if not options.principal:
        _print_acls(acls)
    for principal in dict.fromkeys(_principals(options.principal)):
        print(f"ACLs for principal `{principal}`")
        _print_acls(acl for acl in acls if acl.principal == principal)


def _print_acls(acls: Iterable[Acl]) -> None:
    by_resource: dict[Resource, list[Acl]] = {}
    for acl in sorted(acls):
        by_resource.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    for resource, entries in by_resource.items():
        print(f"Current ACLs for resource `{_pattern(resource)}`:\n{_entries(entries)}\n")


def _confirms(options: argparse.Namespace, question: str) -> bool:
    if options.force:
        return True
    print(question)
    try:
        return input().strip().lower() == "y"
    except EOFError:
        return False


# ---- from options to ACLs


def _changes(options: argparse.Namespace) -> dict[Resource, list[Entry]]:
    """What is to be added or removed, by resource. No entries: everything about the resource."""
    resources = _resources(options)
    if not resources:
        raise ToolError(
            "A resource is missing: give --topic, --cluster, --group, --transactional-id, "
            "--delegation-token or --user-principal."
        )
    operations: dict[Resource, Sequence[Operation]] = {}
    if not options.producer and not options.consumer:
        names = options.operation or ["All"]
        given = [_OPERATIONS_BY_LOWER_CASE[name.strip().lower()] for name in names]
        operations = dict.fromkeys(resources, given)
    if options.producer:
        operations |= _of_type(resources, ResourceType.TOPIC, PRODUCER_TOPIC)
        operations |= _of_type(resources, ResourceType.TRANSACTIONAL_ID, PRODUCER_ID)
        if options.idempotent:
            operations[CLUSTER] = (Operation.IDEMPOTENT_WRITE,)
    if options.consumer:
        consumed = _of_type(resources, ResourceType.TOPIC, CONSUMER_TOPIC)
        consumed |= _of_type(resources, ResourceType.GROUP, (Operation.READ,))
        for resource, needed in consumed.items():
            operations[resource] = tuple(dict.fromkeys((*operations.get(resource, ()), *needed)))
    for resource, needed in operations.items():
        _check_operations(resource, needed)
    return {resource: _entries_of(options, needed) for resource, needed in operations.items()}


def _of_type(
    resources: Iterable[Resource], kind: ResourceType, operations: Sequence[Operation]
) -> dict[Resource, Sequence[Operation]]:
    return {resource: operations for resource in resources if resource[0] is kind}


def _check_operations(resource: Resource, operations: Iterable[Operation]) -> None:
    valid = (*OPERATIONS[resource[0]], Operation.ALL)
    if not set(operations) <= set(valid):
        names = ", ".join(name for name, operation in OPERATION_NAMES.items() if operation in valid)
        raise ToolError(f"ResourceType {resource[0].name} only supports operations {names}.")


def _entries_of(options: argparse.Namespace, operations: Sequence[Operation]) -> list[Entry]:
    entries: dict[Entry, None] = {}
    for principals, hosts, permission in (
        (options.allow_principal, options.allow_host, Permission.ALLOW),
        (options.deny_principal, options.deny_host, Permission.DENY),
    ):
        for principal in _principals(principals):
            for operation in operations:
                for host in hosts or [WILDCARD]:
                    entries[principal, host.strip(), operation, permission] = None
    return list(entries)


def _resources(options: argparse.Namespace) -> list[Resource]:
    pattern_type = PatternType[options.resource_pattern_type.upper()]
    resources: list[Resource] = []
    if pattern_type is PatternType.LITERAL and (options.cluster or options.idempotent):
        resources.append(CLUSTER)
    for option, kind in NAMED_RESOURCES.items():
        resources += [(kind, name.strip(), pattern_type) for name in getattr(options, option)]
    return list(dict.fromkeys(resources))


def _principals(texts: Iterable[str]) -> list[str]:
    try:
        return [str(parse_principal(text.strip())) for text in texts]
    except ValueError as error:
        raise ToolError(f"{error}.") from error


# ---- how they are printed


def _pattern(resource: Resource) -> str:
    kind, name, pattern_type = resource
    return f"ResourcePattern(resourceType={kind.name}, name={name}, patternType={pattern_type.name})"


def _entries(acls: Iterable[Acl]) -> str:
    return "\n".join(f"\t{_entry(acl)}" for acl in acls)


def _entry(acl: Acl) -> str:
    return (
        f"(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
        f"permissionType={acl.permission.name})"
    )
