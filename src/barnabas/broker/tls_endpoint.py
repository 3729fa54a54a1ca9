"""A listener with TLS: the certificates that new connections get, and who their peers are.

The certificates are read again when settings change and when the files change. What cannot be used is logged,
and the old ones stay. Connections that are open keep what they have."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.server import Endpoint
from barnabas.net.handshakes import Handshakes
from barnabas.net.tls_connection import ENABLE_KTLS, TlsConnection
from barnabas.net.tls_socket import kernel_encrypts
from barnabas.security.key_stores import TlsError
from barnabas.security.listener_tls import check_identity, listener_tls
from barnabas.security.tls import TlsSettings, load_server, principal_of, subject_of

if TYPE_CHECKING:
    from barnabas.broker.server import Server
    from barnabas.config.listeners import Listener
    from barnabas.config.values import BrokerConfig
    from barnabas.net.connection import Connection

logger = logging.getLogger(__name__)

# How often the files of key stores and trust stores are looked at.
FILES_SECONDS = 2.0

# Time, size and inode of a file, or None if there is none.
FileState = tuple[int, int, int] | None


class TlsEndpoint(Endpoint):
    def __init__(
        self, listener: Listener, server: Server, config: BrokerConfig, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(listener, server)
        self._loop = loop
        self._config = config
        self._handshakes = Handshakes(loop)
        self._kernel_encrypts = kernel_encrypts()
        self._has_logged_sending = False
        self.settings = listener_tls(config, listener)
        self._files = _file_states(self.settings)
        self._seen_files = self._files
        self.context, self._chain = self._load(self.settings)
        if not self._kernel_encrypts:
            logger.info("listener %s: this kernel has no TLS of its own (kTLS)", listener.name)
        self._timer = loop.call_later(FILES_SECONDS, self._look_at_files)

    def connect(self, frame_bytes_max: int) -> TlsConnection:
        return TlsConnection(self, self._loop, frame_bytes_max, self.context, self._handshakes)

    def close(self) -> None:
        self._timer.cancel()
        super().close()

    # ---- called by connections

    def secured(self, connection: TlsConnection, certificate: bytes | None) -> None:
        if self._kernel_encrypts and not self._has_logged_sending:
            self._has_logged_sending = True
            who = "the kernel" if connection.has_kernel_tls else "OpenSSL, not the kernel,"
            logger.info("listener %s: %s encrypts what is sent (kTLS)", self.listener.name, who)
        if certificate is not None and not self.listener.uses_sasl:
            rules = self.settings.principal_mapping_rules
            connection.session.principal = principal_of(subject_of(certificate), rules)

    def handshake_failed(self, connection: Connection, reason: str) -> None:
        self._server.handshake_failed(connection, reason)

    # ---- other certificates

    def reconfigure(self, config: BrokerConfig) -> None:
        self._config = config
        try:
            settings = listener_tls(config, self.listener)
        except TlsError as error:
            self._keep(error)
            return
        # As in Kafka, a change of settings also takes files that have changed.
        files = _file_states(settings)
        if settings != self.settings or files != self._files:
            self._take(settings, files)

    def _look_at_files(self) -> None:
        self._timer = self._loop.call_later(FILES_SECONDS, self._look_at_files)
        files = _file_states(self.settings)
        # A file that has just changed may not be complete yet: it must stay the same for one period.
        if files != self._files and files == self._seen_files:
            self._take(self.settings, files)
        self._seen_files = files

    def _take(self, settings: TlsSettings, files: list[FileState]) -> None:
        self._files = files
        try:
            context, chain = self._load(settings)
            check_identity(self._config, self.listener, self._chain, chain)
        except TlsError as error:
            self._keep(error)
            return
        self.settings, self.context, self._chain = settings, context, chain
        logger.info("listener %s: new connections get the new certificates", self.listener.name)

    def _keep(self, error: TlsError) -> None:
        logger.error(
            "listener %s: the certificates stay as they are: %s (change the files or the settings)",
            self.listener.name,
            error,
        )

    def _load(self, settings: TlsSettings) -> tuple[ssl.SSLContext, str]:
        context, chain = load_server(settings)
        if self._kernel_encrypts:
            context.options |= ENABLE_KTLS
        return context, chain


def _file_states(settings: TlsSettings) -> list[FileState]:
    return [_file_state(location) for location in settings.files]


def _file_state(location: str) -> FileState:
    try:
        status = Path(location).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
