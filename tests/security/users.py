"""A broker with an authorizer, whose raw connections belong to users of the test's choice, and its ACLs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker.broker import Broker
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.principal import Principal

ADMIN, ALICE = Principal("User", "admin"), Principal("User", "alice")
SECONDS_MAX = 30.0
# A member that sends no heartbeats stays while all samples are tested.
LONG_SESSIONS = {
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "600000",
}


def acl(
    operation: Operation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
    permission: Permission = Permission.ALLOW,
) -> Acl:
    """For alice, from anywhere, with exactly this name."""
    return Acl(resource_type, name, PatternType.LITERAL, str(ALICE), "*", operation, permission)


class GuardedBroker:
    patience_seconds = 0.0

    def __init__(self, visible: VisibleBroker) -> None:
        self.visible = visible
        self.port = visible.port

    def client(self, principal: Principal) -> RawClient:
        """A connection of this user. A peer that shows who it is gets such a session; here it is set."""
        client = RawClient("127.0.0.1", self.port)
        port = client.socket.getsockname()[1]

        def name(broker: Broker) -> bool:
            for connection in broker.server._connections:
                if connection.peer_port == port:
                    connection.session.principal = principal
                    return True
            return False

        while not self.visible.look(name):
            pass
        return client

    def set_acls(self, acls: Iterable[Acl]) -> None:
        """These ACLs and no others."""
        wanted = set(acls)
        present = self.visible.look(lambda broker: set(broker.image.acls.values()))
        removed = [
            AclFilter(
                each.resource_type,
                each.resource_name,
                each.pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission,
            )
            for each in present - wanted
        ]
        if removed:
            self._run(lambda broker: broker.controller.delete_acls(removed))
        results = self._run(lambda broker: broker.controller.create_acls(list(wanted - present)))
        assert not any(results), results

    def _run(self, work: Any) -> Any:
        future = asyncio.run_coroutine_threadsafe(work(self.visible.broker), self.visible._loop)
        return future.result(SECONDS_MAX)


@contextmanager
def guarded_broker(directory: Path, overrides: Mapping[str, str] | None = None) -> Iterator[GuardedBroker]:
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": str(ADMIN),
        "group.initial.rebalance.delay.ms": "0",
        **LONG_SESSIONS,
        **(overrides or {}),
    }
    with visible_broker(directory, settings) as visible:
        yield GuardedBroker(visible)
