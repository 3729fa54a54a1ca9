"""Every API with and without each right, through a real broker: generated from the table of rights."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.security.rights_checks import DENIALS, check_rights, codes_of, is_denied, prepare
from tests.security.rights_requests import (
    T,
    World,
    consumer_heartbeat,
)
from tests.security.rights_samples import SAMPLES, Sample, one
from tests.security.users import ADMIN, ALICE, GuardedBroker, acl, guarded_broker
from tests.support.raw_calls import Topic, batch_of, new_topic, produce_batch
from tests.support.raw_client import RawClient

from barnabas.broker.apis import ROWS
from barnabas.broker.authorization.rules import NoRight, Right
from barnabas.broker.authorization.table import RIGHTS
from barnabas.errors import ErrorCode
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.message import Message


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    with guarded_broker(tmp_path_factory.mktemp("rights")) as broker:
        yield broker


@pytest.fixture(scope="module")
def world(broker: GuardedBroker) -> World:
    epoch, log_dir = broker.visible.look(
        lambda broker: (broker.metadata.broker_epoch, broker.config.log_dirs[0])
    )
    return prepare(broker, epoch, log_dir)


def _name(sample: Sample) -> str:
    return f"{ROWS[sample.api_key].name}-v{sample.version}"


def test_every_api_is_in_the_table() -> None:
    assert RIGHTS.keys() == ROWS.keys()


def test_every_row_of_the_table_has_samples_for_all_its_rights() -> None:
    tested: dict[int, set[Right]] = {}
    for sample in SAMPLES:
        rights = {right for needed in sample.needs for right in needed}
        tested.setdefault(sample.api_key, set()).update(rights, sample.also)
    for key, rule in RIGHTS.items():
        if key in (17, 18, 36):
            # Sent before anybody is known; there is nothing to refuse.
            assert isinstance(rule, NoRight)
            continue
        assert tested.get(key) == set(rule.rights), ROWS[key].name


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_each_right(broker: GuardedBroker, world: World, sample: Sample) -> None:
    check_rights(broker, world, sample)


def test_a_super_user_needs_no_rights(broker: GuardedBroker, world: World) -> None:
    broker.set_acls([])
    with broker.client(ADMIN) as admin:
        assert not is_denied(admin, SAMPLES[0], world)


# ---- the short ways: a right that is taken away counts for the next request of the same connection


def test_a_producer_is_stopped_when_its_right_is_taken_away(broker: GuardedBroker, world: World) -> None:
    may_write = acl(Operation.WRITE, ResourceType.TOPIC, T)
    with broker.client(ALICE) as client:
        broker.set_acls([may_write])
        for _ in range(3):
            assert produce_batch(client, world.topic, batch_of(b"v")).error_code == ErrorCode.NONE
        broker.set_acls([])
        assert produce_batch(client, world.topic, batch_of(b"v")).error_code == (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        broker.set_acls([may_write])
        assert produce_batch(client, world.topic, batch_of(b"v")).error_code == ErrorCode.NONE


def test_a_fetch_session_ends_where_the_right_does(broker: GuardedBroker, world: World) -> None:
    may_read = (one(Operation.READ, ResourceType.TOPIC),)
    sample = next(each for each in SAMPLES if each.api_key == 1 and each.needs == may_read)
    with broker.client(ALICE) as client:
        broker.set_acls([acl(Operation.READ, ResourceType.TOPIC, T)])
        request: Any = sample.make(world)
        request.session_epoch = 0
        answer = client.call(1, 12, request)
        assert answer.session_id and not codes_of(answer) & DENIALS
        broker.set_acls([])
        request.topics, request.session_id, request.session_epoch = [], answer.session_id, 1
        assert codes_of(client.call(1, 12, request)) & DENIALS


# ---- nothing leaks


def test_topics_that_may_not_be_described_look_like_absent_ones(broker: GuardedBroker, world: World) -> None:
    broker.set_acls([])
    by_topic = [each for each in SAMPLES if each.api_key in (2, 3, 21, 23, 37, 61, 75) and each.shows is None]
    absent = world._replace(topic=Topic("absent", bytes(15) + b"x"))
    with broker.client(ALICE) as client:
        for sample in by_topic:
            known = sample.make(world)
            unknown = _renamed(sample.make(absent), {T: "absent", "auto-topic": "absent"})
            shown = [
                repr(client.call(sample.api_key, sample.version, request)) for request in (known, unknown)
            ]
            assert shown[0].replace(T, "absent").replace("auto-topic", "absent") == shown[1], _name(sample)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """The same with other names."""
    if isinstance(value, Message):
        for field in value.FIELDS:
            setattr(value, field.name, _renamed(getattr(value, field.name), names))
    elif isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


# ---- the audit log


def test_the_audit_log(broker: GuardedBroker, world: World, caplog: pytest.LogCaptureFixture) -> None:
    broker.set_acls([])
    with broker.client(ALICE) as client, caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        produce_batch(client, world.topic, batch_of(b"v"))
        broker.set_acls([acl(Operation.WRITE, ResourceType.TOPIC, T)])
        produce_batch(client, world.topic, batch_of(b"v"))
    lines = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "kafka.authorizer.logger"
    ]
    rule = (
        f"MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName={T}, patternType=LITERAL, "
        "principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW))"
    )
    line = (
        "Principal = User:alice is {} operation = WRITE from host = 127.0.0.1 "
        f"on resource = Topic:LITERAL:{T} for request = Produce with resourceRefCount = 1 based on rule {{}}"
    )
    assert lines == [("INFO", line.format("Denied", "DefaultDeny")), ("DEBUG", line.format("Allowed", rule))]


# ---- patterns of subscriptions


def test_a_pattern_finds_only_topics_that_the_member_may_describe(
    broker: GuardedBroker, world: World
) -> None:
    group = "with-pattern"
    with broker.client(ADMIN) as admin:
        seen, hidden = new_topic(admin, name="pattern-seen"), new_topic(admin, name="pattern-hidden")
    broker.set_acls(
        [
            acl(Operation.READ, ResourceType.GROUP, group),
            acl(Operation.DESCRIBE, ResourceType.TOPIC, "pattern-seen"),
            acl(Operation.DESCRIBE, ResourceType.TOPIC, "pattern-later"),
        ]
    )

    def beat(client: RawClient, epoch: int, **fields: Any) -> Any:
        request: Any = consumer_heartbeat(group, "member")
        request.subscribed_topic_names = None if epoch else []
        request.subscribed_topic_regex = None if epoch else "pattern-.*"
        request.member_epoch, request.topic_partitions = epoch, fields.get("owned", [])
        answer = client.call(68, 1, request)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        return answer

    with broker.client(ALICE) as client:
        answer = beat(client, 0)
        assert [part.topic_id for part in answer.assignment.topic_partitions] == [seen.id]
        with broker.client(ADMIN) as admin:
            later = new_topic(admin, name="pattern-later")
            new_topic(admin, name="pattern-secret")
        owned = answer.assignment.topic_partitions
        deadline = time.monotonic() + 10
        found: set[bytes] = set()
        while found != {seen.id, later.id} and time.monotonic() < deadline:
            answer = beat(client, answer.member_epoch, owned=owned)
            if answer.assignment is not None:
                owned = answer.assignment.topic_partitions
                found = {part.topic_id for part in owned}
        assert found == {seen.id, later.id} and hidden.id not in found
