"""ACLs in the metadata: from records to values and back. Pure."""

from barnabas.ids import Uuid
from barnabas.metadata.records import AclRecord
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType


def acl_of(record: AclRecord) -> Acl:
    return Acl(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        record.principal,
        record.host,
        Operation(record.operation),
        Permission(record.permission),
    )


def acl_record(acl_id: Uuid, acl: Acl) -> AclRecord:
    return AclRecord(
        acl_id,
        int(acl.resource_type),
        acl.resource_name,
        int(acl.pattern_type),
        acl.principal,
        acl.host,
        int(acl.operation),
        int(acl.permission),
    )
