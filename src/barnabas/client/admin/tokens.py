"""Delegation tokens: a user lets programs act for it, for a limited time and without its password (KIP-48).

A client logs in with a token over SCRAM: the name is the token's id, the password its hmac in Base64, and
`tokenauth="true"` says that it is a token."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.client.admin.base import AdminBase, Call
from barnabas.client.errors import raise_for
from barnabas.security.principal import Principal, parse_principal
from barnabas.wire.messages import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)

# The broker's own limit is taken.
AS_THE_BROKER_SAYS = -1


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """The times are Unix milliseconds. The hmac is as secret as a password."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    """The token cannot be renewed beyond this time."""

    @property
    def password(self) -> str:
        """The hmac as a client's login needs it."""
        return base64.b64encode(self.hmac).decode()


class TokenAdmin(AdminBase):
    def create_delegation_token(
        self,
        renewers: Iterable[str] = (),
        *,
        owner: str | None = None,
        max_lifetime_ms: int = AS_THE_BROKER_SAYS,
        timeout: float | None = None,
    ) -> DelegationToken:
        """A new token of this user, or of another `owner` for which this user may create tokens. The owner
        and the renewers, such as "User:alice", may renew it."""
        of = None if owner is None else parse_principal(owner)
        allowed = [parse_principal(each) for each in renewers]

        async def ask() -> DelegationToken:
            request = create_delegation_token.CreateDelegationTokenRequest(
                owner_principal_type=None if of is None else of.type,
                owner_principal_name=None if of is None else of.name,
                renewers=[
                    create_delegation_token.CreatableRenewers(
                        principal_type=each.type, principal_name=each.name
                    )
                    for each in allowed
                ],
                max_lifetime_ms=max_lifetime_ms,
            )
            connection = await self._cluster.any()
            answer = await connection.send(create_delegation_token.API_KEY, request)
            raise_for(answer.error_code)
            owned_by = Principal(answer.principal_type, answer.principal_name)
            requester = Principal(
                answer.token_requester_principal_type, answer.token_requester_principal_name
            )
            return DelegationToken(
                answer.token_id,
                bytes(answer.hmac),
                str(owned_by),
                # Old brokers do not name the requester: it is the owner.
                str(requester if requester.name else owned_by),
                tuple(map(str, allowed)),
                answer.issue_timestamp_ms,
                answer.expiry_timestamp_ms,
                answer.max_timestamp_ms,
            )

        async def work(call: Call) -> DelegationToken:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def renew_delegation_token(
        self, hmac: bytes, *, period_ms: int = AS_THE_BROKER_SAYS, timeout: float | None = None
    ) -> int:
        """Let a token live longer; returns when it expires, in Unix milliseconds."""

        async def ask() -> int:
            request = renew_delegation_token.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
            connection = await self._cluster.any()
            answer = await connection.send(renew_delegation_token.API_KEY, request)
            raise_for(answer.error_code)
            return int(answer.expiry_timestamp_ms)

        async def work(call: Call) -> int:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def expire_delegation_token(
        self, hmac: bytes, *, period_ms: int = AS_THE_BROKER_SAYS, timeout: float | None = None
    ) -> int:
        """Let a token expire after this time; -1 means now. Returns when, in Unix milliseconds."""

        async def ask() -> int:
            request = expire_delegation_token.ExpireDelegationTokenRequest(
                hmac=hmac, expiry_time_period_ms=period_ms
            )
            connection = await self._cluster.any()
            answer = await connection.send(expire_delegation_token.API_KEY, request)
            raise_for(answer.error_code)
            return int(answer.expiry_timestamp_ms)

        async def work(call: Call) -> int:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """The tokens of these owners, such as "User:alice", or all that this user may see."""
        named = None if owners is None else [parse_principal(each) for each in owners]

        async def ask() -> list[DelegationToken]:
            request = describe_delegation_token.DescribeDelegationTokenRequest(
                owners=None
                if named is None
                else [
                    describe_delegation_token.DescribeDelegationTokenOwner(
                        principal_type=each.type, principal_name=each.name
                    )
                    for each in named
                ]
            )
            connection = await self._cluster.any()
            answer = await connection.send(describe_delegation_token.API_KEY, request)
            raise_for(answer.error_code)
            return [_token(each) for each in answer.tokens]

        async def work(call: Call) -> list[DelegationToken]:
            return await self._retry(call, ask)

        return self._run(timeout, work)


def _token(entry: describe_delegation_token.DescribedDelegationToken) -> DelegationToken:
    owner = Principal(entry.principal_type, entry.principal_name)
    requester = Principal(entry.token_requester_principal_type, entry.token_requester_principal_name)
    return DelegationToken(
        entry.token_id,
        bytes(entry.hmac),
        str(owner),
        str(requester if requester.name else owner),
        tuple(f"{each.principal_type}:{each.principal_name}" for each in entry.renewers),
        entry.issue_timestamp,
        entry.expiry_timestamp,
        entry.max_timestamp,
    )
