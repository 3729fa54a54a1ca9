"""DescribeUserScramCredentials, key 50, version 0: the SCRAM credentials of some users, or all.

Behaviour: there are none: null or no users give an empty list, a named user RESOURCE_NOT_FOUND, one that is
named twice DUPLICATE_RESOURCE once."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, count) for name, count in counts.items()]
    )


def _result(name: str, count: int) -> DescribeUserScramCredentialsResult:
    code = ErrorCode.RESOURCE_NOT_FOUND
    message = f"Attempt to describe a user credential that does not exist: {name}"
    if count > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message)
