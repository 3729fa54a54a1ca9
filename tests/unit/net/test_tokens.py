"""Tokens: from an endpoint that answers, refuses, breaks or lies, from a file, and from a function."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest

from barnabas.errors import AuthenticationError, DisconnectedError
from barnabas.net import tokens
from barnabas.net.tokens import obtain_token
from barnabas.security.logins import (
    BearerLogin,
    Token,
    TokenEndpoint,
    TokenProvider,
    UnsecuredClaims,
    claims_of,
)


class Endpoint(BaseHTTPRequestHandler):
    answers: ClassVar[list[tuple[int, bytes]]] = []
    requests: ClassVar[list[tuple[str, str, dict[str, list[str]]]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.requests.append((self.path, self.headers["Authorization"], parse_qs(body)))
        status, answer = self.answers.pop(0)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        """Not to the terminal."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(tokens, "PAUSE_SECONDS", 0.0)
    Endpoint.answers, Endpoint.requests = [], []
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token?tenant=hidden"
        server.shutdown()
        thread.join()


def endpoint(url: str) -> TokenEndpoint:
    return TokenEndpoint(url, "me:too", "s3cret", "read write")


def token_answer(**more: Any) -> bytes:
    return json.dumps({"access_token": "abc", "token_type": "Bearer", **more}).encode()


def test_a_token_is_asked_for_with_the_clients_secret(url: str) -> None:
    Endpoint.answers = [(200, token_answer(expires_in=100))]
    token = obtain_token(endpoint(url))
    assert token.value == "abc" and token.ends is not None
    assert "abc" not in repr(token)
    (path, authorization, form) = Endpoint.requests[0]
    assert path == "/token?tenant=hidden"
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me%3Atoo:s3cret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["read write"]}


def test_a_busy_endpoint_is_asked_again(url: str) -> None:
    Endpoint.answers = [(503, b""), (500, b""), (200, token_answer())]
    assert obtain_token(endpoint(url)) == Token("abc", None)
    Endpoint.answers = [(503, b"")] * tokens.ATTEMPTS
    with pytest.raises(DisconnectedError, match="status 503"):
        obtain_token(endpoint(url))


@pytest.mark.parametrize(
    ("status", "answer", "sentence"),
    [
        (401, b'{"error": "invalid_client", "error_description": "who?"}', r"401 \(invalid_client: who\?\)"),
        (400, b"<html>s3cret</html>", "status 400"),
        (302, b"", "status 302"),
        (200, b"no json", "has no access_token"),
        (200, b'["abc"]', "has no access_token"),
        (200, b'{"access_token": "a\\u0001b"}', "has no access_token"),
    ],
)
def test_a_refusal_is_said_without_secrets(url: str, status: int, answer: bytes, sentence: str) -> None:
    Endpoint.answers = [(status, answer)]
    with pytest.raises(AuthenticationError, match=sentence) as caught:
        obtain_token(endpoint(url))
    assert "s3cret" not in str(caught.value) and "hidden" not in str(caught.value)
    assert len(Endpoint.requests) == 1


def test_an_answer_without_end_is_not_read(url: str) -> None:
    Endpoint.answers = [(200, b"x" * (tokens.ANSWER_BYTES_MAX + 10))] * tokens.ATTEMPTS
    with pytest.raises(DisconnectedError, match="larger than"):
        obtain_token(endpoint(url))


def test_a_secret_is_not_sent_without_tls_to_another_machine() -> None:
    with pytest.raises(AuthenticationError, match="https"):
        obtain_token(endpoint("http://login.example/token"))


def test_a_token_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" t0ken\n")
    assert obtain_token(TokenEndpoint(f"file://{tmp_path}/token")).value == "t0ken"
    with pytest.raises(AuthenticationError, match="Cannot read"):
        obtain_token(TokenEndpoint(f"file://{tmp_path}/none"))


def test_a_function_an_object_and_a_coroutine() -> None:
    class Provider:
        async def token(self) -> str:
            return "from a coroutine"

    assert obtain_token(TokenProvider(lambda: "t")).value == "t"
    assert obtain_token(TokenProvider(lambda: ("t", 5))) == Token("t", 5.0)
    assert obtain_token(TokenProvider(Provider())).value == "from a coroutine"

    def failing() -> str:
        raise RuntimeError("s3cret")

    for function, sentence in ((failing, "failed with RuntimeError"), (lambda: None, "must return a token")):
        with pytest.raises(AuthenticationError, match=sentence) as caught:
            obtain_token(TokenProvider(function))
        assert "s3cret" not in str(caught.value)


def test_an_unsecured_token_has_the_claims_of_its_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "2",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginLifetimeSeconds": "10",
    }
    claims = claims_of(obtain_token(UnsecuredClaims(options)).value)
    assert claims["sub"] == "alice" and claims["level"] == 2 and claims["scope"] == ["a", "b"]
    assert claims["exp"] - claims["iat"] == 10


def test_a_token_is_kept_for_most_of_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("barnabas.security.logins.time.time", lambda: now)
    made = iter(range(100))
    login = BearerLogin(UnsecuredClaims({}))

    def obtain(_: object) -> Token:
        return Token(f"t{next(made)}", now + 100)

    def used() -> bytes:
        return login.exchange(obtain).first().split(b"\x01")[1]

    assert used() == used() == b"auth=Bearer t0"
    now += 81
    assert used() == b"auth=Bearer t1"
    login.forget()
    assert used() == b"auth=Bearer t2"


@pytest.mark.parametrize("text", ["", "a.b", "a.!!.c", "a.bnVsbA.c", "a.W10.c"])
def test_what_is_not_a_jwt_has_no_claims(text: str) -> None:
    assert claims_of(text) == {}
