"""The session of the page, login and logout, and /health."""

from typing import Any

from starlette.responses import Response

from barnabas import __version__
from barnabas.client.errors import AuthenticationError, KafkaError
from barnabas.console.answers import cookie_name, json_response
from barnabas.console.calls import Call
from barnabas.console.failures import ApiError, api_error
from barnabas.console.routing import Route
from barnabas.console.sessions import LIFE_SECONDS, Session
from barnabas.console.shapes import Text
from barnabas.console.workspace import NO_FEATURES, Workspace, opened


async def show(call: Call) -> Response:
    visitor = call.visitor or call.sessions.new_id()
    return await _answer(call, visitor, call.session)


async def login(call: Call) -> Response:
    if not call.settings.login_required:
        raise ApiError(400, "NO_LOGIN", "This console needs no login.")
    address = call.request.client.host if call.request.client is not None else ""
    call.sessions.check_failures(address)
    credentials = {"sasl.username": call.body["user"], "sasl.password": call.body["password"]}
    try:
        async with call.sessions.logins:
            workspace = await opened({**call.settings.client, **credentials}, call.settings.sample_seconds)
    except AuthenticationError:
        call.sessions.note_failure(address)
        raise ApiError(401, "WRONG_PASSWORD", "The cluster does not accept this user and password.") from None
    session = Session(call.body["user"], workspace)
    try:
        await call.sessions.remove(call.visitor)
        visitor = call.sessions.add(session)
    except ApiError:
        await workspace.close()
        raise
    return await _answer(call, visitor, session)


async def logout(call: Call) -> Response:
    await call.sessions.remove(call.visitor)
    return await _answer(call, call.sessions.new_id(), None)


async def health(call: Call) -> dict[str, Any]:
    """Also for probes that know no user: it says nothing about the cluster but whether it answers."""
    if call.shared is None:
        return {"status": "ok", "version": __version__}
    sampler = call.shared.sampler
    problem = sampler.problem
    return {
        "status": "ok" if problem is None else "degraded",
        "version": __version__,
        "stale_since_ms": sampler.stale_since_ms,
        "problem": None if problem is None else api_error(problem).message,
    }


async def _answer(call: Call, visitor: str, session: Session | None) -> Response:
    workspace = session.workspace if session is not None else call.shared
    response = json_response(await _described(call, visitor, session, workspace))
    response.set_cookie(
        cookie_name(call.settings),
        visitor,
        max_age=int(LIFE_SECONDS),
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
    )
    return response


async def _described(
    call: Call, visitor: str, session: Session | None, workspace: Workspace | None
) -> dict[str, Any]:
    features, cluster_id = NO_FEATURES, None
    if workspace is not None:
        cluster_id = workspace.sampler.metadata.cluster_id
        try:
            await workspace.sampler.ready()
            features = await workspace.features()
            cluster_id = workspace.sampler.metadata.cluster_id
        except KafkaError:
            # The page shows what is known, and that the cluster does not answer.
            features = NO_FEATURES
    return {
        "user": None if session is None else session.user,
        "login_required": call.settings.login_required,
        "read_only": call.settings.read_only,
        "csrf": call.sessions.token_of(visitor),
        "version": __version__,
        "bootstrap": call.settings.bootstrap,
        "cluster_id": cluster_id,
        "features": {**features, "pipelines": bool(call.settings.pipelines)},
    }


_CREDENTIALS = {"user": Text("a user of the cluster"), "password": Text("her password")}

ROUTES = (
    Route("GET", "/health", health, "Whether the console and the cluster answer", needs_login=False),
    Route("GET", "/api/session", show, "Who is logged in, and the token for changes", needs_login=False),
    Route(
        "POST",
        "/api/login",
        login,
        "Log in with a user of the cluster",
        body=_CREDENTIALS,
        needs_login=False,
        is_harmless=True,
    ),
    Route("POST", "/api/logout", logout, "Log out", body={}, needs_login=False, is_harmless=True),
)
