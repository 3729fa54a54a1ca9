"""The kinds of rows in the table of rights.

A rule is asked before the handler of its API runs. It refuses the request, or takes the elements that the
peer has no right to out of it. Then the handler answers what is left, and the rule adds the answers of the
refused elements, or takes out of the answer what the peer may not see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from barnabas.broker.authorization.authorizer import DENIALS_LOGGED_MAX, REFUSALS, Audit, log_no_more
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.call import Call
    from barnabas.wire.message import Message


class Right(NamedTuple):
    operation: Operation
    resource_type: ResourceType


class Rights:
    """What the peer of one request may do."""

    __slots__ = ("_denials", "_request", "call")

    def __init__(self, call: Call) -> None:
        self.call = call
        self._request = call.broker.rows[call.header.api_key].name
        self._denials = 0

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType = ResourceType.CLUSTER,
        name: str = CLUSTER_NAME,
        *,
        references: int = 1,
        logs_denied: bool = True,
    ) -> bool:
        audit = Audit(self._request, references, True, logs_denied and self._denials < DENIALS_LOGGED_MAX)
        authorizer, session = self.call.broker.authorizer, self.call.session
        is_allowed = authorizer.allows(session, operation, resource_type, name, audit)
        if not is_allowed and logs_denied:
            self._denials += 1
            if self._denials == DENIALS_LOGGED_MAX:
                log_no_more(session, self._request)
        return is_allowed

    def allowed(
        self, right: Right, names: Iterable[str | None], *, logs_denied: bool = True
    ) -> Work[set[str | None]]:
        """The names with which the peer may do it; each is asked once. None stays: it is the name of
        something that does not exist."""
        counts: Counter[str | None] = Counter()
        for name in names:
            counts[name] += 1
            yield
        allowed: set[str | None] = set()
        for name, count in counts.items():
            if name is None or self.may(*right, name, references=count, logs_denied=logs_denied):
                allowed.add(name)
            yield
        return allowed


Finish: TypeAlias = Callable[[Any], Work[None]]
# The answer, or work that makes it: a refused request may have as many partitions as any other.
Refuse: TypeAlias = Callable[[Rights, Any, ErrorCode], "Message | Work[Message]"]
# The name of an element: its field, a function, or None if the element itself is the name.
Name: TypeAlias = str | Callable[[Rights, Any], str | None] | None


class Outcome(NamedTuple):
    """`is_refused`: the handler does not run, and `answer` is the answer (None: there is none). Otherwise the
    functions in `finish` change the answer of the handler."""

    is_refused: bool = False
    answer: Message | None = None
    finish: tuple[Finish, ...] = ()


PASSED = Outcome()


def refused(answer: Message | None) -> Outcome:
    return Outcome(is_refused=True, answer=answer)


class Rule:
    """`rights` has every right that may be asked for. This one lets everybody in."""

    rights: tuple[Right, ...] = ()

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        yield from ()
        return PASSED


class NoRight(Rule):
    """Everybody may, or the handler decides by something else than ACLs."""


class AtTheGate(Rule):
    """The gate asks for these rights (replication/gate.py), so that its permits stand for them."""

    def __init__(self, *rights: Right) -> None:
        self.rights = rights


class Whole(Rule):
    """A right to the whole request: on the cluster, or on what the request names in `field`."""

    def __init__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        refuse: Refuse,
        *,
        field: str | None = None,
        instead: Operation | None = None,
    ) -> None:
        self._right = Right(operation, resource_type)
        self._instead = None if instead is None else Right(instead, resource_type)
        self.rights = (self._right,) if self._instead is None else (self._right, self._instead)
        self._refuse = refuse
        self._field = field

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        yield from ()
        name = CLUSTER_NAME if self._field is None else getattr(request, self._field)
        if self._instead is not None and rights.may(*self._instead, name, logs_denied=False):
            return PASSED
        if rights.may(*self._right, name):
            return PASSED
        answer = self._refuse(rights, request, REFUSALS[self._right.resource_type])
        return refused((yield from _made(answer)))


class Elements(NamedTuple):
    """Where the elements of a request are, where their answers are, and how that of a refused one looks."""

    items: str
    name: Name
    response: type[Message]
    answers: str
    refuse: Callable[[Any, ErrorCode], Any]


class Each(Rule):
    """A right for each element of the request. Who has the right `instead` needs none of them."""

    def __init__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        elements: Elements,
        *,
        instead: Right | None = None,
    ) -> None:
        self._right = Right(operation, resource_type)
        self._instead = instead
        self.rights = (self._right,) if instead is None else (self._right, instead)
        self._elements = elements

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        items = getattr(request, self._elements.items)
        if not items or (self._instead is not None and rights.may(*self._instead, logs_denied=False)):
            return PASSED
        names = [name_of(rights, self._elements.name, item) for item in items]
        allowed = yield from rights.allowed(self._right, names)
        is_allowed = [name in allowed for name in names]
        code = REFUSALS[self._right.resource_type]
        return (yield from split(request, self._elements, is_allowed, lambda _: code))


class LeftOut(Rule):
    """What the peer has no right to is not in the answer: `answers` are its elements, `name` is a field of
    theirs. Who has the right `instead` sees all."""

    def __init__(self, right: Right, answers: str, name: str, *, instead: Right | None = None) -> None:
        self._right = right
        self._instead = instead
        self.rights = (right,) if instead is None else (right, instead)
        self._answers = answers
        self._name = name

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        yield from ()
        if self._instead is not None and rights.may(*self._instead, logs_denied=False):
            return PASSED

        def finish(response: Any) -> Work[None]:
            answers = getattr(response, self._answers)
            names = [getattr(answer, self._name) for answer in answers]
            allowed = yield from rights.allowed(self._right, names, logs_denied=False)
            kept = [answer for answer, name in zip(answers, names, strict=True) if name in allowed]
            setattr(response, self._answers, kept)

        return Outcome(finish=(finish,))


class Own(Rule):
    """A rule that is a function of its own."""

    def __init__(self, function: Callable[[Rights, Any], Work[Outcome]], *rights: Right) -> None:
        self._function = function
        self.rights = rights

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        return (yield from self._function(rights, request))


class Both(Rule):
    """One rule after the other."""

    def __init__(self, *rules: Rule) -> None:
        self._rules = rules
        self.rights = tuple(dict.fromkeys(right for rule in rules for right in rule.rights))

    def check(self, rights: Rights, request: Any) -> Work[Outcome]:
        finish: tuple[Finish, ...] = ()
        for rule in self._rules:
            outcome = yield from rule.check(rights, request)
            if outcome.is_refused:
                return outcome
            finish += outcome.finish
        return Outcome(finish=finish)


def name_of(rights: Rights, name: Name, item: Any) -> str | None:
    if name is None:
        return str(item)
    found: str | None = getattr(item, name) if isinstance(name, str) else name(rights, item)
    return found


def split(
    request: Any, elements: Elements, is_allowed: list[bool], code_of: Callable[[Any], ErrorCode]
) -> Work[Outcome]:
    """Take the elements that are not allowed out of the request. If none is left, their answers are the whole
    answer."""
    items = getattr(request, elements.items)
    kept, answers = [], []
    for item, may in zip(items, is_allowed, strict=True):
        if may:
            kept.append(item)
        else:
            answers.append((yield from _made(elements.refuse(item, code_of(item)))))
        yield
    if not answers:
        return PASSED
    setattr(request, elements.items, kept)
    if not kept:
        return refused(elements.response(**{elements.answers: answers}))
    return Outcome(finish=(adding(elements.answers, answers),))


def _made(answer: Any) -> Work[Any]:
    return (yield from answer) if isinstance(answer, GeneratorType) else answer


def adding(field: str, answers: list[Any]) -> Finish:
    """Add answers to those of the handler."""

    def finish(response: Any) -> Work[None]:
        yield from ()
        setattr(response, field, [*getattr(response, field), *answers])

    return finish
