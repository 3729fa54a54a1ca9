"""The lines in which connections wait: their order, their length, and who is not delayed by whom."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker import connection_limits
from barnabas.broker.connection_limits import ConnectionLimits, Line
from barnabas.config.listeners import Listener
from barnabas.config.values import BrokerConfig
from barnabas.security.quotas import ClientQuotas

TWO_LISTENERS = {
    "listeners": "INTERNAL://127.0.0.1:1,CLIENTS://127.0.0.1:2",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CLIENTS:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}


class Peer:
    """As much of a connection as the limits need."""

    def __init__(self, name: str = "", listener: str = "PLAINTEXT", host: str = "10.0.0.1") -> None:
        self.name = name
        self.peer_host = host
        self.is_closed = self.is_muted = False
        self.last_active = 0.0
        self.session = SimpleNamespace(listener=Listener(listener, "", 0, "PLAINTEXT"))

    def mute_until(self, moment: float) -> None:
        assert moment == math.inf
        self.is_muted = True

    def close(self) -> None:
        self.is_closed = True


class Scene:
    def __init__(self, **settings: str) -> None:
        self.served: list[Peer] = []
        self.when_served: Callable[[], None] = lambda: None
        config = BrokerConfig({name.replace("__", "."): value for name, value in settings.items()})
        self.limits = ConnectionLimits(config, self._serve)

    def _serve(self, peer: Any) -> None:
        self.served.append(peer)
        self.when_served()

    def open(self, *names: str, **fields: str) -> list[Peer]:
        peers = [Peer(name, **fields) for name in names]
        for peer in peers:
            assert self.limits.opened(cast(Any, peer)) is None
        return peers

    def close(self, peer: Peer) -> None:
        peer.close()
        self.limits.closed(cast(Any, peer))

    @property
    def names(self) -> str:
        return "".join(peer.name for peer in self.served)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_who_comes_first_is_served_first() -> None:
    async def story() -> None:
        scene = Scene(max__connections="2")
        a, b, c, d, _ = scene.open(*"abcde")
        assert scene.names == "ab"
        assert (a.is_muted, c.is_muted) == (False, True)
        # Who leaves while it waits uses up no place.
        scene.close(d)
        scene.close(b)
        scene.close(a)
        assert scene.names == "abce"
        assert scene.limits.waiting == 0
        assert scene.limits.listener_delays["PLAINTEXT"].count == 2
        scene.close(c)

    run(story)


def test_too_many_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "WAITING_MAX", 3)

    async def story() -> None:
        scene = Scene(max__connections="1")
        peers = scene.open(*"abcd")
        assert "wait" in (scene.limits.opened(cast(Any, Peer())) or "")
        # Those who are gone make room, wherever they are in the line.
        peers[2].close()
        scene.open("e")

    run(story)


def test_an_address_has_its_own_line() -> None:
    async def story() -> None:
        scene = Scene(quota__window__num="2")
        quotas = ClientQuotas({(("ip", "10.0.0.1"),): {"connection_creation_rate": 2}})
        scene.limits.follow(quotas)
        scene.open(*"abcd")
        scene.open("e", host="10.0.0.2")
        assert scene.names == "abe"
        scene.limits.follow(ClientQuotas({}))
        assert scene.names == "abecd"
        assert scene.limits.address_delays["PLAINTEXT"].count == 2

    run(story)


def test_the_rate_lets_them_pass_one_after_the_other() -> None:
    async def story() -> None:
        scene = Scene(quota__window__num="2", max__connection__creation__rate="20")
        scene.open(*"a" * 22)
        assert len(scene.served) == 20
        all_served = asyncio.Event()
        scene.when_served = lambda: all_served.set() if len(scene.served) == 22 else None
        await asyncio.wait_for(all_served.wait(), 10)

    run(story)


def test_brokers_are_not_shut_out_by_clients() -> None:
    async def story() -> None:
        # As in Kafka, a listener without a limit of its own has that of the broker.
        own = {"listener.name.internal.max.connections": "9", "max.connections": "2"}
        scene = Scene(**TWO_LISTENERS, **own)
        clients = scene.open(*"abc", listener="CLIENTS")
        clients[0].last_active = 5.0
        scene.open(*"xyz", listener="INTERNAL")
        assert scene.names == "abxyz"
        # The quietest client is the one to close, never a broker.
        assert scene.limits.excess is cast(Any, clients[1])
        scene.close(clients[1])
        scene.close(clients[0])
        assert scene.limits.excess is None
        assert scene.limits.waiting == 1

    run(story)


def test_a_listener_has_its_own_limits() -> None:
    async def story() -> None:
        scene = Scene(**{**TWO_LISTENERS, "listener.name.clients.max.connections": "1"})
        scene.open(*"ab", listener="CLIENTS")
        scene.open(*"xy", listener="INTERNAL")
        assert scene.names == "axy"

    run(story)


def test_an_address_with_too_many_connections_is_refused() -> None:
    async def story() -> None:
        scene = Scene(**{"max.connections.per.ip": "2", "max.connections.per.ip.overrides": "10.0.0.9:1"})
        first, _ = scene.open(*"ab")
        surplus = Peer()
        assert "its address" in (scene.limits.opened(cast(Any, surplus)) or "")
        scene.close(surplus)
        scene.close(first)
        scene.open("c")
        scene.open("d", host="10.0.0.9")
        assert scene.limits.opened(cast(Any, Peer(host="10.0.0.9"))) is not None

    run(story)


def test_overrides_may_be_names_of_hosts(caplog: pytest.LogCaptureFixture) -> None:
    overrides = {"max.connections.per.ip.overrides": "localhost:1,10.0.0.9:7,no-such-host.invalid:3"}
    at_start = Scene(**overrides).limits
    assert at_start.per_host_overrides["127.0.0.1"] == 1
    assert at_start.per_host_overrides["10.0.0.9"] == 7
    assert "no-such-host.invalid is not known" in caplog.text

    async def story() -> None:
        limits = Scene().limits
        limits.set_limits(BrokerConfig(overrides))
        # Addresses hold at once, names when they are looked up.
        assert limits.per_host_overrides == {"10.0.0.9": 7}
        async with asyncio.timeout(30):
            while "127.0.0.1" not in limits.per_host_overrides:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run(story)


def test_a_line_that_waits_for_room_has_no_timer() -> None:
    async def story() -> None:
        waits: list[float] = [math.inf]
        served: list[Any] = []
        line = Line(lambda: waits[0], lambda peer, seconds: served.append((peer, seconds)))
        line.enter(cast(Any, Peer("a")))
        await asyncio.sleep(0.01)
        assert (len(line), served) == (1, [])
        waits[0] = 0
        line.look()
        assert [peer.name for peer, _ in served] == ["a"]
        assert served[0][1] >= 0.009

    run(story)
