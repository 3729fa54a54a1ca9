"""Tokens for OAUTHBEARER: from an OAuth 2 endpoint, a file, or the user's function. Blocking: for a thread.

The size of an endpoint's answer is bounded, redirects are not followed, and the client's secret is sent over
TLS only (or to this machine). An error names the endpoint and what it said, never the secret or a token."""

import asyncio
import base64
import http.client
import inspect
import json
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from barnabas.errors import AuthenticationError, DisconnectedError
from barnabas.security.logins import (
    Token,
    TokenEndpoint,
    TokenProvider,
    TokenSource,
    token_of,
    unsecured_token,
)

ANSWER_BYTES_MAX = 1024 * 1024
ATTEMPTS = 3
PAUSE_SECONDS = 0.1
_LOCAL = ("localhost", "127.0.0.1", "::1")
_RETRIED = frozenset({408, 429, *range(500, 600)})


def obtain_token(source: TokenSource) -> Token:
    """AuthenticationError if there is none to get, DisconnectedError if trying again may help."""
    if isinstance(source, TokenEndpoint):
        return fetch_token(source)
    if isinstance(source, TokenProvider):
        return provided_token(source.function)
    return unsecured_token(source.options)


def provided_token(function: Any) -> Token:
    """The text of an exception of the user's function is not repeated: it may have the token in it."""
    try:
        result = getattr(function, "token", function)()
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except Exception as error:
        raise AuthenticationError(f"The token provider failed with {type(error).__name__}.") from error
    if isinstance(result, tuple | list) and len(result) >= 2:
        return Token(str(result[0]), float(result[1]))
    if not isinstance(result, str):
        raise AuthenticationError(
            "The token provider must return a token, or a token and the time of its end."
        )
    return token_of(result)


async def _awaited(result: Any) -> Any:
    return await result


def fetch_token(endpoint: TokenEndpoint) -> Token:
    """AuthenticationError if the endpoint refuses us, DisconnectedError if it cannot be reached."""
    parts = urlsplit(endpoint.url)
    if parts.scheme == "file":
        return _from_file(parts.path)
    if parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise AuthenticationError(
            f"The token endpoint {_shown(endpoint)} must be an https: URL, because a secret is sent to it."
        )
    for attempt in range(ATTEMPTS):
        try:
            status, answer = _post(endpoint)
        except (OSError, http.client.HTTPException) as error:
            failure = f"cannot get a token from {_shown(endpoint)}: {error}"
        else:
            if status == 200:
                return _token_in(answer, endpoint)
            failure = f"the token endpoint {_shown(endpoint)} answered with status {status}{_reason(answer)}"
            if status not in _RETRIED:
                raise AuthenticationError(failure)
        time.sleep(PAUSE_SECONDS * 2**attempt)
    raise DisconnectedError(failure)


def _from_file(path: str) -> Token:
    try:
        return token_of(Path(path).read_text("ascii").strip())
    except (OSError, UnicodeError) as error:
        raise AuthenticationError(f"Cannot read the token file {path}: {error}") from None


def _post(endpoint: TokenEndpoint) -> tuple[int, bytes]:
    parts = urlsplit(endpoint.url)
    assert parts.hostname is not None
    seconds = endpoint.connect_seconds
    connection = (
        http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=_context(endpoint))
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
    )
    try:
        connection.connect()
        connection.sock.settimeout(endpoint.read_seconds)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, _body(endpoint), _headers(endpoint))
        response = connection.getresponse()
        answer = response.read(ANSWER_BYTES_MAX + 1)
        if len(answer) > ANSWER_BYTES_MAX:
            raise http.client.HTTPException(f"its answer is larger than {ANSWER_BYTES_MAX} bytes")
        return response.status, answer
    finally:
        connection.close()


def _context(endpoint: TokenEndpoint) -> ssl.SSLContext:
    if not endpoint.tls:
        return ssl.create_default_context()
    from barnabas.security.tls import TlsSettings, client_context

    return client_context(TlsSettings.from_config(endpoint.tls.get))


def _body(endpoint: TokenEndpoint) -> str:
    form = {"grant_type": "client_credentials"}
    if endpoint.scope:
        form["scope"] = endpoint.scope
    return urlencode(form)


def _headers(endpoint: TokenEndpoint) -> dict[str, str]:
    # RFC 6749, 2.3.1: both are form-encoded first.
    pair = f"{quote(endpoint.client_id, safe='')}:{quote(endpoint.client_secret, safe='')}"
    return {
        "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }


def _token_in(answer: bytes, endpoint: TokenEndpoint) -> Token:
    content = _json(answer)
    value = content.get("access_token") or content.get("id_token")
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise AuthenticationError(f"The answer of the token endpoint {_shown(endpoint)} has no access_token.")
    return token_of(value, content.get("expires_in"))


def _reason(answer: bytes) -> str:
    """What RFC 6749 lets an endpoint say about a refusal; nothing else of the answer is shown."""
    content = _json(answer)
    named = [str(content[name])[:200] for name in ("error", "error_description") if content.get(name)]
    return f" ({': '.join(named)})" if named else ""


def _json(answer: bytes) -> dict[str, Any]:
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _shown(endpoint: TokenEndpoint) -> str:
    """The URL without a query or a user, which may be secrets."""
    parts = urlsplit(endpoint.url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
