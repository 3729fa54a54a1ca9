"""Links between processes: cut both ways or one way, slow, lossy, limited, and good again."""

import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.echo import PATIENCE_SECONDS, Echo, connected, echoed, receive

from barnabas.testing.links import Links, socket_inode
from barnabas.testing.ports import free_ports
from barnabas.testing.relay import BrokenLink, Quality

THERE, BACK = ("client", 1), (1, "client")
# Long enough to see that nothing comes, short enough for a test.
SILENCE_SECONDS = 0.15


@pytest.fixture
def links() -> Iterator[Links]:
    links = Links(dict)
    yield links
    links.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
def client(links: Links, echo: Echo) -> Iterator[socket.socket]:
    with connected(links.add(1, echo.port, "client")) as connection:
        yield connection


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE_SECONDS)
    try:
        return connection.recv(1, socket.MSG_PEEK) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE_SECONDS)


def test_a_cut_link_holds_the_bytes_until_it_is_healed(
    links: Links, echo: Echo, client: socket.socket
) -> None:
    assert echoed(client, b"before ") == b"before "
    with links.cut([THERE, BACK]):
        client.sendall(b"during")
        assert is_silent(client)
        assert echo.received == b"before "
    assert receive(client, 6) == b"during"


def test_an_answer_does_not_pass_a_link_that_is_cut_one_way(
    links: Links, echo: Echo, client: socket.socket
) -> None:
    assert echoed(client, b"a") == b"a"
    with links.cut([BACK]):
        client.sendall(b"b")
        echo.wait_for(b"ab")
        assert is_silent(client)
    assert receive(client, 1) == b"b"
    with links.cut([THERE]):
        client.sendall(b"c")
        assert is_silent(client)
        assert echo.received == b"ab"
    assert receive(client, 1) == b"c"


def test_a_new_connection_does_not_pass_a_cut_link(links: Links, echo: Echo) -> None:
    port = links.add(1, echo.port, "client")
    fault = links.cut([THERE])
    with connected(port) as client:
        client.sendall(b"early")
        assert is_silent(client)
        fault.heal()
        assert receive(client, 5) == b"early"


@pytest.mark.parametrize("way", [THERE, BACK])
def test_the_end_of_a_connection_does_not_pass_a_cut_link(
    links: Links, echo: Echo, client: socket.socket, way: tuple[str | int, str | int]
) -> None:
    assert echoed(client, b"a") == b"a"
    with links.cut([way]):
        if way == THERE:
            client.close()
            assert not echo.ended.wait(SILENCE_SECONDS)
        else:
            echo.close()
            # This fails behind the cut, which the client cannot know.
            for _ in range(5):
                client.sendall(b"b" * 100)
                time.sleep(0.02)
            assert is_silent(client)
    if way == THERE:
        assert echo.ended.wait(PATIENCE_SECONDS)
    else:
        assert receive(client, 1) == b""


def test_that_nobody_listens_does_not_pass_a_cut_link(links: Links) -> None:
    port = links.add(1, free_ports(1)[0], "client")
    with links.cut([BACK]), connected(port) as client:
        assert is_silent(client)
    with connected(port) as client:
        assert receive(client, 1) == b""


def test_what_a_client_has_sent_before_it_closed_arrives_after_the_cut(
    links: Links, echo: Echo, client: socket.socket
) -> None:
    assert echoed(client, b"a") == b"a"
    with links.cut([THERE, BACK]):
        client.sendall(b"late")
        client.close()
    echo.wait_for(b"alate")


def test_faults_of_one_link_are_healed_one_by_one(links: Links, client: socket.socket) -> None:
    one, other = links.cut([THERE]), links.cut([THERE, BACK])
    client.sendall(b"a")
    one.heal()
    one.heal()
    assert is_silent(client)
    other.heal()
    assert receive(client, 1) == b"a"


def test_bytes_arrive_late_on_a_slow_link_but_are_under_way_together(
    links: Links, client: socket.socket
) -> None:
    with links.degrade([THERE], Quality(delay_ms=100)):
        begin = time.monotonic()
        for number in range(20):
            client.sendall(b"%02d" % number)
            time.sleep(0.002)
        assert receive(client, 40) == b"".join(b"%02d" % number for number in range(20))
        # One after the other they would take two seconds.
        assert 0.1 <= time.monotonic() - begin < 1.0
    begin = time.monotonic()
    assert echoed(client, b"quick") == b"quick"
    assert time.monotonic() - begin < 0.1


def test_bytes_keep_their_order_with_jitter_and_loss(links: Links, client: socket.socket) -> None:
    sent = bytes(range(256)) * 40
    with links.degrade([THERE, BACK], Quality(delay_ms=5, jitter_ms=5, loss=0.05)):
        for start in range(0, len(sent), 512):
            client.sendall(sent[start : start + 512])
            time.sleep(0.001)
        assert receive(client, len(sent)) == sent


def test_a_lost_packet_is_a_pause(links: Links, client: socket.socket) -> None:
    with links.degrade([THERE], Quality(loss=0.5)):
        begin = time.monotonic()
        for _ in range(4):
            assert echoed(client, b"x") == b"x"
        assert time.monotonic() - begin >= 0.2


def test_a_limited_link_passes_so_many_bytes_per_second(links: Links, client: socket.socket) -> None:
    sent = bytes(200_000)
    with links.degrade([THERE], Quality(bytes_per_second=400_000)):
        begin = time.monotonic()
        sending = threading.Thread(target=client.sendall, args=(sent,))
        sending.start()
        assert len(receive(client, len(sent))) == len(sent)
        assert time.monotonic() - begin >= 0.4
        sending.join()


def test_bytes_that_are_under_way_arrive_soon_when_a_slow_link_is_healed(
    links: Links, client: socket.socket
) -> None:
    begin = time.monotonic()
    with links.degrade([THERE], Quality(delay_ms=60_000)):
        client.sendall(b"late")
        assert is_silent(client)
    assert receive(client, 4) == b"late"
    assert time.monotonic() - begin < PATIENCE_SECONDS


def test_a_reset_breaks_the_connection(links: Links, client: socket.socket) -> None:
    assert echoed(client, b"a") == b"a"
    with links.degrade([THERE], Quality(resets=1.0)):
        client.sendall(b"b")
        with pytest.raises(ConnectionResetError):
            client.recv(1)


class Shouting:
    """Changes answers, and breaks a connection that asks for it."""

    async def requests(self, data: bytes) -> AsyncIterator[bytes]:
        if b"break" in data:
            raise BrokenLink
        yield data

    async def answers(self, data: bytes) -> AsyncIterator[bytes]:
        yield data.upper()


def test_a_tap_sees_the_bytes_of_both_directions(links: Links, echo: Echo) -> None:
    links.tap("client", 1, Shouting)
    with connected(links.add(1, echo.port, "client")) as client:
        assert echoed(client, b"loud") == b"LOUD"
        client.sendall(b"break")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert echo.received == b"loud"


def test_connections_from_one_port_to_two_others_have_different_owners(links: Links, echo: Echo) -> None:
    ports = [links.add(1, echo.port, "client") for _ in range(2)]
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(one.getsockname())
        for connection, port in ((one, ports[0]), (other, ports[1])):
            connection.connect(("127.0.0.1", port))
        own_port = one.getsockname()[1]
        inodes = [str(os.fstat(each.fileno()).st_ino) for each in (one, other)]
        assert [socket_inode(own_port, port) for port in ports] == inodes
