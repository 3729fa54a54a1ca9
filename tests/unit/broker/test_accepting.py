"""Many connections at once: the system queues as many as configured, and each turn accepts a few of them."""

import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from tests.support.visible_broker import visible_broker

from barnabas.broker.broker import Broker
from barnabas.net.acceptor import ACCEPTED_MAX

WAITING = 4 * ACCEPTED_MAX


def test_the_queue_of_a_listener_is_longer_than_what_a_turn_accepts(tmp_path: Path) -> None:
    released = threading.Event()
    begun = threading.Event()

    def hold(broker: Broker) -> None:
        """Keep the loop from accepting."""
        begun.set()
        released.wait(20)

    with (
        visible_broker(tmp_path, {"socket.listen.backlog.size": str(WAITING)}) as broker,
        ExitStack() as stack,
    ):
        holding = threading.Thread(target=broker.look, args=(hold,))
        holding.start()
        assert begun.wait(20)
        try:
            for _ in range(WAITING):
                # Beyond the end of the queue this would not succeed.
                stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), timeout=0.9))
        finally:
            released.set()
            holding.join()
        deadline = time.monotonic() + 20
        while broker.look(lambda broker: broker.server.connection_count) < WAITING:
            assert time.monotonic() < deadline
            time.sleep(0.01)
