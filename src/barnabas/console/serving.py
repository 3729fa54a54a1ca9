"""Runs the console in a process or a thread: a socket, uvicorn, and the address for the user."""

import logging
import socket
from dataclasses import replace

import uvicorn

from barnabas.console.application import Console
from barnabas.console.settings import ConsoleSettings

BACKLOG = 128
# Streams of events end with the console; nobody should wait for them.
SHUTDOWN_SECONDS = 2
# A request may have headers of this size; cursors and filters are in its address.
HEADER_BYTES_MAX = 256 << 10


class ConsoleServer:
    """Binds at once, so that the port is known; `run` serves until `stop` or a signal."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._socket = _bound(settings.host, settings.port)
        self.port: int = self._socket.getsockname()[1]
        self.settings = replace(settings, port=self.port)
        console = Console(self.settings)
        config = uvicorn.Config(
            console.starlette(),
            log_config=None,
            # Addresses of requests have what people search for.
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        # Its own lines about start and stop are for the log of a web server, not for our users.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._server = _Server(config, console)

    @property
    def url(self) -> str:
        host = self.settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def run(self) -> None:
        self._server.run(sockets=[self._socket])

    async def serve(self) -> None:
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """May be called by any thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Ends the streams of events first: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, console: Console) -> None:
        super().__init__(config)
        self._console = console

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._console.streams.end()
        await super().shutdown(sockets)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound
