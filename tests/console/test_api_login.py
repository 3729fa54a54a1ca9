"""Login with the users of a secured broker: sessions, rights, passwords, ACLs, users and quotas."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.console.served import Api, console, eventually

import barnabas.console.sessions
from barnabas import Admin
from barnabas.cli.secure import SecureFiles, listeners
from barnabas.client.admin import NewTopic
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

PASSWORD = "alice's own password"


class Secured:
    def __init__(self, files: SecureFiles, bootstrap: str) -> None:
        self.files = files
        self.bootstrap = bootstrap

    @property
    def admin_settings(self) -> dict[str, str]:
        return {**self.files.client_settings(), "bootstrap.servers": self.bootstrap}

    @property
    def login_settings(self) -> dict[str, str]:
        settings = self.admin_settings
        del settings["sasl.jaas.config"]
        return settings

    @property
    def admin_password(self) -> str:
        return self.files.client_settings()["sasl.jaas.config"].partition('password="')[2].rstrip('";')


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    files = SecureFiles(tmp_path_factory.mktemp("secured"))
    files.make()
    (port,) = free_ports(1)
    settings = {**files.broker_settings(), **files.shared_secrets(), **listeners(port)}
    with Broker(settings, data_dir=files.directory.parent / "data"):
        yield Secured(files, f"127.0.0.1:{port}")


@pytest.fixture(scope="module")
def secured_api(secured: Secured) -> Iterator[Api]:
    with console(secured.bootstrap, secured.login_settings) as api:
        yield api


@pytest.fixture
def visitor(secured_api: Api) -> Iterator[Api]:
    with Api(secured_api.url) as api:
        api.begin()
        yield api


def log_in(api: Api, user: str, password: str) -> Any:
    answer = api.post("/api/login", {"user": user, "password": password})
    api.token = answer["csrf"]
    return answer


def test_nothing_is_shown_before_the_login(visitor: Api) -> None:
    session = visitor.begin()
    assert (session["login_required"], session["user"], session["cluster_id"]) == (True, None, None)
    document = visitor.get("/api/openapi.json")
    for path, methods in document["paths"].items():
        if path not in ("/health", "/api/session", "/api/openapi.json", "/api/login", "/api/logout"):
            for method in methods:
                path = path.replace("{", "").replace("}", "")
                assert visitor.refused(method.upper(), path) == (401, "LOGIN_REQUIRED")
    assert visitor.get("/health") == {"status": "ok", "version": session["version"]}


def test_the_admin_logs_in_makes_a_user_and_gives_her_rights(
    visitor: Api, secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        before = dict(visitor.http.cookies)
        session = log_in(visitor, "admin", secured.admin_password)
        # A new cookie: somebody may have planted the old one.
        assert dict(visitor.http.cookies) != before
        assert session["user"] == "admin" and session["cluster_id"]
        assert all(session["features"][name] for name in ("acls", "users", "quotas", "transactions"))
        check_users(visitor)
        check_acls(visitor)
        check_quotas(visitor)
    with Admin(secured.admin_settings) as admin:
        admin.create_topics([NewTopic("hidden", 1, 1), NewTopic("orders", 1, 1)])
    with Api(visitor.url) as alice:
        alice.begin()
        log_in(alice, "alice", PASSWORD)
        # She sees and does what the brokers let her.
        eventually(lambda: [each["name"] for each in alice.get("/api/topics")["items"]] == ["orders"])
        assert alice.refused("GET", "/api/topics/hidden/messages")[0] in (403, 404)
        assert alice.refused("POST", "/api/topics", {"name": "hers"}) == (403, "TOPIC_AUTHORIZATION_FAILED")
        assert alice.refused("GET", "/api/acls") == (403, "CLUSTER_AUTHORIZATION_FAILED")
        alice.post("/api/logout")
        assert alice.refused("GET", "/api/topics") == (401, "LOGIN_REQUIRED")
    # The other session is not affected.
    visitor.get("/api/topics")
    assert PASSWORD not in caplog.text and secured.admin_password not in caplog.text


def check_users(api: Api) -> None:
    body = {"name": "alice", "password": PASSWORD}
    preview = api.post("/api/users", body, preview="true")
    assert PASSWORD not in str(preview) and "password=...]" in preview["command"]
    assert [each["name"] for each in api.get("/api/users")["items"]] == ["admin"]
    api.post("/api/users", body)
    assert [each["name"] for each in api.get("/api/users")["items"]] == ["admin", "alice"]
    api.post("/api/users", {"name": "bob", "password": "b", "mechanism": "SCRAM-SHA-256"})
    gone = {"name": "bob", "mechanism": "SCRAM-SHA-256"}
    assert api.refused("DELETE", "/api/users", gone) == (400, "NOT_CONFIRMED")
    api.change("DELETE", "/api/users", {**gone, "confirm": "bob"})
    assert [each["name"] for each in api.get("/api/users", search="b")["items"]] == []


def check_acls(api: Api) -> None:
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "principal": "User:alice",
        "operation": "READ",
    }
    added = api.post("/api/acls", acl)
    assert added["command"].endswith(
        "--add --allow-principal User:alice --allow-host '*' --operation Read --topic orders "
        "--resource-pattern-type literal"
    )
    (shown,) = api.get("/api/acls")["items"]
    assert (shown["permission"], shown["pattern_type"], shown["host"]) == ("ALLOW", "LITERAL", "*")
    wrong = {**acl, "operation": "CLUSTER_ACTION"}
    assert api.refused("POST", "/api/acls", wrong) == (400, "INVALID_REQUEST")
    api.post("/api/acls", {**acl, "operation": "WRITE"})
    assert api.change("DELETE", "/api/acls", {**acl, "operation": "WRITE"})["deleted"] == 1
    assert len(api.get("/api/acls", search="alice")["items"]) == 1


def check_quotas(api: Api) -> None:
    entity = [{"type": "user", "name": "alice"}, {"type": "client-id", "name": None}]
    changed = api.change(
        "PUT", "/api/quotas", {"entity": entity, "values": {"producer_byte_rate": 1_000_000}}
    )
    assert (
        "--entity-type clients --entity-default --entity-type users --entity-name alice" in changed["command"]
    )
    (shown,) = api.get("/api/quotas")["items"]
    assert shown["values"] == {"producer_byte_rate": 1_000_000}
    wrong = {"entity": entity, "values": {"speed": 1}}
    assert api.refused("PUT", "/api/quotas", wrong)[0] == 400
    api.change("PUT", "/api/quotas", {"entity": entity, "values": {"producer_byte_rate": None}})
    assert api.get("/api/quotas")["items"] == []


def test_a_wrong_password_is_refused_and_guessing_is_slowed(secured: Secured) -> None:
    with console(secured.bootstrap, secured.login_settings) as api:
        wrong = {"user": "admin", "password": "not it"}
        codes = [api.refused("POST", "/api/login", wrong) for _ in range(11)]
        assert codes == [(401, "WRONG_PASSWORD")] * 10 + [(429, "TOO_MANY_ATTEMPTS")]
        # A login needs the token, too: otherwise a page could log somebody in as another user.
        api.token = ""
        assert api.refused("POST", "/api/login", wrong) == (403, "WRONG_TOKEN")


def test_a_session_ends_after_some_idle_time(
    visitor: Api, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(visitor, "admin", secured.admin_password)
    visitor.get("/api/overview")
    monkeypatch.setattr(barnabas.console.sessions, "IDLE_SECONDS", -1.0)
    assert visitor.refused("GET", "/api/overview") == (401, "LOGIN_REQUIRED")


def test_a_console_with_credentials_of_its_own_needs_no_login(secured: Secured) -> None:
    with console(secured.bootstrap, secured.admin_settings) as api:
        assert api.begin()["login_required"] is False
        eventually(lambda: api.get("/api/overview")["brokers"])
        assert api.refused("POST", "/api/login", {"user": "a", "password": "b"}) == (400, "NO_LOGIN")
        assert secured.admin_password not in api.call("GET", "/api/brokers/1/configs").text


def test_secure_start_makes_settings_without_a_user(tmp_path: Path) -> None:
    files = SecureFiles(tmp_path)
    files.make()
    text = files.login.read_text()
    assert "sasl.mechanism=SCRAM-SHA-512" in text and "password" not in text
