"""The authorizer of a broker: decides by the ACLs in the metadata, and writes the audit log.

The audit log has Kafka's logger and Kafka's form of a line. What is denied is written with level INFO, what
is allowed with DEBUG. What nobody asked for in so many words (the topics in the answer to "all topics", the
fields with authorized operations) is written only with TRACE."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.broker.loggers import LEVELS, one_line
from barnabas.config.definition import ConfigError
from barnabas.errors import ErrorCode
from barnabas.ids import Uuid
from barnabas.security.acl_index import AclIndex
from barnabas.security.acls import CLUSTER_NAME, OPERATIONS, Acl, Operation, ResourceType
from barnabas.security.principal import parse_principal

if TYPE_CHECKING:
    from barnabas.broker.session import Session
    from barnabas.config.values import BrokerConfig
    from barnabas.metadata.image import MetadataImage
    from barnabas.replication.gate import Asker, Rights
    from barnabas.security.principal import Principal

audit_log = logging.getLogger("kafka.authorizer.logger")
# A request may have tens of thousands of names. Only the first denials are written, so that nobody fills the
# disk of a broker with few requests.
DENIALS_LOGGED_MAX = 1000
TRACE = LEVELS["TRACE"]
# As Kafka's audit log writes the types of resources.
_TYPE_NAMES = {kind: kind.name.title().replace("_", "") for kind in ResourceType}

# The error of somebody who lacks a right.
REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Action(NamedTuple):
    """What somebody wants to do."""

    operation: Operation
    resource_type: ResourceType
    name: str = CLUSTER_NAME


class Audit(NamedTuple):
    """What the audit log says about a question: in which request it came up, how often the request has the
    name (`references`), and whether it matters that something is allowed or denied. It does not if another
    right will do as well, or if the answer only leaves something out."""

    request: str = ""
    references: int = 1
    logs_allowed: bool = True
    logs_denied: bool = True


ORDINARY = Audit()


UNASKED = Audit(logs_allowed=False, logs_denied=False)


class Who(Protocol):
    """A session, or an asker of the gate."""

    @property
    def principal(self) -> Principal: ...
    @property
    def host(self) -> str: ...


class Authorizer:
    """Decides by ACLs. It sees those of the image that it followed last."""

    is_enabled = True

    def __init__(self, index: AclIndex) -> None:
        self._index = index
        self._acls: Mapping[Uuid, Acl] = {}
        # The last asker of the gate, and what it was denied: a request may have many partitions of a topic.
        self._last_asker: Asker | None = None
        self._denied: set[str] = set()

    def follow(self, image: MetadataImage) -> bool:
        """Take the ACLs of the image; whether there was a change."""
        if image.acls is self._acls:
            return False
        for acl_id in self._acls.keys() - image.acls.keys():
            self._index.remove(self._acls[acl_id])
        for acl_id in image.acls.keys() - self._acls.keys():
            self._index.add(image.acls[acl_id])
        self._acls = image.acls
        return True

    def allows(
        self,
        session: Session,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        audit: Audit = ORDINARY,
    ) -> bool:
        return session.is_trusted or self.decide(session, Action(operation, resource_type, name), audit)

    def decide(self, who: Who, action: Action, audit: Audit) -> bool:
        verdict = self._index.decide(who.principal, who.host, *action)
        if verdict.is_allowed:
            level = logging.DEBUG if audit.logs_allowed else TRACE
        else:
            level = logging.INFO if audit.logs_denied else TRACE
        if audit_log.isEnabledFor(level):
            audit_log.log(level, "%s", one_line(_audit_line(who, action, audit, verdict)))
        return verdict.is_allowed

    def allows_any(self, session: Session, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the operation is allowed on any resource of the type."""
        return session.is_trusted or self._index.decide_any(
            session.principal, session.host, operation, resource_type
        )

    def operations(self, session: Session, resource_type: ResourceType, name: str) -> int:
        """The bit field of the operations that are allowed on the resource."""
        return sum(
            1 << operation
            for operation in OPERATIONS[resource_type]
            if self.allows(session, operation, resource_type, name, UNASKED)
        )

    # ---- the port of the gate

    @property
    def rights(self) -> Rights | None:
        return self

    def may_write(self, asker: Asker, topic: str) -> bool:
        if asker.is_short_way:
            # After a short way that gave up, the ordinary way asks again.
            return self.decide(asker, Action(Operation.WRITE, ResourceType.TOPIC, topic), _PLAIN_PRODUCE)
        return self._decide_at_gate(asker, Action(Operation.WRITE, ResourceType.TOPIC, topic), "Produce")

    def may_read(self, asker: Asker, topic: str) -> bool:
        if asker.is_replica:
            action = Action(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        else:
            action = Action(Operation.READ, ResourceType.TOPIC, topic)
        return self._decide_at_gate(asker, action, "Fetch")

    def _decide_at_gate(self, asker: Asker, action: Action, request: str) -> bool:
        """Each name that is denied is logged once for a request, which has an asker of its own."""
        if asker is not self._last_asker:
            self._last_asker = asker
            self._denied = set()
        is_logged = action.name not in self._denied and len(self._denied) < DENIALS_LOGGED_MAX
        is_allowed = self.decide(asker, action, Audit(request, logs_denied=is_logged))
        if not is_allowed and is_logged:
            self._denied.add(action.name)
            if len(self._denied) == DENIALS_LOGGED_MAX:
                log_no_more(asker, request)
        return is_allowed


class AllowAll:
    """The authorizer of a broker that has none."""

    is_enabled = False
    # The gate need not ask.
    rights: Rights | None = None

    def follow(self, image: MetadataImage) -> bool:
        return False

    def allows(
        self,
        session: Session,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        audit: Audit = ORDINARY,
    ) -> bool:
        return True

    def allows_any(self, session: Session, operation: Operation, resource_type: ResourceType) -> bool:
        return True

    def operations(self, session: Session, resource_type: ResourceType, name: str) -> int:
        return _ALL_OPERATIONS[resource_type]


_ALL_OPERATIONS = {
    kind: sum(1 << operation for operation in operations) for kind, operations in OPERATIONS.items()
}
_PLAIN_PRODUCE = Audit("Produce", logs_denied=False)


def authorizer_of(config: BrokerConfig) -> Authorizer | AllowAll:
    if not config["authorizer.class.name"]:
        return AllowAll()
    allows_by_default = config["allow.everyone.if.no.acl.found"]
    return Authorizer(AclIndex(super_users=super_users(config), allows_by_default=allows_by_default))


def super_users(config: BrokerConfig) -> list[str]:
    users = [user.strip() for user in config["super.users"].split(";") if user.strip()]
    for user in users:
        try:
            parse_principal(user)
        except ValueError as error:
            raise ConfigError(f"super.users: {error}; separate several by semicolons.") from error
    return users


def log_no_more(who: Who, request: str) -> None:
    principal = one_line(str(who.principal))
    audit_log.info("Principal = %s: further denials of this request = %s are not written", principal, request)


def _audit_line(who: Who, action: Action, audit: Audit, verdict: tuple[bool, str]) -> str:
    is_allowed, reason = verdict
    return (
        f"Principal = {who.principal} is {'Allowed' if is_allowed else 'Denied'} "
        f"operation = {action.operation.name} from host = {who.host} "
        f"on resource = {_TYPE_NAMES[action.resource_type]}:LITERAL:{action.name} "
        f"for request = {audit.request} with resourceRefCount = {audit.references} based on rule {reason}"
    )
