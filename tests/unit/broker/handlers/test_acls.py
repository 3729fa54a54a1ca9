"""CreateAcls, DescribeAcls, DeleteAcls: what they change, and what they refuse."""

from __future__ import annotations

import pytest
from tests.unit.broker.conftest import MakeStage, Stage

from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.errors import ErrorCode
from barnabas.security.acls import Operation, PatternType, Permission, ResourceType
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest


@pytest.fixture
def guarded(make_stage: MakeStage) -> Stage:
    """With an authorizer, and a super user who asks."""
    return make_stage(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS")


def creation(**changes: object) -> AclCreation:
    values = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**values | changes)  # type: ignore[arg-type]


def everything(**changes: object) -> DescribeAclsRequest:
    values = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    return DescribeAclsRequest(**values | changes)  # type: ignore[arg-type]


def found(stage: Stage, **changes: object) -> list[tuple[str, str, int]]:
    answer = stage.ask(everything(**changes), 3)
    assert answer.error_code == ErrorCode.NONE
    return sorted(
        (resource.resource_name, acl.principal, acl.operation)
        for resource in answer.resources
        for acl in resource.acls
    )


def test_without_an_authorizer_there_are_no_acls(stage: Stage) -> None:
    assert stage.ask(everything(), 3).error_code == ErrorCode.SECURITY_DISABLED
    created = stage.ask(CreateAclsRequest(creations=[creation(), creation()]), 3)
    assert [result.error_code for result in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    deleted = stage.ask(DeleteAclsRequest(filters=[DeleteAclsFilter()]), 3)
    assert [result.error_code for result in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


def test_acls_are_created_described_and_deleted(guarded: Stage) -> None:
    created = guarded.ask(
        CreateAclsRequest(
            creations=[creation(), creation(), creation(resource_name="ord", resource_pattern_type=4)]
        ),
        3,
    )
    assert [(result.error_code, result.error_message) for result in created.results] == [(0, None)] * 3
    assert found(guarded) == [("ord", "User:alice", 3), ("orders", "User:alice", 3)]
    assert found(guarded, resource_name_filter="orders") == [("orders", "User:alice", 3)]
    assert len(found(guarded, resource_name_filter="orders", pattern_type_filter=PatternType.MATCH)) == 2
    deleted = guarded.ask(
        DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=2,
                    resource_name_filter="orders",
                    pattern_type_filter=3,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                )
            ]
        ),
        3,
    )
    (result,) = deleted.filter_results
    assert [acl.resource_name for acl in result.matching_acls] == ["orders"]
    assert found(guarded) == [("ord", "User:alice", 3)]


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_name": ""},
        {"principal": "alice"},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
        {"resource_type": 4},
    ],
)
def test_what_cannot_be_an_acl_is_refused_and_the_rest_created(
    guarded: Stage, changes: dict[str, object]
) -> None:
    answer = guarded.ask(CreateAclsRequest(creations=[creation(**changes), creation()]), 3)
    refused, done = answer.results
    assert refused.error_code == ErrorCode.INVALID_REQUEST and refused.error_message
    assert done.error_code == ErrorCode.NONE
    assert len(found(guarded)) == 1


def test_unknown_numbers_in_filters_are_refused(guarded: Stage) -> None:
    assert guarded.ask(everything(operation=99), 3).error_code == ErrorCode.INVALID_REQUEST
    unknown = DeleteAclsFilter(resource_type_filter=99, operation=1, permission_type=1)
    answer = guarded.ask(DeleteAclsRequest(filters=[unknown]), 3)
    assert [result.error_code for result in answer.filter_results] == [ErrorCode.INVALID_REQUEST]
