"""Does a broker ask for the rights of a sample? For any broker whose users and ACLs a test can choose."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from tests.security.rights_requests import CONSUMERS, DELETABLE, NAMES, G, T, World, X, consumer_heartbeat
from tests.security.rights_samples import Sample
from tests.security.users import ADMIN, ALICE, acl
from tests.support.raw_calls import batch_of, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import RawTransactional

from barnabas.broker.authorization.rules import Right
from barnabas.errors import ErrorCode
from barnabas.security.acls import Acl, Operation, Permission
from barnabas.security.principal import Principal
from barnabas.wire.message import Message
from barnabas.wire.messages import describe_groups, find_coordinator, offset_commit

DENIALS = {code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")}
SECONDS_MAX = 30.0


class Peer(Protocol):
    """`patience_seconds`: after this time, changed ACLs count everywhere."""

    patience_seconds: float

    def client(self, principal: Principal) -> RawClient: ...

    def set_acls(self, acls: Iterable[Acl]) -> None: ...


def prepare(peer: Peer, broker_epoch: int, log_dir: str) -> World:
    """What the samples ask about."""
    with peer.client(ADMIN) as admin:
        topic = new_topic(admin, name=T)
        new_topic(admin, name=DELETABLE)
        transactional = RawTransactional(admin, X)
        transactional.init(timeout_ms=600_000)
        assert transactional.produce(topic, b"value") == ErrorCode.NONE
        _await_group_coordinator(admin)
        part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        committed = offset_commit.OffsetCommitRequestTopic(name=T, partitions=[part])
        answer = admin.call(8, 9, offset_commit.OffsetCommitRequest(group_id=G, topics=[committed]))
        assert codes_of(answer) == {ErrorCode.NONE}
        assert codes_of(admin.call(68, 1, consumer_heartbeat(CONSUMERS, "a-member"))) == {ErrorCode.NONE}
        batch = batch_of(b"v", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
        return World(topic, 1, broker_epoch, log_dir, batch)


def _await_group_coordinator(client: RawClient) -> None:
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=[G, CONSUMERS])
    describe = describe_groups.DescribeGroupsRequest(groups=[G])
    deadline = time.monotonic() + SECONDS_MAX
    while codes_of(client.call(10, 4, request)) | codes_of(client.call(15, 0, describe)) != {ErrorCode.NONE}:
        assert time.monotonic() < deadline, "there is no group coordinator"


def check_rights(peer: Peer, world: World, sample: Sample) -> None:
    """Denials first: what is allowed may change something, such as create the topic."""
    alternatives = [_acls_of(sample, needed) for needed in sample.needs]
    everything = [each for needed in alternatives for each in needed]
    with peer.client(ALICE) as client:

        def expect(is_expected: bool, acls: list[Acl]) -> None:
            peer.set_acls(acls)
            deadline = time.monotonic() + peer.patience_seconds
            while is_denied(client, sample, world) != is_expected:
                expected = "denied" if is_expected else "allowed"
                assert time.monotonic() < deadline, f"not {expected} with {acls}"

        expect(bool(sample.needs), [])
        for needed in alternatives:
            rest = [each for each in everything if each not in needed]
            expect(True, _without_implied(rest, needed))
        for needed in alternatives:
            if len(needed) == 1:
                expect(True, [*everything, needed[0]._replace(permission=Permission.DENY)])
        expect(False, everything)
        for needed in alternatives:
            for chosen in needed:
                expect(False, [each for each in everything if each not in needed or each == chosen])


def _acls_of(sample: Sample, rights: tuple[Right, ...]) -> list[Acl]:
    names = NAMES | sample.names
    return [acl(*right, names[right.resource_type]) for right in rights]


def _without_implied(acls: list[Acl], needed: list[Acl]) -> list[Acl]:
    """Where the right to describe is tested, others on the same resource must not imply it."""
    if any(each.operation is Operation.DESCRIBE for each in needed):
        resources = {(each.resource_type, each.resource_name) for each in needed}
        return [each for each in acls if (each.resource_type, each.resource_name) not in resources]
    return acls


def is_denied(client: RawClient, sample: Sample, world: World) -> bool:
    response = client.call(sample.api_key, sample.version, sample.make(world))
    has_error = bool(codes_of(response) & DENIALS)
    if sample.shows is None or has_error:
        return has_error
    return not sample.shows(response)


def codes_of(message: Any) -> set[int]:
    """All error codes in a response."""
    if isinstance(message, list):
        return set().union(*(codes_of(each) for each in message)) if message else set()
    if not isinstance(message, Message):
        return set()
    found = set()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            found.add(value)
        else:
            found |= codes_of(value)
    return found
