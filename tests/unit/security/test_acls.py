"""ACLs: stories of single rules, and random sets of ACLs beside a slow model of Kafka's documentation."""

from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security import acl_index
from barnabas.security.acl_index import AclIndex, Question
from barnabas.security.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    member_of,
    problem_of,
)
from barnabas.security.principal import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HOST = "10.0.0.1"
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
TOPIC = ResourceType.TOPIC


def acl(
    operation: Operation = READ,
    name: str = "orders",
    pattern: PatternType = LITERAL,
    permission: Permission = ALLOW,
    principal: str = "User:alice",
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


def may(index: AclIndex, operation: Operation = READ, name: str = "orders", who: Principal = ALICE) -> bool:
    return index.decide(who, HOST, operation, TOPIC, name).is_allowed


# ---- stories


def test_what_no_acl_allows_is_denied() -> None:
    assert not may(AclIndex())
    assert may(AclIndex([acl()]))
    assert not may(AclIndex([acl()]), WRITE)
    assert not may(AclIndex([acl()]), who=BOB)
    assert not may(AclIndex([acl()]), name="orders2")


def test_a_denial_outweighs_every_permission() -> None:
    index = AclIndex([acl(Operation.ALL, "*"), acl(), acl(READ, "ord", PREFIXED, DENY, "User:*")])
    assert not may(index)
    assert may(index, WRITE)


def test_a_prefix_matches_its_own_name_and_longer_ones() -> None:
    index = AclIndex([acl(name="ord", pattern=PREFIXED)])
    assert may(index, name="ord")
    assert may(index, name="orders")
    assert not may(index, name="or")
    assert not may(index, name="xord")


def test_a_wildcard_is_for_every_name_and_a_literal_one_only() -> None:
    assert may(AclIndex([acl(name="*")]))
    assert not may(AclIndex([acl(name="*", pattern=PREFIXED)]))
    assert may(AclIndex([acl(name="*", pattern=PREFIXED)]), name="*a")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_some_operations_allow_to_describe_and_their_denial_does_not_deny_it(operation: Operation) -> None:
    assert may(AclIndex([acl(operation)]), DESCRIBE)
    assert may(AclIndex([acl(operation, permission=DENY), acl(DESCRIBE)]), DESCRIBE)


def test_alter_configs_allows_describe_configs_and_not_the_other_way() -> None:
    assert may(AclIndex([acl(Operation.ALTER_CONFIGS)]), Operation.DESCRIBE_CONFIGS)
    assert not may(AclIndex([acl(Operation.DESCRIBE_CONFIGS)]), Operation.ALTER_CONFIGS)
    assert not may(AclIndex([acl(Operation.CREATE)]), DESCRIBE)


def test_hosts() -> None:
    assert may(AclIndex([acl(host=HOST)]))
    assert not may(AclIndex([acl(host="10.0.0.2")]))


def test_super_users_cannot_be_denied() -> None:
    denied = [acl(Operation.ALL, "*", permission=DENY, principal="User:*")]
    assert may(AclIndex(denied, super_users=["User:alice"]))
    assert not may(AclIndex(denied, super_users=["User:bob"]))


def test_the_default_counts_only_where_no_acl_is_about_the_resource() -> None:
    index = AclIndex([acl(principal="User:bob")], allows_by_default=True)
    assert not may(index)
    assert may(index, name="payments")
    assert index.decide(ALICE, HOST, READ, TOPIC, "payments").reason == "DefaultAllow"
    assert index.decide(ALICE, HOST, READ, TOPIC, "orders").reason == "DefaultDeny"


def test_the_reason_names_the_acl_as_kafka_does() -> None:
    assert AclIndex([acl()]).decide(ALICE, HOST, READ, TOPIC, "orders").reason == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
        "principal=User:alice, host=*, operation=READ, permissionType=ALLOW))"
    )


def test_a_change_counts_at_once_though_answers_are_remembered() -> None:
    index = AclIndex()
    assert not may(index)
    index.add(acl())
    assert may(index)
    index.remove(acl())
    assert not may(index)
    index.remove(acl())


def test_remembered_answers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_index, "ANSWERS_MAX", 10)
    index = AclIndex([acl(name="t", pattern=PREFIXED)])
    assert all(may(index, name=f"t{number}") for number in range(100))
    assert len(index._answers) <= 10


def test_any_resource_of_a_type() -> None:
    def any_topic(*acls: Acl, **options: bool) -> bool:
        return AclIndex(acls, **options).decide_any(ALICE, HOST, WRITE, TOPIC)  # type: ignore[arg-type]

    assert not any_topic()
    assert any_topic(allows_by_default=True)
    assert any_topic(acl(WRITE, "x"))
    assert any_topic(acl(Operation.ALL, "x", PREFIXED))
    assert not any_topic(acl(WRITE, "x"), acl(WRITE, "x", permission=DENY))
    assert not any_topic(acl(WRITE, "xyz"), acl(WRITE, "xy", PREFIXED, DENY))
    assert not any_topic(acl(WRITE, "xyz", PREFIXED), acl(WRITE, "xy", PREFIXED, DENY))
    assert any_topic(acl(WRITE, "x", PREFIXED), acl(WRITE, "x", permission=DENY))
    assert not any_topic(acl(WRITE, "x"), acl(WRITE, "*", permission=DENY))
    assert any_topic(acl(WRITE, "*"), acl(WRITE, "x", PREFIXED, DENY))


def test_what_cannot_be_an_acl() -> None:
    assert problem_of(acl()) is None
    assert problem_of(acl(Operation.ANY)) == "Invalid operation ANY"
    assert problem_of(acl(pattern=PatternType.MATCH)) == "Invalid patternType MATCH"
    assert problem_of(acl(permission=Permission.ANY)) == "Invalid permissionType ANY"
    assert problem_of(acl()._replace(resource_type=ResourceType.ANY)) == "Invalid resourceType ANY"
    assert problem_of(acl(name="")) == "Invalid empty resource name"
    assert "no colon" in (problem_of(acl(principal="alice")) or "")
    cluster = acl()._replace(resource_type=ResourceType.CLUSTER)
    assert "kafka-cluster" in (problem_of(cluster) or "")
    assert problem_of(cluster._replace(resource_name="kafka-cluster")) is None


def test_unknown_numbers() -> None:
    assert member_of(Operation, 3) is READ
    with pytest.raises(ValueError, match="99 is not a known Operation"):
        member_of(Operation, 99)


# ---- filters, by the table of KIP-290


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (LITERAL, "foo", {"literal foo"}),
        (LITERAL, "*", {"literal *"}),
        (LITERAL, None, {"literal foo", "literal *", "literal foobar"}),
        (PREFIXED, "foo", {"prefixed foo"}),
        (PREFIXED, None, {"prefixed foo", "prefixed fo", "prefixed *"}),
        (PatternType.ANY, "foo", {"literal foo", "prefixed foo"}),
        (PatternType.ANY, "*", {"literal *", "prefixed *"}),
        (PatternType.MATCH, "foo", {"literal foo", "literal *", "prefixed foo", "prefixed fo"}),
        (PatternType.MATCH, "foobar", {"literal foobar", "literal *", "prefixed foo", "prefixed fo"}),
    ],
)
def test_filters(pattern: PatternType, name: str | None, expected: set[str]) -> None:
    stored = [
        *(acl(name=name, pattern=LITERAL) for name in ("foo", "*", "foobar")),
        *(acl(name=name, pattern=PREFIXED) for name in ("foo", "fo", "*")),
    ]
    chosen = AclFilter(TOPIC, name, pattern)
    found = {
        f"{each.pattern_type.name.lower()} {each.resource_name}" for each in stored if chosen.matches(each)
    }
    assert found == expected


def test_filters_of_the_other_fields() -> None:
    assert AclFilter().matches(acl())
    assert AclFilter(principal="User:alice", host="*", operation=READ, permission=ALLOW).matches(acl())
    assert not AclFilter(principal="User:bob").matches(acl())
    assert not AclFilter(host="h").matches(acl())
    assert not AclFilter(operation=WRITE).matches(acl())
    assert not AclFilter(permission=DENY).matches(acl())
    assert not AclFilter(resource_type=ResourceType.GROUP).matches(acl())


# ---- the model: Kafka's documentation of authorization, rule by rule, without any index


def model_allows(
    acls: Iterable[Acl], question: Question, super_users: set[str], allow_everyone: bool
) -> bool:
    who, host, operation, kind, name = question
    if str(who) in super_users:
        return True

    def is_about_the_resource(each: Acl) -> bool:
        if each.resource_type != kind:
            return False
        if each.pattern_type == PREFIXED:
            return name.startswith(each.resource_name)
        return each.resource_name == "*" or each.resource_name == name

    def is_about_the_peer(each: Acl) -> bool:
        is_principal = each.principal == "User:*" or each.principal == f"{who.type}:{who.name}"
        return is_principal and (each.host == "*" or each.host == host)

    about = [each for each in acls if is_about_the_resource(each)]
    if not about:
        return allow_everyone
    mine = [each for each in about if is_about_the_peer(each)]
    if any(each.permission == DENY and each.operation in (operation, Operation.ALL) for each in mine):
        return False
    granting = {operation, Operation.ALL}
    if operation == DESCRIBE:
        granting |= {READ, WRITE, Operation.DELETE, Operation.ALTER}
    if operation == Operation.DESCRIBE_CONFIGS:
        granting |= {Operation.ALTER_CONFIGS}
    return any(each.permission == ALLOW and each.operation in granting for each in mine)


NAMES = ("*", "a", "ab", "abc", "b", "ba", "*a")
KINDS = (TOPIC, ResourceType.GROUP)
random_acls = st.builds(
    Acl,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:*", "User:alice", "User:bob", "Group:alice"]),
    st.sampled_from(["*", HOST, "10.0.0.2"]),
    st.sampled_from([each for each in Operation if each is not Operation.ANY]),
    st.sampled_from([ALLOW, ALLOW, DENY]),
)


@given(
    acls=st.lists(random_acls, max_size=8),
    removed=st.sets(st.integers(0, 7)),
    super_users=st.sets(st.sampled_from(["User:bob", "User:carol"])),
    allow_everyone=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_index_decides_as_the_model(
    acls: list[Acl], removed: set[int], super_users: set[str], allow_everyone: bool
) -> None:
    index = AclIndex(acls, super_users=super_users, allows_by_default=allow_everyone)
    left = set(acls)
    for number in removed:
        if number < len(acls):
            index.remove(acls[number])
            left.discard(acls[number])
    people = (ALICE, BOB, Principal("Group", "alice"))
    operations = (READ, DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.CREATE)
    for question in product(people, (HOST, "10.0.0.3"), operations, KINDS, NAMES):
        expected = model_allows(left, question, super_users, allow_everyone)
        assert index.decide(*question).is_allowed == expected


@given(acls=st.lists(random_acls, max_size=6))
@settings(max_examples=100, deadline=None)
def test_any_resource_agrees_with_the_single_names(acls: list[Acl]) -> None:
    """If some name is allowed by an ACL for the operation itself, then some resource is."""
    index = AclIndex(acls)
    found = index.decide_any(ALICE, HOST, WRITE, TOPIC)
    names = (*NAMES, "abz", "bz", "zzz", "az", "*az")
    for name in names:
        if index.decide(ALICE, HOST, WRITE, TOPIC, name).is_allowed:
            assert found


def test_any_resource_is_asked_again_after_a_change() -> None:
    index = AclIndex()
    assert not index.decide_any(ALICE, HOST, WRITE, TOPIC)
    index.add(acl(WRITE, "x"))
    assert index.decide_any(ALICE, HOST, WRITE, TOPIC)
    index.remove(acl(WRITE, "x"))
    assert not index.decide_any(ALICE, HOST, WRITE, TOPIC)
