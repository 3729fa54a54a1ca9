"""The bit fields of operations that a client may perform; without an authorizer that is all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.call import Call

NOT_ASKED = -(2**31)


def topic_operations(call: Call, name: str) -> int:
    return call.broker.authorizer.operations(call.session, ResourceType.TOPIC, name)


def group_operations(call: Call, group_id: str) -> int:
    return call.broker.authorizer.operations(call.session, ResourceType.GROUP, group_id)


def cluster_operations(call: Call) -> int:
    """None, for those who may not describe the cluster."""
    authorizer = call.broker.authorizer
    if not authorizer.allows(call.session, Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return authorizer.operations(call.session, ResourceType.CLUSTER, CLUSTER_NAME)
