"""A port whose connections a test serves itself."""

import asyncio
from collections.abc import Callable

from barnabas.net.acceptor import Acceptor
from barnabas.net.connection import Connection


async def accepting(connect: Callable[[], Connection]) -> Acceptor:
    """`connect` makes a connection for each peer. The caller closes what is returned."""
    acceptor = Acceptor(asyncio.get_running_loop(), lambda plain: connect().begin(plain))
    await acceptor.bind("127.0.0.1", 0)
    acceptor.start(backlog=100)
    return acceptor
