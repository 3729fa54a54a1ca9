"""A process that begins many TLS connections to a broker at once, and completes their handshakes.

    python -m tests.bench.many_handshakes HOST:PORT CA.PEM COUNT

It has a process of its own: threads beside a load would delay the load itself."""

import os
import selectors
import socket
import ssl
import sys

SECONDS_MAX = 60.0


def shake_hands(host: str, port: int, authority: str, count: int) -> None:
    context = ssl.create_default_context(cafile=authority)
    with selectors.DefaultSelector() as selector:
        opened = []
        try:
            for _ in range(count):
                plain = socket.create_connection((host, port))
                plain.setblocking(False)
                opened.append(context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False))
                selector.register(opened[-1], selectors.EVENT_WRITE)
            # None has sent anything yet; now all do.
            left = count
            while left:
                ready = selector.select(SECONDS_MAX)
                if not ready:
                    raise TimeoutError(f"{left} of {count} handshakes did not end")
                left -= sum(_go_on(selector, key.fileobj) for key, _ in ready)  # type: ignore[arg-type]
        finally:
            for each in opened:
                each.close()


def _go_on(selector: selectors.BaseSelector, peer: ssl.SSLSocket) -> bool:
    """Whether the handshake is complete."""
    try:
        peer.do_handshake()
    except ssl.SSLWantReadError:
        selector.modify(peer, selectors.EVENT_READ)
        return False
    except ssl.SSLWantWriteError:
        selector.modify(peer, selectors.EVENT_WRITE)
        return False
    selector.unregister(peer)
    return True


if __name__ == "__main__":
    # What is measured is the broker: it and the client that waits for it come first.
    os.nice(10)
    host, _, port = sys.argv[1].rpartition(":")
    shake_hands(host, int(port), sys.argv[2], int(sys.argv[3]))
