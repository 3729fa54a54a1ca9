"""A network that loses packets: the bytes arrive all the same, only later."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
from tests.jepsen.packets import PacketNetwork, PacketQuality, why_no_packets
from tests.support.echo import PATIENCE_SECONDS, Echo, connected, echoed, receive


@pytest.fixture(scope="module")
def packets() -> Iterator[PacketNetwork]:
    with PacketNetwork() as packets:
        yield packets


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


if why_no_packets() is None:

    def test_packets_are_lost_duplicated_and_reordered_but_the_bytes_arrive(
        packets: PacketNetwork, echo: Echo
    ) -> None:
        sent = os.urandom(300_000)
        before = packets.counts()
        packets.degrade(PacketQuality(delay_ms=2, jitter_ms=2, loss=0.03, duplicates=0.03))
        with connected(packets.port_to(echo.port)) as client:
            sending = threading.Thread(target=client.sendall, args=(sent,))
            sending.start()
            assert receive(client, len(sent)) == sent
            sending.join()
        counts = {name: count - before[name] for name, count in packets.counts().items()}
        # Two times 300 KB in packets of 1500 bytes, and their acknowledgements.
        assert counts["packets"] > 400
        assert min(counts["lost"], counts["duplicated"], counts["reordered"]) > 0
        packets.heal()

    def test_packets_are_late(packets: PacketNetwork, echo: Echo) -> None:
        with connected(packets.port_to(echo.port)) as client:
            assert echoed(client, b"quick") == b"quick"
            packets.degrade(PacketQuality(delay_ms=150))
            begin = time.monotonic()
            assert echoed(client, b"late") == b"late"
            assert time.monotonic() - begin >= 0.3
            packets.heal()
            begin = time.monotonic()
            assert echoed(client, b"quick") == b"quick"
            assert time.monotonic() - begin < 0.3

    def test_a_limited_network(packets: PacketNetwork, echo: Echo) -> None:
        packets.degrade(PacketQuality(bytes_per_second=1_000_000))
        with connected(packets.port_to(echo.port)) as client:
            begin = time.monotonic()
            sending = threading.Thread(target=client.sendall, args=(bytes(200_000),))
            sending.start()
            assert len(receive(client, 200_000)) == 200_000
            # Both ways share the limit.
            assert time.monotonic() - begin >= 0.4
            sending.join()
        packets.heal()

    def test_the_end_of_a_connection_passes(packets: PacketNetwork, echo: Echo) -> None:
        with connected(packets.port_to(echo.port)) as client:
            assert echoed(client, b"a") == b"a"
        assert echo.ended.wait(PATIENCE_SECONDS)
        port = packets.port_to(echo.port)
        echo.close()
        with connected(port) as client:
            assert receive(client, 1) == b""

else:

    def test_why_there_are_no_packets() -> None:
        assert "Error" in str(why_no_packets())
