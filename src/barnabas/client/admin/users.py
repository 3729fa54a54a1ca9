"""SCRAM credentials of users: who has any, set and delete them. The password itself never leaves this
client."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.errors import ErrorCode, KafkaError, raise_for
from barnabas.security import scram
from barnabas.wire.messages import alter_user_scram_credentials as alter
from barnabas.wire.messages import describe_user_scram_credentials as describe

ITERATIONS = 4096


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """Give a user a password. Without a salt, a random one is taken."""

    user: str
    password: str = field(repr=False)
    mechanism: str = scram.ScramMechanism.SHA_512.name
    iterations: int = ITERATIONS
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """Take the credential of one mechanism from a user."""

    user: str
    mechanism: str = scram.ScramMechanism.SHA_512.name


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """What a broker tells about a credential: nothing of the password."""

    mechanism: str
    iterations: int


class UserAdmin(AdminBase):
    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """The credentials of these users, or of all that have any."""
        names = None if users is None else list(users)

        async def ask(left: list[str] | None) -> dict[str, list[ScramCredentialInfo] | KafkaError]:
            named = None if left is None else [describe.UserName(name=name) for name in left]
            connection = await self._cluster.any()
            response = await connection.send(
                describe.API_KEY, describe.DescribeUserScramCredentialsRequest(users=named)
            )
            raise_for(response.error_code, response.error_message)
            return {
                result.user: outcome_of(
                    result.error_code,
                    result.error_message,
                    [
                        ScramCredentialInfo(_name(each.mechanism), each.iterations)
                        for each in result.credential_infos
                    ],
                )
                for result in response.results
            }

        async def work(call: Call) -> dict[str, list[ScramCredentialInfo]]:
            if names is not None:
                return await self._retry_items(call, names, ask)
            found = await self._retry(call, lambda: ask(None))
            return await self._retry_items(call, found, lambda left: _listed(found))

        return self._run(timeout, work)

    def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout: float | None = None
    ) -> None:
        """Set and delete credentials. Brokers accept one change for each user in a call (DUPLICATE_RESOURCE).

        admin.alter_user_scram_credentials([ScramUpsertion("alice", "her password")])"""
        by_user: dict[str, list[ScramUpsertion | ScramDeletion]] = {}
        for change in changes:
            _check(change)
            by_user.setdefault(change.user, []).append(change)

        async def ask(left: list[str]) -> dict[str, KafkaError | None]:
            # Salting takes milliseconds for each.
            request = await asyncio.to_thread(_request, [each for user in left for each in by_user[user]])
            connection = await self._cluster.any()
            response = await connection.send(alter.API_KEY, request)
            return {
                result.user: outcome_of(result.error_code, result.error_message, None)
                for result in response.results
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, by_user, ask)

        self._run(timeout, work)


async def _listed(
    found: dict[str, list[ScramCredentialInfo] | KafkaError],
) -> dict[str, list[ScramCredentialInfo] | KafkaError]:
    return found


def _check(change: ScramUpsertion | ScramDeletion) -> None:
    """As Kafka's own client, before anything is sent."""
    if change.mechanism not in scram.BY_NAME:
        known = ", ".join(scram.BY_NAME)
        text = f"{change.mechanism!r} is not a SCRAM mechanism: use one of {known}"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    if not change.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user must not be empty")
    if isinstance(change, ScramUpsertion) and not change.password:
        text = f"the password of {change.user!r} must not be empty"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)


def _request(changes: list[ScramUpsertion | ScramDeletion]) -> alter.AlterUserScramCredentialsRequest:
    return alter.AlterUserScramCredentialsRequest(
        deletions=[
            alter.ScramCredentialDeletion(name=each.user, mechanism=scram.BY_NAME[each.mechanism].code)
            for each in changes
            if isinstance(each, ScramDeletion)
        ],
        upsertions=[_upsertion(each) for each in changes if isinstance(each, ScramUpsertion)],
    )


def _upsertion(change: ScramUpsertion) -> alter.ScramCredentialUpsertion:
    mechanism = scram.BY_NAME[change.mechanism]
    salt = scram.new_salt() if change.salt is None else change.salt
    # A number that no broker accepts would cost time here, so it is sent with an empty password.
    is_possible = mechanism.iterations_min <= change.iterations <= mechanism.iterations_max
    return alter.ScramCredentialUpsertion(
        name=change.user,
        mechanism=mechanism.code,
        iterations=change.iterations,
        salt=salt,
        salted_password=scram.salted_password(mechanism, change.password, salt, change.iterations)
        if is_possible
        else b"",
    )


def _name(code: int) -> str:
    known = scram.BY_CODE.get(code)
    return f"unknown mechanism {code}" if known is None else known.name
