"""ACLs, SCRAM credentials and delegation tokens: what is sent, and what becomes of the answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.scripted_peer import Answer, ScriptedPeer, versions

from barnabas import AsyncAdmin
from barnabas.client.admin import (
    Acl,
    AclFilter,
    Admin,
    AdminError,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.security import scram
from barnabas.wire.codec import Request
from barnabas.wire.messages import (
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    metadata,
    renew_delegation_token,
)

APIS = {key: (0, 20) for key in (29, 30, 31, 38, 39, 40, 41, 50, 51)}
READ = Acl(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
)
WRITE = READ._replace(operation=Operation.WRITE, pattern_type=PatternType.PREFIXED)


def talk(answer: Callable[[Any], Answer], story: Callable[[Admin], object]) -> list[Any]:
    """Have an admin client talk to a broker that answers so; returns the messages that it got."""
    messages: list[Any] = []

    def answered(request: Request) -> Answer:
        if request.header.api_key == 18:
            return versions({metadata.API_KEY: (0, 13), **APIS})
        if request.header.api_key == metadata.API_KEY:
            broker = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=peer.port)
            return metadata.MetadataResponse(brokers=[broker], controller_id=1)
        messages.append(request.message)
        return answer(request.message)

    with ScriptedPeer(answered) as peer, Admin(bootstrap_servers=peer.bootstrap, retry_backoff_ms=1) as admin:
        story(admin)
    return messages


# ---- ACLs


def test_acls_are_created_and_the_errors_belong_to_them() -> None:
    def answer(message: Any) -> Answer:
        refused = create_acls.AclCreationResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
        )
        return create_acls.CreateAclsResponse(results=[create_acls.AclCreationResult(), refused])

    def story(admin: Admin) -> None:
        with pytest.raises(AdminError, match="No Authorizer") as caught:
            admin.create_acls([READ, WRITE])
        assert list(caught.value.errors) == [WRITE]

    (message,) = talk(answer, story)
    first, second = message.creations
    assert (first.resource_type, first.resource_name, first.resource_pattern_type) == (2, "orders", 3)
    assert (first.principal, first.host, first.operation, first.permission_type) == ("User:alice", "*", 3, 3)
    assert (second.resource_pattern_type, second.operation) == (4, 4)


def test_acls_are_found_by_a_filter() -> None:
    def answer(message: Any) -> Answer:
        acl = describe_acls.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
        resource = describe_acls.DescribeAclsResource(
            resource_type=2, resource_name="orders", pattern_type=3, acls=[acl]
        )
        return describe_acls.DescribeAclsResponse(resources=[resource])

    def story(admin: Admin) -> None:
        assert admin.describe_acls() == [READ]
        assert admin.describe_acls(AclFilter(ResourceType.TOPIC, "x", PatternType.MATCH, "User:a")) == [READ]

    everything, some = talk(answer, story)
    assert (everything.resource_type_filter, everything.pattern_type_filter, everything.operation) == (
        1,
        1,
        1,
    )
    assert everything.resource_name_filter is everything.principal_filter is everything.host_filter is None
    assert (some.resource_name_filter, some.pattern_type_filter, some.principal_filter) == ("x", 2, "User:a")


def test_an_acl_that_this_client_does_not_know_is_not_left_out() -> None:
    def answer(message: Any) -> Answer:
        acl = describe_acls.AclDescription(principal="User:a", host="*", operation=99, permission_type=3)
        resource = describe_acls.DescribeAclsResource(resource_type=2, resource_name="x", acls=[acl])
        return describe_acls.DescribeAclsResponse(resources=[resource])

    def story(admin: Admin) -> None:
        with pytest.raises(KafkaError, match="99 is not a known Operation"):
            admin.describe_acls()

    talk(answer, story)


def test_deleted_acls_are_returned_by_filter() -> None:
    def answer(message: Any) -> Answer:
        deleted = delete_acls.DeleteAclsMatchingAcl(
            resource_type=2, resource_name="orders", pattern_type=3, principal="User:alice", host="*",
            operation=3, permission_type=3,
        )  # fmt: skip
        failed = delete_acls.DeleteAclsMatchingAcl(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        results = [
            delete_acls.DeleteAclsFilterResult(matching_acls=[deleted]),
            delete_acls.DeleteAclsFilterResult(matching_acls=[deleted, failed]),
        ]
        return delete_acls.DeleteAclsResponse(filter_results=results[: len(message.filters)])

    one, other = AclFilter(ResourceType.TOPIC), AclFilter(ResourceType.GROUP)

    def story(admin: Admin) -> None:
        assert admin.delete_acls([one]) == {one: [READ]}
        with pytest.raises(AdminError) as caught:
            admin.delete_acls([one, other])
        assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert caught.value.results == {one: [READ]}

    talk(answer, story)


# ---- users


def test_a_password_is_salted_before_it_is_sent() -> None:
    def answer(message: Any) -> Answer:
        names = {each.name for each in (*message.upsertions, *message.deletions)}
        result = alter_user_scram_credentials.AlterUserScramCredentialsResult
        return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
            results=[result(user=name) for name in sorted(names)]
        )

    changes = [
        ScramUpsertion("alice", "secret", "SCRAM-SHA-256", 5000, b"salt"),
        ScramDeletion("alice", "SCRAM-SHA-512"),
        ScramUpsertion("bob", "other"),
    ]

    def story(admin: Admin) -> None:
        admin.alter_user_scram_credentials(changes)

    (message,) = talk(answer, story)
    (deletion,) = message.deletions
    assert (deletion.name, deletion.mechanism) == ("alice", 2)
    alice, bob = message.upsertions
    assert (alice.name, alice.mechanism, alice.iterations, alice.salt) == ("alice", 1, 5000, b"salt")
    salted = scram.salted_password(scram.ScramMechanism.SHA_256, "secret", b"salt", 5000)
    assert alice.salted_password == salted
    assert (bob.mechanism, bob.iterations) == (2, 4096) and len(bob.salt) > 16
    assert "secret" not in repr(changes)


def test_the_error_of_a_user_belongs_to_it() -> None:
    def answer(message: Any) -> Answer:
        result = alter_user_scram_credentials.AlterUserScramCredentialsResult(
            user="alice", error_code=ErrorCode.UNACCEPTABLE_CREDENTIAL, error_message="Too few iterations"
        )
        return alter_user_scram_credentials.AlterUserScramCredentialsResponse(results=[result])

    def story(admin: Admin) -> None:
        with pytest.raises(AdminError, match="alice: Too few iterations"):
            admin.alter_user_scram_credentials([ScramUpsertion("alice", "secret", iterations=1_000_000_000)])

    talk(answer, story)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (ScramUpsertion("", "p"), "name of the user must not be empty"),
        (ScramUpsertion("u", ""), "password of 'u' must not be empty"),
        (ScramDeletion("u", "PLAIN"), "'PLAIN' is not a SCRAM mechanism"),
    ],
)
def test_an_impossible_change_is_not_sent(change: Any, sentence: str) -> None:
    def story(admin: Admin) -> None:
        with pytest.raises(KafkaError, match=sentence):
            admin.alter_user_scram_credentials([change])

    assert talk(lambda message: "close", story) == []


def test_credentials_are_described() -> None:
    info = describe_user_scram_credentials.CredentialInfo

    def answer(message: Any) -> Answer:
        result = describe_user_scram_credentials.DescribeUserScramCredentialsResult
        alice = result(user="alice", credential_infos=[info(mechanism=2, iterations=8192)])
        nobody = result(user="nobody", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="no such user")
        return describe_user_scram_credentials.DescribeUserScramCredentialsResponse(
            results=[alice] if message.users is None else [alice, nobody]
        )

    def story(admin: Admin) -> None:
        wanted = {"alice": [ScramCredentialInfo("SCRAM-SHA-512", 8192)]}
        assert admin.describe_user_scram_credentials() == wanted
        with pytest.raises(AdminError, match="no such user") as caught:
            admin.describe_user_scram_credentials(["alice", "nobody"])
        assert caught.value.results == wanted

    everybody, some = talk(answer, story)
    assert everybody.users is None
    assert [user.name for user in some.users] == ["alice", "nobody"]


# ---- tokens


def test_a_token_is_created_renewed_expired_and_described() -> None:
    def answer(message: Any) -> Answer:
        match message:
            case create_delegation_token.CreateDelegationTokenRequest():
                return create_delegation_token.CreateDelegationTokenResponse(
                    principal_type="User", principal_name="alice",
                    token_requester_principal_type="User", token_requester_principal_name="admin",
                    issue_timestamp_ms=1, expiry_timestamp_ms=2, max_timestamp_ms=3,
                    token_id="id", hmac=b"hmac",
                )  # fmt: skip
            case renew_delegation_token.RenewDelegationTokenRequest():
                return renew_delegation_token.RenewDelegationTokenResponse(expiry_timestamp_ms=7)
            case expire_delegation_token.ExpireDelegationTokenRequest():
                return expire_delegation_token.ExpireDelegationTokenResponse(error_code=62)
            case _:
                renewer = describe_delegation_token.DescribedDelegationTokenRenewer(
                    principal_type="User", principal_name="bob"
                )
                token = describe_delegation_token.DescribedDelegationToken(
                    principal_type="User", principal_name="alice", token_id="id", hmac=b"hmac",
                    token_requester_principal_type="User", token_requester_principal_name="admin",
                    issue_timestamp=1, expiry_timestamp=2, max_timestamp=3, renewers=[renewer],
                )  # fmt: skip
                return describe_delegation_token.DescribeDelegationTokenResponse(tokens=[token])

    def story(admin: Admin) -> None:
        token = admin.create_delegation_token(["User:bob"], owner="User:alice", max_lifetime_ms=99)
        assert token.password == "aG1hYw==" and "hmac" not in repr(token).replace("hmac=", "")
        assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:admin", ("User:bob",))
        assert (token.issued_ms, token.expires_ms, token.ends_ms) == (1, 2, 3)
        assert admin.describe_delegation_tokens(["User:alice"]) == [token]
        assert admin.renew_delegation_token(token.hmac, period_ms=5) == 7
        with pytest.raises(KafkaError) as caught:
            admin.expire_delegation_token(token.hmac)
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    created, described, renewed, expired = talk(answer, story)
    assert (created.owner_principal_type, created.owner_principal_name) == ("User", "alice")
    assert [(each.principal_type, each.principal_name) for each in created.renewers] == [("User", "bob")]
    assert created.max_lifetime_ms == 99
    assert [(each.principal_type, each.principal_name) for each in described.owners] == [("User", "alice")]
    assert (renewed.hmac, renewed.renew_period_ms) == (b"hmac", 5)
    assert (expired.hmac, expired.expiry_time_period_ms) == (b"hmac", -1)


def test_without_an_owner_the_token_is_ones_own() -> None:
    def answer(message: Any) -> Answer:
        if isinstance(message, create_delegation_token.CreateDelegationTokenRequest):
            return create_delegation_token.CreateDelegationTokenResponse(token_id="id")
        return describe_delegation_token.DescribeDelegationTokenResponse()

    def story(admin: Admin) -> None:
        admin.create_delegation_token()
        assert admin.describe_delegation_tokens() == []

    created, described = talk(answer, story)
    assert created.owner_principal_type is created.owner_principal_name is None
    assert created.max_lifetime_ms == -1
    assert described.owners is None


def test_the_asyncio_form_does_the_same() -> None:
    def answered(request: Request) -> Answer:
        if request.header.api_key == 18:
            return versions({metadata.API_KEY: (0, 13), **APIS})
        return describe_acls.DescribeAclsResponse()

    async def story() -> None:
        async with AsyncAdmin(bootstrap_servers=peer.bootstrap) as admin:
            assert await admin.describe_acls() == []

    with ScriptedPeer(answered) as peer:
        asyncio.run(story())
