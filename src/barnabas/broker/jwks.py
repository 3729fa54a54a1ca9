"""The keys that verify the tokens of OAUTHBEARER: read from a file, or fetched from an address (JWKS).

They are fetched in a thread, when an authentication finds that they are older than
sasl.oauthbearer.jwks.endpoint.refresh.ms, or when a token names a key that is not among them; only the latter
waits for it. If that fails, the keys that are known stay; without any, no token is valid."""

from __future__ import annotations

import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from urllib.parse import urlsplit

from barnabas.config.definition import ConfigError
from barnabas.security.sasl.oauth import KeySet, TokenRules

logger = logging.getLogger(__name__)

FETCH_SECONDS_MAX = 5.0
DOCUMENT_BYTES_MAX = 1024 * 1024
# Tokens that name unknown keys cause at most one fetch in this time.
UNKNOWN_KEY_SECONDS = 10.0
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    url: str
    rules: TokenRules
    refresh_seconds: float = 3600.0
    retry_seconds: float = 0.1
    retry_seconds_max: float = 10.0


def check_address(url: str) -> None:
    """ConfigError if keys from there could not be trusted."""
    parts = urlsplit(url)
    if parts.scheme in ("https", "file") or (parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS):
        return
    raise ConfigError(
        f"sasl.oauthbearer.jwks.endpoint.url is {url!r}: use https://, or file:// and the path of a file."
    )


class KeySource:
    """The newest keys of one address. `preparation` and `current` are called by the event loop, `_fetch` in a
    thread."""

    def __init__(self, settings: OAuthSettings) -> None:
        check_address(settings.url)
        self.settings = settings
        self.current = KeySet({})
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._failures = 0
        self._lock = threading.Lock()
        self.fetching: threading.Thread | None = None
        if urlsplit(settings.url).scheme == "file":
            self._read_at_start()

    def _read_at_start(self) -> None:
        try:
            self.current = KeySet.parse(self._document())
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"Cannot read keys from sasl.oauthbearer.jwks.endpoint.url {self.settings.url}: {error}."
            ) from None
        self._fetched = self._tried = time.monotonic()

    def preparation(self, token: str) -> Callable[[], object] | None:
        """How to fetch the keys, if this token has to wait for that; None if not. A token whose key is known
        does not wait: keys that are old are fetched meanwhile."""
        is_known = self.current.has(token)
        if not self._is_due(is_known):
            return None
        fetch = partial(self._fetch, time.monotonic())
        if not is_known:
            return fetch
        if self.fetching is None or not self.fetching.is_alive():
            self.fetching = threading.Thread(target=fetch, name="fetch of keys", daemon=True)
            self.fetching.start()
        return None

    def _is_due(self, is_known: bool) -> bool:
        now = time.monotonic()
        since_try = now - self._tried
        if self._failures:
            pause: float = self.settings.retry_seconds * 2 ** min(self._failures - 1, 20)
            return since_try >= min(pause, self.settings.retry_seconds_max)
        if now - self._fetched >= self.settings.refresh_seconds:
            return True
        return not is_known and since_try >= UNKNOWN_KEY_SECONDS

    def _fetch(self, asked: float) -> None:
        """Blocks. All who have asked before a fetch ended share it, also those who had to wait for a
        thread."""
        with self._lock:
            if self._tried >= asked:
                return
            try:
                self.current = KeySet.parse(self._document())
                self._failures = 0
                self._fetched = time.monotonic()
            except (OSError, ValueError, HTTPException) as error:
                self._failures += 1
                if self._failures == 1:
                    logger.error("cannot fetch keys from %s: %s", self.settings.url, error)
            self._tried = time.monotonic()

    def _document(self) -> bytes:
        request = urllib.request.Request(self.settings.url, headers={"Accept": "application/json"})
        # The address is checked, and an answer that leads elsewhere is an error.
        try:
            with _OPENER.open(request, timeout=FETCH_SECONDS_MAX) as answer:
                data: bytes = answer.read(DOCUMENT_BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        if len(data) > DOCUMENT_BYTES_MAX:
            raise ValueError(f"the document has more than {DOCUMENT_BYTES_MAX} bytes")
        return data


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)
