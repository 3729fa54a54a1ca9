"""The application: finds the route of a request, applies the rules of the routes, and answers.

Every answer has headers that let the page load nothing from elsewhere and be shown nowhere else. A request
whose Host is a name that this console does not know is refused: a page of a stranger could have made its own
name lead here (DNS rebinding)."""

import asyncio
import contextlib
import ipaddress
import json
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from barnabas.client.errors import ClosedError, KafkaError
from barnabas.client.schema_registry import Registry
from barnabas.console.answers import Streams, cookie_name, json_response
from barnabas.console.calls import Call
from barnabas.console.failures import ApiError, api_error, bad_request, error_body
from barnabas.console.pages import page
from barnabas.console.pipelines import Pipelines
from barnabas.console.routes import TABLE
from barnabas.console.routing import Route, path_segments
from barnabas.console.sessions import Sessions
from barnabas.console.settings import ConsoleSettings
from barnabas.console.shapes import BODY, Fields, read_query
from barnabas.console.workspace import Workspace

_log = logging.getLogger(__name__)

BODY_BYTES_MAX = 4 << 20
SWEEP_SECONDS = 60.0
OUTAGE_SECONDS = 3.0
VISITOR_LENGTH_MAX = 100

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Console:
    """An ASGI application; `starlette()` wraps it with its start and end."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        self.sessions = Sessions()
        self.streams = Streams()
        self.shared: Workspace | None = None
        self.pipelines = Pipelines(settings.pipelines)
        url = settings.schema_registry
        self.registry = None if url is None else Registry(url)
        self._known_hosts = _known_hosts(settings)

    def starlette(self) -> Starlette:
        return Starlette(routes=[Mount("/", app=self)], lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        if not self.settings.login_required:
            self.shared = Workspace(self.settings.client, self.settings.sample_seconds)
            self.shared.sampler.start()
        sweeper = asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            sweeper.cancel()
            await asyncio.gather(sweeper, return_exceptions=True)
            await self.sessions.close()
            if self.shared is not None:
                await self.shared.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sessions.remove_old()

    # ---- one request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._check_host(request)
            response = await self._respond(request)
        except ClientDisconnect:
            return
        except Exception as error:
            response = _refusal(request, error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        raw_path = _raw_path(request)
        if path_segments(raw_path)[0] not in ("api", "health"):
            return page(request.method, raw_path)
        found = TABLE.find(request.method, raw_path)
        if found is None:
            methods = TABLE.methods(raw_path)
            if methods:
                raise ApiError(405, "METHOD_NOT_ALLOWED", f"Use {' or '.join(methods)} here.")
            raise ApiError(404, "NOT_FOUND", "The API has nothing at this address; see /api/openapi.json.")
        route, path = found
        call = await self._checked(request, route, path)
        answer = await self._handled(route, call)
        return answer if isinstance(answer, Response) else json_response(answer)

    async def _handled(self, route: Route, call: Call) -> Any:
        """The handler's answer. While no broker answers, a page need not wait long to learn that again."""
        workspace = call.session.workspace if call.session is not None else call.shared
        problem = None if workspace is None else workspace.sampler.problem
        if problem is None:
            return await route.handler(call)
        bound = asyncio.timeout(OUTAGE_SECONDS)
        try:
            async with bound:
                return await route.handler(call)
        except TimeoutError:
            if not bound.expired():
                raise
            raise api_error(problem) from None

    async def _checked(self, request: Request, route: Route, path: dict[str, str]) -> Call:
        """The call, after all rules of its route."""
        visitor = request.cookies.get(cookie_name(self.settings), "")[:VISITOR_LENGTH_MAX]
        session = self.sessions.get(visitor)
        if route.needs_login and self.settings.login_required and session is None:
            raise ApiError(401, "LOGIN_REQUIRED", "Log in with a user of the cluster first.")
        query = read_query(route.all_query, request.query_params)
        if not route.is_safe:
            token = request.headers.get("x-csrf-token", "")
            if not visitor or not self.sessions.is_token(visitor, token):
                raise ApiError(
                    403, "WRONG_TOKEN", "The X-CSRF-Token is not that of this session: reload the page."
                )
        if route.changes and self.settings.read_only and not query["preview"]:
            raise ApiError(403, "READ_ONLY", "This console is read-only: it was started with --read-only.")
        body = await _body(request, route)
        return Call(
            request=request,
            settings=self.settings,
            sessions=self.sessions,
            visitor=visitor,
            session=session,
            shared=self.shared,
            registry=self.registry,
            pipelines=self.pipelines,
            streams=self.streams,
            path=path,
            query=query,
            body=body,
        )

    def _check_host(self, request: Request) -> None:
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").lower().rstrip(".")
        if name in self._known_hosts or _is_address(name):
            return
        raise ApiError(
            421, "WRONG_HOST", f"This console is not {name[:100]!r}: allow that name with --allowed-host."
        )


def _known_hosts(settings: ConsoleSettings) -> frozenset[str]:
    names = ("localhost", settings.host, socket.gethostname(), *settings.allowed_hosts)
    return frozenset(name.lower().rstrip(".") for name in names if name)


def _is_address(name: str) -> bool:
    """An address cannot be made to lead elsewhere, as a name can."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _raw_path(request: Request) -> str:
    raw: bytes | None = request.scope.get("raw_path")
    path = request.scope["path"] if raw is None else raw.decode("latin-1")
    return str(path).partition("?")[0]


async def _body(request: Request, route: Route) -> dict[str, Any]:
    if route.is_safe or route.body is None:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_BYTES_MAX:
            raise ApiError(413, "TOO_LARGE", f"The body is larger than {BODY_BYTES_MAX} bytes.")
    if content and kind != "application/json":
        raise ApiError(415, "NOT_JSON", "The body must have the content type application/json.")
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise bad_request("The body is not valid JSON.") from None
    return Fields(route.body).read(value, BODY)


def _refusal(request: Request, error: Exception) -> Response:
    refused = api_error(error)
    if not isinstance(error, ApiError | KafkaError | ClosedError):
        # The path, not the query: that may have what somebody searches for.
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return json_response(error_body(refused), refused.status)
