"""All ACLs, found fast: what decides about one operation of one principal on one resource.

ACLs are kept by type and name of their resource, those with prefixes by the length of the prefix too: a
question looks up the name, `*`, and one prefix for each length that occurs. The last answers are remembered
until an ACL changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple, TypeAlias

from barnabas.security.acls import (
    ANYBODY,
    OPERATIONS,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.security.principal import Principal

# All remembered answers are forgotten when there are this many.
ANSWERS_MAX = 20_000
# Any name. Who may do something with a topic of this name without an ACL for it is a super user, or may do so
# with every topic.
_SOME_NAME = "hardcode"
_TYPES_MAX = 256

Question: TypeAlias = tuple[Principal, str, Operation, ResourceType, str]


class Verdict(NamedTuple):
    """`reason` is the rule that decided, as the audit log names it."""

    is_allowed: bool
    reason: str


_SUPER_USER = Verdict(True, "SuperUser")
_DEFAULT_ALLOW = Verdict(True, "DefaultAllow")
_DEFAULT_DENY = Verdict(False, "DefaultDeny")


class _Names:
    """The ACLs of one type of resource."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, set[Acl]] = {}
        self.prefixed: dict[str, set[Acl]] = {}
        # How many prefixes there are of each length.
        self.lengths: Counter[int] = Counter()

    def add(self, acl: Acl) -> None:
        if acl.pattern_type is PatternType.LITERAL:
            self.literal.setdefault(acl.resource_name, set()).add(acl)
            return
        if acl.resource_name not in self.prefixed:
            self.prefixed[acl.resource_name] = set()
            self.lengths[len(acl.resource_name)] += 1
        self.prefixed[acl.resource_name].add(acl)

    def remove(self, acl: Acl) -> None:
        is_literal = acl.pattern_type is PatternType.LITERAL
        by_name = self.literal if is_literal else self.prefixed
        acls = by_name.get(acl.resource_name, set())
        acls.discard(acl)
        if acls or acl.resource_name not in by_name:
            return
        del by_name[acl.resource_name]
        if not is_literal:
            length = len(acl.resource_name)
            self.lengths[length] -= 1
            if not self.lengths[length]:
                del self.lengths[length]

    def about(self, name: str) -> Iterator[Set[Acl]]:
        """The ACLs whose pattern matches the name."""
        if name in self.literal:
            yield self.literal[name]
        if name != WILDCARD and WILDCARD in self.literal:
            yield self.literal[WILDCARD]
        for length in self.lengths:
            if length <= len(name):
                acls = self.prefixed.get(name[:length])
                if acls is not None:
                    yield acls

    def all(self) -> Iterator[Acl]:
        for by_name in (self.literal, self.prefixed):
            for acls in by_name.values():
                yield from acls


class AclIndex:
    """`super_users` are principals as text; `allows_by_default` is `allow.everyone.if.no.acl.found`."""

    def __init__(
        self,
        acls: Iterable[Acl] = (),
        *,
        super_users: Iterable[str] = (),
        allows_by_default: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._default = _DEFAULT_ALLOW if allows_by_default else _DEFAULT_DENY
        self._names: dict[ResourceType, _Names] = {kind: _Names() for kind in OPERATIONS}
        self._answers: dict[tuple[Principal, str, int, str], Verdict] = {}
        self._any_answers: dict[tuple[Principal, str, int], bool] = {}
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        self._names[acl.resource_type].add(acl)
        self._forget_answers()

    def remove(self, acl: Acl) -> None:
        self._names[acl.resource_type].remove(acl)
        self._forget_answers()

    def _forget_answers(self) -> None:
        self._answers.clear()
        self._any_answers.clear()

    def decide(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> Verdict:
        # Members of an enumeration are hashed slowly, so they are made one number.
        question = (principal, host, operation * _TYPES_MAX + resource_type, resource_name)
        verdict = self._answers.get(question)
        if verdict is None:
            verdict = self._verdict((principal, host, operation, resource_type, resource_name))
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = verdict
        return verdict

    def _verdict(self, question: Question) -> Verdict:
        principal, host, operation, resource_type, resource_name = question
        who = str(principal)
        if who in self._super_users:
            return _SUPER_USER
        verdict = self._default
        for acls in self._names[resource_type].about(resource_name):
            if not verdict.is_allowed or verdict is _DEFAULT_ALLOW:
                # There are ACLs about the resource: what they do not allow is denied.
                verdict = _DEFAULT_DENY
            for acl in acls:
                if not acl.concerns(who, host, operation):
                    continue
                if acl.permission is Permission.DENY:
                    return Verdict(False, f"MatchingAcl(acl={acl})")
                verdict = Verdict(True, f"MatchingAcl(acl={acl})")
        return verdict

    def decide_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any name of a resource of this type for which the operation is allowed. Only ACLs
        for the operation itself or ALL count."""
        if self.decide(principal, host, operation, resource_type, _SOME_NAME).is_allowed:
            return True
        question = (principal, host, operation * _TYPES_MAX + resource_type)
        is_allowed = self._any_answers.get(question)
        if is_allowed is None:
            is_allowed = self._is_any_allowed(str(principal), host, operation, resource_type)
            if len(self._any_answers) >= ANSWERS_MAX:
                self._any_answers.clear()
            self._any_answers[question] = is_allowed
        return is_allowed

    def _is_any_allowed(self, who: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        denied: set[tuple[PatternType, str]] = set()
        allowed: set[tuple[PatternType, str]] = set()
        for acl in self._names[resource_type].all():
            if (
                acl.principal in (who, ANYBODY)
                and acl.host in (host, WILDCARD)
                and acl.operation in (operation, Operation.ALL)
            ):
                names = denied if acl.permission is Permission.DENY else allowed
                names.add((acl.pattern_type, acl.resource_name))
        every_name = (PatternType.LITERAL, WILDCARD)
        if every_name in denied:
            return False
        return every_name in allowed or any(not _is_covered(pattern, denied) for pattern in allowed)


def _is_covered(pattern: tuple[PatternType, str], denied: Set[tuple[PatternType, str]]) -> bool:
    """Whether everything that the pattern allows is denied."""
    kind, name = pattern
    if kind is PatternType.LITERAL and pattern in denied:
        return True
    return any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
