"""Delegation tokens: who may create one for somebody else, and who sees which."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.conftest import MakeStage, Stage

from barnabas.broker.authorization.rules import Outcome, Rights
from barnabas.broker.authorization.transactions import create_token, described_tokens
from barnabas.broker.call import Call
from barnabas.broker.session import Session
from barnabas.broker.turns import Work
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.errors import ErrorCode
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.codec import RequestHeader
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)

ALICE = Principal("User", "alice")


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage(authorizer_class_name=STANDARD_AUTHORIZER)


def rights_of(stage: Stage, api_key: int) -> Rights:
    """Alice's, on a listener where she has shown who she is."""
    listener = stage.config.listeners[0]._replace(protocol="SASL_SSL")
    session = Session(listener, "", ALICE)
    call = Call(stage, None, session, RequestHeader(api_key, 3, 7, "tests"))  # type: ignore[arg-type]
    return Rights(call)


def allow(stage: Stage, operation: Operation, kind: ResourceType, name: str) -> None:
    acl = Acl(kind, name, PatternType.LITERAL, str(ALICE), "*", operation, Permission.ALLOW)
    assert stage.run(stage.controller.create_acls([acl])) == [None]


def finished(work: Work[Any]) -> Any:
    try:
        while True:
            next(work)
    except StopIteration as done:
        return done.value


def test_a_token_of_another_owner_needs_a_right(stage: Stage) -> None:
    def ask(owner: str) -> Outcome:
        request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner)
        outcome: Outcome = finished(create_token(rights_of(stage, 38), request))
        return outcome

    assert not ask("alice").is_refused
    refused: Any = ask("bob").answer
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
    allow(stage, Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    assert not ask("bob").is_refused


def test_users_see_their_own_tokens_and_those_that_they_may_describe(stage: Stage) -> None:
    def visible() -> list[str]:
        renewer = DescribedDelegationTokenRenewer(principal_type="User", principal_name="alice")
        tokens = [
            DescribedDelegationToken(principal_type="User", principal_name=owner, token_id=token_id)
            for token_id, owner in (("1", "alice"), ("2", "bob"), ("3", "carol"), ("4", "dave"))
        ]
        tokens[3].renewers = [renewer]
        response = DescribeDelegationTokenResponse(tokens=tokens)
        outcome = finished(described_tokens(rights_of(stage, 41), None))
        for finish in outcome.finish:
            finished(finish(response))
        return [token.token_id for token in response.tokens]

    assert visible() == ["1", "4"]
    allow(stage, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "2")
    assert visible() == ["1", "2", "4"]
    allow(stage, Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")
    assert visible() == ["1", "2", "3", "4"]
