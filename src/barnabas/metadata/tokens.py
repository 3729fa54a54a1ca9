"""Delegation tokens (KIP-48): the decisions that create, renew, expire and remove them. Pure.

The metadata does not have the secret of a token: brokers compute it from its id, with
`delegation.token.secret.key`."""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.decision import Decision
from barnabas.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

# How many expired tokens are removed at a time.
REMOVED_AT_ONCE = 500
_TIME_MAX = 2**63 - 1


def new_token(
    token_id: str, people: tuple[str, str, tuple[str, ...]], now_ms: int, lifetimes_ms: tuple[int, int]
) -> DelegationTokenRecord:
    """`people` are the owner, the requester and the renewers; `lifetimes_ms` is how long the token may live
    at most, and how long without a renewal."""
    owner, requester, renewers = people
    longest_ms, first_ms = lifetimes_ms
    ends_ms = min(now_ms + longest_ms, _TIME_MAX)
    return DelegationTokenRecord(
        token_id, owner, requester, renewers, now_ms, ends_ms, min(ends_ms, now_ms + first_ms)
    )


def create_token(image: "MetadataImage", token: DelegationTokenRecord) -> Decision[None]:
    return Decision((token,), None)


def renew_token(
    image: "MetadataImage", token_id: str, principal: str, now_ms: int, lifetime_ms: int
) -> Decision[int]:
    """When the token expires now."""
    token = _token(image, token_id)
    _refuse_expired(token, now_ms)
    _refuse_others(token, principal)
    return _with_end(token, min(token.ends_ms, now_ms + lifetime_ms))


def expire_token(
    image: "MetadataImage", token_id: str, principal: str, now_ms: int, period_ms: int
) -> Decision[int]:
    """When the token expires: after the period, or at once if that is negative."""
    token = _token(image, token_id)
    _refuse_others(token, principal)
    if period_ms < 0:
        return Decision((RemoveDelegationTokenRecord(token_id),), now_ms)
    _refuse_expired(token, now_ms)
    return _with_end(token, min(token.ends_ms, now_ms + period_ms))


def remove_expired_tokens(image: "MetadataImage", now_ms: int) -> Decision[bool]:
    """Whether there may be more."""
    expired = [token.id for token in image.delegation_tokens.values() if is_expired(token, now_ms)]
    portion = expired[:REMOVED_AT_ONCE]
    return Decision(tuple(map(RemoveDelegationTokenRecord, portion)), len(expired) > len(portion))


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return token.ends_ms < now_ms or token.expires_ms < now_ms


def _token(image: "MetadataImage", token_id: str) -> DelegationTokenRecord:
    token = image.delegation_tokens.get(token_id)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _refuse_expired(token: DelegationTokenRecord, now_ms: int) -> None:
    if is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _refuse_others(token: DelegationTokenRecord, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _with_end(token: DelegationTokenRecord, expires_ms: int) -> Decision[int]:
    return Decision((replace(token, expires_ms=expires_ms),), expires_ms)
