"""ACLs in the metadata: created once, deleted by filters, kept in snapshots, seen in differences."""

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata import acl_changes
from barnabas.metadata.acl_changes import create_acls, delete_acls
from barnabas.metadata.image import MetadataImage
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

READ_ORDERS = Acl(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
WRITE_ORDERS = READ_ORDERS._replace(operation=Operation.WRITE)


def created(*acls: Acl, image: MetadataImage | None = None) -> MetadataImage:
    image = image or MetadataImage()
    return image.apply(create_acls(image, acls).records)


def test_an_acl_exists_once() -> None:
    image = created(READ_ORDERS, READ_ORDERS, WRITE_ORDERS)
    assert sorted(image.acls.values()) == [READ_ORDERS, WRITE_ORDERS]
    again = create_acls(image, [READ_ORDERS])
    assert again.records == () and again.result == [None]


def test_what_cannot_be_an_acl_is_refused_alone() -> None:
    decision = create_acls(MetadataImage(), [READ_ORDERS._replace(principal="alice"), READ_ORDERS])
    refused, done = decision.result
    assert isinstance(refused, KafkaError) and refused.code == ErrorCode.INVALID_REQUEST
    assert done is None and len(decision.records) == 1


def test_filters_delete_what_they_select() -> None:
    image = created(READ_ORDERS, WRITE_ORDERS)
    decision = delete_acls(
        image, [AclFilter(operation=Operation.READ), AclFilter(operation=Operation.CREATE), AclFilter()]
    )
    first, second, third = decision.result
    assert (first, second) == ([READ_ORDERS], [])
    assert isinstance(third, list) and sorted(third) == [READ_ORDERS, WRITE_ORDERS]
    assert image.apply(decision.records).acls == {}


def test_filters_that_select_very_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_changes, "DELETED_MAX", 2)
    image = created(READ_ORDERS, WRITE_ORDERS)
    first, second = delete_acls(image, [AclFilter(), AclFilter()]).result
    assert isinstance(first, list)
    assert isinstance(second, KafkaError) and second.code == ErrorCode.INVALID_REQUEST


def test_a_snapshot_has_them_and_a_difference_says_that_they_changed() -> None:
    image = created(READ_ORDERS)
    assert MetadataImage().apply(image.records()).acls == image.acls
    assert image.difference(MetadataImage()).acls_changed
    later = created(WRITE_ORDERS, image=image)
    assert later.difference(image).acls_changed
    assert not later.difference(later).acls_changed
