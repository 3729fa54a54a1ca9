"""Access control lists: their values, the filters that select some of them, and who may do what.

The rules are those of Kafka's StandardAuthorizer:

- An ACL allows or denies one operation (or ALL) on the resources of one type whose name it has (LITERAL; `*`
  stands for every name) or whose names begin with its name (PREFIXED), for one principal (`User:*` for
  everybody) and one host (`*` for any).
- One ACL that denies outweighs all that allow. What neither allows nor denies is denied. Only where no ACL at
  all is about the resource, `allow.everyone.if.no.acl.found` decides.
- To allow READ, WRITE, DELETE or ALTER allows DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. To
  deny them does not deny the other.
- Super users may do everything; no ACL denies it.

How the ACLs are found fast is in security/acl_index.py."""

from enum import IntEnum
from typing import NamedTuple, TypeVar

WILDCARD = "*"
ANYBODY = "User:*"
# The only name of a resource of the type CLUSTER.
CLUSTER_NAME = "kafka-cluster"

Member = TypeVar("Member", bound=IntEnum)


class ResourceType(IntEnum):
    """Kafka's numbers. ANY is for filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of an ACL is compared with names. In filters, ANY selects the ACLs with exactly the
    filter's name, and MATCH all those that are about a resource of that name."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What somebody may do with a resource. ALL in an ACL is every operation; ANY is for filters only."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an ACL allows or denies. ANY is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


# The operations that exist for each type of resource.
OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
# The operations that an ACL has to allow, any of them, for another to be allowed; all others only by their
# own name.
_ALLOWED_BY = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}


class Acl(NamedTuple):
    """A rule: who (`principal`, such as User:alice, from `host`, or *) may, or may not, do what."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        """As Kafka's audit log writes it."""
        return (
            f"StandardAcl(resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission.name})"
        )

    def concerns(self, principal: str, host: str, operation: Operation) -> bool:
        """Whether this ACL, whose resource is the one asked for, decides about the operation."""
        if self.principal not in (principal, ANYBODY) or self.host not in (host, WILDCARD):
            return False
        if self.operation in (operation, Operation.ALL):
            return True
        return self.permission is Permission.ALLOW and self.operation in _ALLOWED_BY.get(operation, ())


class AclFilter(NamedTuple):
    """Selects ACLs; None and ANY stand for everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the filter selects this ACL."""
        return (
            self.resource_type in (acl.resource_type, ResourceType.ANY)
            and self._matches_name(acl)
            and self.principal in (acl.principal, None)
            and self.host in (acl.host, None)
            and self.operation in (acl.operation, Operation.ANY)
            and self.permission in (acl.permission, Permission.ANY)
        )

    def _matches_name(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type is PatternType.MATCH:
            if name is None:
                return True
            if acl.pattern_type is PatternType.PREFIXED:
                return name.startswith(acl.resource_name)
            return acl.resource_name in (name, WILDCARD)
        has_type = self.pattern_type in (acl.pattern_type, PatternType.ANY)
        return has_type and name in (acl.resource_name, None)


def problem_of(acl: Acl) -> str | None:
    """Why an ACL with these values cannot exist; None if it can."""
    for name, value in (
        ("resourceType", acl.resource_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission),
    ):
        if value.name == "ANY":
            return f"Invalid {name} ANY"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type.name}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def member_of(kind: type[Member], number: int) -> Member:
    """The member of an enumeration; ValueError for numbers that this release does not know."""
    try:
        return kind(number)
    except ValueError:
        raise ValueError(f"{number} is not a known {kind.__name__}") from None
