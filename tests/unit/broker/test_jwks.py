"""The keys of an identity provider: from a file, from an address, again when they are old, and never from an
address that cannot be trusted."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from barnabas.broker import jwks
from barnabas.broker.jwks import KeySource, OAuthSettings
from barnabas.config.definition import ConfigError
from barnabas.security.sasl.oauth import TokenRules


class Provider(HTTPServer):
    """Serves the keys; `answer` can be changed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys = {"first": ec.generate_private_key(ec.SECP256R1())}
        self.status = 200
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/keys"

    def document(self) -> bytes:
        algorithm = jwt.get_algorithm_by_name("ES256")
        entries = [
            {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid} for kid, key in self.keys.items()
        ]
        return json.dumps({"keys": entries}).encode()

    def token(self, kid: str) -> str:
        return jwt.encode({"sub": "alice", "exp": 2**40}, self.keys[kid], "ES256", headers={"kid": kid})


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(self.server.document())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def prepare(source: KeySource, token: str) -> bool:
    """Whether keys were fetched for this token."""
    preparation = source.preparation(token)
    if preparation is None:
        return False
    preparation()
    return True


def refetched(source: KeySource, token: str) -> bool:
    """Whether keys were fetched again while this token did not have to wait."""
    assert source.preparation(token) is None
    fetching, source.fetching = source.fetching, None
    if fetching is not None:
        fetching.join()
    return fetching is not None


def subject(source: KeySource, token: str) -> str:
    return source.current.verified(token, TokenRules(), 0).subject


def test_keys_are_fetched_when_they_are_needed(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    source = KeySource(OAuthSettings(provider.url, TokenRules()))
    first = provider.token("first")
    assert provider.requests == 0
    assert prepare(source, first)
    assert subject(source, first) == "alice"
    assert not prepare(source, first)
    # A key that is new is fetched, but not with each token.
    provider.keys["second"] = ec.generate_private_key(ec.SECP256R1())
    second = provider.token("second")
    assert not prepare(source, second)
    monkeypatch.setattr(jwks, "UNKNOWN_KEY_SECONDS", 0.0)
    assert prepare(source, second)
    assert subject(source, second) == "alice"
    assert provider.requests == 2


@pytest.mark.parametrize("status", [200, 500])
def test_tokens_that_come_together_cause_one_fetch(provider: Provider, status: int) -> None:
    """Few threads fetch: of many tokens with unknown keys, most wait for one while the first fetches."""
    provider.status = status
    source = KeySource(OAuthSettings(provider.url, TokenRules()))
    provider.keys["unknown"] = ec.generate_private_key(ec.SECP256R1())
    waiting = [source.preparation(provider.token("unknown")) for _ in range(20)]
    del provider.keys["unknown"]
    for preparation in waiting:
        assert preparation is not None
        preparation()
    assert provider.requests == 1


def test_old_keys_are_fetched_again(provider: Provider) -> None:
    source = KeySource(OAuthSettings(provider.url, TokenRules(), refresh_seconds=0.0))
    first = provider.token("first")
    assert prepare(source, first)
    assert refetched(source, first)
    del provider.keys["first"]
    provider.keys["second"] = ec.generate_private_key(ec.SECP256R1())
    assert refetched(source, first)
    assert not source.current.has(first)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_failure_keeps_the_keys_and_waits(
    provider: Provider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = OAuthSettings(
        provider.url, TokenRules(), refresh_seconds=0.0, retry_seconds=100.0, retry_seconds_max=200.0
    )
    source = KeySource(settings)
    first = provider.token("first")
    assert prepare(source, first)
    provider.status = status
    assert refetched(source, first)
    assert not refetched(source, first)
    assert subject(source, first) == "alice"
    assert caplog.text.count("cannot fetch keys") == 1
    assert provider.requests == 2


def test_an_address_that_does_not_answer_gives_no_keys(provider: Provider) -> None:
    provider.status = 500
    source = KeySource(OAuthSettings(provider.url, TokenRules()))
    prepare(source, provider.token("first"))
    assert len(source.current) == 0
    assert not source.current.has(provider.token("first"))


def test_keys_of_a_file(provider: Provider, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(ConfigError, match="Cannot read keys"):
        KeySource(OAuthSettings(path.as_uri(), TokenRules()))
    path.write_text("{}")
    with pytest.raises(ConfigError, match="not a set of keys"):
        KeySource(OAuthSettings(path.as_uri(), TokenRules()))
    path.write_bytes(provider.document())
    source = KeySource(OAuthSettings(path.as_uri(), TokenRules()))
    assert subject(source, provider.token("first")) == "alice"
    assert provider.requests == 0


@pytest.mark.parametrize("url", ["http://example.com/keys", "ftp://127.0.0.1/keys", "keys.json", "data:,{}"])
def test_addresses_that_cannot_be_trusted(url: str) -> None:
    with pytest.raises(ConfigError, match="use https://"):
        KeySource(OAuthSettings(url, TokenRules()))
