"""What a broker remembers about clients with quotas: who shares what, what still counts, who is exempt."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker import quotas as quotas_module
from barnabas.broker.call import Call
from barnabas.broker.quotas import Quotas, timed
from barnabas.broker.session import Session
from barnabas.broker.turns import Work
from barnabas.clock import FakeClock
from barnabas.config.listeners import Listener
from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import MetadataImage
from barnabas.security.principal import Principal
from barnabas.security.quotas import CLIENT_ID, USER, Entity
from barnabas.wire.codec import RequestHeader
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
CLIENT: Entity = ((CLIENT_ID, "app"),)
PRODUCE, METADATA = 0, 3


class Scene:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.quotas = Quotas(BrokerConfig({}), self.clock)

    def set(self, entity: Entity, **values: float) -> None:
        self.quotas.follow(MetadataImage(client_quotas={entity: values}))

    def call(self, api_key: int = PRODUCE, client_id: str | None = "app", **fields: Any) -> Call:
        user, is_trusted = fields.pop("user", "u"), fields.pop("is_trusted", False)
        session = Session(LISTENER, "127.0.0.1", Principal("User", user), is_trusted=is_trusted)
        connection = SimpleNamespace(session=fields.pop("connection_session", session))
        call = Call(
            cast(Any, None),
            cast(Any, connection),
            session,
            RequestHeader(api_key, 9, 1, client_id),
            is_forwarded=fields.pop("is_forwarded", False),
        )
        call.frame_bytes = fields.pop("size", 0)
        call.handler_ns = fields.pop("nanoseconds", 1)
        return call

    def produce(self, size: int, **fields: Any) -> int:
        response = ProduceResponse()
        throttle_ms = self.quotas.charge(self.call(size=size, **fields), response, is_exempt=False)
        assert response.throttle_time_ms == throttle_ms
        return throttle_ms


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_bytes_over_the_quota_are_paid_back_by_waiting(scene: Scene) -> None:
    scene.set(CLIENT, producer_byte_rate=1000)
    assert scene.produce(10_000) == 0
    assert scene.produce(2_000) == 2_000
    assert scene.produce(10**9, client_id="other") == 0


def test_what_was_used_still_counts_after_a_change_of_the_quota(scene: Scene) -> None:
    scene.set(CLIENT, producer_byte_rate=1000)
    scene.produce(9_000)
    scene.set(CLIENT, producer_byte_rate=500)
    assert scene.produce(1_000) == 10_000
    assert [meter.limit.bound for meter in scene.quotas.meters()] == [500]


def test_without_quotas_nothing_is_kept(scene: Scene) -> None:
    scene.set(CLIENT, producer_byte_rate=1000)
    scene.produce(1)
    scene.quotas.follow(MetadataImage())
    assert not scene.quotas.are_set
    assert list(scene.quotas.meters()) == []


def test_requests_of_brokers_are_exempt(scene: Scene) -> None:
    scene.set(CLIENT, request_percentage=0.001)
    response = MetadataResponse()
    usual = scene.call(METADATA, nanoseconds=10**9)
    assert scene.quotas.charge(usual, response, is_exempt=False) == response.throttle_time_ms == 1000
    own = scene.call(METADATA, nanoseconds=10**9, is_trusted=True)
    assert scene.quotas.charge(own, MetadataResponse(), is_exempt=False) == 0
    between = scene.call(METADATA, nanoseconds=10**9)
    assert scene.quotas.charge(between, MetadataResponse(), is_exempt=True) == 0
    # In an envelope: a client's request has the client's session, a broker's own that of its connection.
    forwarded = scene.call(METADATA, nanoseconds=10**9, is_forwarded=True, connection_session=None)
    assert scene.quotas.charge(forwarded, MetadataResponse(), is_exempt=False) == 1000
    relayed = scene.call(METADATA, nanoseconds=10**9, is_forwarded=True)
    assert scene.quotas.charge(relayed, MetadataResponse(), is_exempt=False) == 0


def test_a_request_is_charged_once(scene: Scene) -> None:
    scene.set(CLIENT, producer_byte_rate=1000)
    call = scene.call(size=11_000)
    assert scene.quotas.charge(call, ProduceResponse(), is_exempt=False) == 1000
    assert scene.quotas.charge(call, ProduceResponse(), is_exempt=False) == 1000
    assert scene.produce(1) == 1001


def test_the_longer_time_counts(scene: Scene) -> None:
    scene.set(CLIENT, producer_byte_rate=1000, request_percentage=10)
    # 200 % of a second in 10 seconds are 20 %, so 10 seconds, of which one window is the limit.
    assert scene.produce(10_100, nanoseconds=2 * 10**9) == 1000
    assert scene.produce(3_000, nanoseconds=1) == 3_100


def test_the_time_of_a_produce_without_an_answer_does_not_count(scene: Scene) -> None:
    scene.set(CLIENT, request_percentage=0.001)
    assert scene.quotas.charge(scene.call(nanoseconds=10**9), None, is_exempt=False) == 0


def test_idle_meters_are_dropped_when_there_are_many(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas_module, "METERS_MAX", 10)
    scene.set(((CLIENT_ID, None),), producer_byte_rate=1000)
    for number in range(10):
        scene.produce(11_000, client_id=f"old-{number}")
    scene.clock.advance(12_000)
    for number in range(5):
        scene.produce(11_000, client_id=f"new-{number}")
    assert {meter.limit.client_id for meter in scene.quotas.meters()} == {f"new-{n}" for n in range(5)}
    # Those who have used something lately are not forgotten.
    for number in range(30):
        scene.produce(1, client_id=f"more-{number}")
    assert scene.produce(1, client_id="new-0") > 0


def test_what_nobody_used_for_long_is_forgotten_with_the_next_change(scene: Scene) -> None:
    anybody: Entity = ((CLIENT_ID, None),)
    for number in range(5):
        scene.set(anybody, producer_byte_rate=1000 + number)
        scene.produce(1, client_id=f"client-{number}")
        scene.clock.advance(3_000_000)
    scene.set(anybody, producer_byte_rate=1)
    assert {client_id for _, _, client_id in scene.quotas._older} == {"client-4"}


# ---- changes of the metadata


def test_a_strict_quota_refuses_while_tokens_are_owed(scene: Scene) -> None:
    scene.set(((USER, "u"),), controller_mutation_rate=1)
    mutations = scene.quotas.mutations(scene.call(), is_strict=True)
    mutations.charge("a", 13)
    # A decision that is made again does not cost again, and has the same result.
    mutations.charge("a", 13)
    assert mutations.throttle_ms() == 0
    with pytest.raises(KafkaError) as caught:
        mutations.charge("b", 1)
    assert caught.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    scene.clock.advance(1500)
    with pytest.raises(KafkaError):
        mutations.charge("b", 1)
    # 2 were owed, and 1.5 seconds have passed.
    assert mutations.throttle_ms() == 500
    scene.clock.advance(500)
    scene.quotas.mutations(scene.call(), is_strict=True).charge("b", 1)


def test_a_permissive_quota_lets_everything_pass(scene: Scene) -> None:
    scene.set(((USER, "u"),), controller_mutation_rate=1)
    mutations = scene.quotas.mutations(scene.call(), is_strict=False)
    mutations.charge("a", 13)
    mutations.charge("b", 3)
    assert mutations.throttle_ms() == 5000


def test_who_has_no_quota_is_not_charged(scene: Scene) -> None:
    scene.set(((USER, "u"),), controller_mutation_rate=1)
    for call in (scene.call(user="other"), scene.call(is_trusted=True)):
        mutations = scene.quotas.mutations(call, is_strict=True)
        mutations.charge("a", 10**6)
        mutations.charge("b", 10**6)
        assert mutations.throttle_ms() == 0


# ---- the time of work in turns


def test_only_the_time_in_which_work_runs_is_counted(scene: Scene) -> None:
    closed: list[bool] = []

    def work() -> Work[str]:
        try:
            time.sleep(0.02)
            assert (yield "first") == 5
            with pytest.raises(ValueError):
                yield "second"
            time.sleep(0.02)
            return "done"
        finally:
            closed.append(True)

    call = scene.call(nanoseconds=0)
    measured = timed(work(), call)
    assert next(measured) == "first"
    time.sleep(0.2)
    assert measured.send(5) == "second"
    with pytest.raises(StopIteration) as ended:
        measured.throw(ValueError())
    assert ended.value.value == "done"
    assert closed == [True]
    assert 0.04 <= call.handler_ns / 1e9 < 0.2


def test_work_that_is_given_up_is_closed(scene: Scene) -> None:
    closed: list[bool] = []

    def work() -> Work[None]:
        try:
            yield
        finally:
            closed.append(True)

    measured = timed(work(), scene.call())
    next(measured)
    measured.close()
    assert closed == [True]
