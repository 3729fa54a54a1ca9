"""Who may do what: tokens, hosts, read-only mode, hostile names and payloads, bounds."""

import json
import logging
import shlex
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.console.conftest import MakeTopic, Peer
from tests.console.served import Api, console

from barnabas import Admin, Producer
from barnabas.console.json_paths import JsonPath
from barnabas.console.masks import Masks

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e\u0000\ud7ff"


@pytest.fixture(scope="module")
def read_only_api(broker: Peer) -> Iterator[Api]:
    with console(broker.bootstrap, read_only=True) as api:
        yield api


def test_a_change_needs_the_token_of_the_session(api: Api, admin: Admin) -> None:
    body = {"name": "forged"}
    for token in ("", "wrong", "ä"):
        headers = {"X-CSRF-Token": token.encode()}
        answer = api.http.post("/api/topics", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "WRONG_TOKEN")
    # The token of another visitor is no use: it belongs to her cookie.
    with Api(api.url) as other:
        other.begin()
        stolen = {"X-CSRF-Token": api.token}
        assert other.http.post("/api/topics", json=body, headers=stolen).status_code == 403
    # A form of another page cannot send JSON.
    form = {"X-CSRF-Token": api.token, "Content-Type": "text/plain"}
    assert api.http.post("/api/topics", content=json.dumps(body), headers=form).status_code == 415
    assert "forged" not in admin.list_topics()


def test_cookies_and_headers(api: Api) -> None:
    with Api(api.url) as visitor:
        answer = visitor.http.get("/api/session")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    for path in ("/api/session", "/health", "/api/nothing", "/static/nothing.js"):
        headers = api.http.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self';") and "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert "access-control-allow-origin" not in headers


def test_a_strange_name_that_leads_here_is_refused(api: Api) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[evil]:1", ""):
        answer = api.http.get("/api/session", headers={"Host": host})
        assert answer.status_code in (400, 421), host
        assert "csrf" not in answer.text
    for host in ("localhost:9", "127.0.0.1", "[::1]:80", "192.168.1.5:8080"):
        assert api.http.get("/health", headers={"Host": host}).status_code == 200


def test_read_only_mode_refuses_every_change(read_only_api: Api, admin: Admin) -> None:
    assert read_only_api.begin()["read_only"] is True
    document = read_only_api.get("/api/openapi.json")
    refused = 0
    for path, methods in document["paths"].items():
        for method in methods:
            if method != "get" and path not in ("/api/login", "/api/logout"):
                path = path.replace("{", "").replace("}", "")
                assert read_only_api.refused(method.upper(), path) == (403, "READ_ONLY")
                refused += 1
    assert refused >= 15
    preview = read_only_api.post("/api/topics", {"name": "only-asked"}, preview="true")
    assert "--create --topic only-asked" in preview["command"]
    assert "only-asked" not in admin.list_topics()


def test_hostile_messages_and_names_are_only_data(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    deep = b"[" * 100_000
    values = [
        HOSTILE.encode(),
        json.dumps({HOSTILE: [HOSTILE]}).encode(),
        b"\xff\xfe\x00" * 10,
        deep,
        b'{"a": 1e999, "b": ' + b"9" * 5000 + b"}",
        b'"\\ud800"',
        b"",
    ]
    group = HOSTILE.replace("\0", "")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, value[:1000], headers=[(HOSTILE, value[:100])])
    answer = api.call("GET", f"/api/topics/{topic}/messages", **{"from": "beginning"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    items = answer.json()["items"]
    assert [item["value"]["as"] for item in items] == ["hex", "json", "hex", "text", "text", "text", "text"]
    assert items[1]["value"]["json"] == {HOSTILE: [HOSTILE]} and items[0]["headers"][0]["name"] == HOSTILE
    for kind in ("json", "avro", "number", "hex", "text"):
        api.get(f"/api/topics/{topic}/messages", value_as=kind, key_as=kind)
    body = {"partitions": [{"topic": topic, "partition": 0}], "to": "earliest"}
    path = f"/api/groups/{quote(group, safe='')}"
    command = api.post(f"{path}/reset", body)["command"]
    assert api.get(path)["id"] == group
    # The command line can be pasted into a shell: the name is quoted.
    assert group in shlex.split(command)
    download = api.call("GET", f"/api/topics/{topic}/download", format="csv")
    assert download.headers["content-type"].startswith("text/csv")


def test_everything_has_a_bound(api: Api, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    path = f"/api/topics/{topic}/messages"
    assert api.refused("GET", path, limit=501) == (400, "INVALID_REQUEST")
    assert api.refused("GET", path, value="x" * 1001) == (400, "INVALID_REQUEST")
    assert api.refused("GET", path, limit="9" * 30) == (400, "INVALID_REQUEST")
    assert api.refused("POST", path, {"value": {"as": "text", "text": "x" * 5_000_000}})[0] == 413
    assert api.refused("POST", "/api/topics", {"name": "a", "colour": "red"}) == (400, "INVALID_REQUEST")
    assert api.refused("POST", "/api/topics", {"partitions": 1}) == (400, "INVALID_REQUEST")
    assert api.refused("POST", "/api/topics", {"name": 5}) == (400, "INVALID_REQUEST")
    headers = {"X-CSRF-Token": api.token, "Content-Type": "application/json"}
    for content in ("[" * 100_000, "{", "[]", '"x"'):
        answer = api.http.post("/api/topics", content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert api.http.get("/api/topics/%ff").status_code == 400
    # The client makes /settings.py of it, which is an address of the page, as all others are.
    assert "import" not in api.http.get("/static/../settings.py").text
    assert api.http.get("/static/%2e%2e/settings.py").status_code == 404
    assert api.http.get("/static/..%2fsettings.py").status_code == 404


def test_an_internal_failure_says_nothing_about_the_inside(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr("barnabas.console.calls.Call.page_of", fail)
    with caplog.at_level(logging.ERROR):
        answer = api.call("GET", "/api/topics", search="who-is-searched-for")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    assert "secret" not in answer.text and "secret of the inside" in caplog.text
    assert "who-is-searched-for" not in caplog.text


@pytest.mark.parametrize(
    "rule", ["orders", "orders:", ":$.a", "orders:card", "orders:headers.", "orders:$a b"]
)
def test_a_mask_that_would_hide_nothing_is_refused(rule: str) -> None:
    with pytest.raises(Exception, match=r"such as|begins with"):
        Masks([rule])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", "*"),
        ("$.a", {"a": "*", "b": [{"c": 1}, {"c": 2}]}),
        ("$.b[1].c", {"a": 0, "b": [{"c": 1}, {"c": "*"}]}),
        ("$.b[*].c", {"a": 0, "b": [{"c": "*"}, {"c": "*"}]}),
        ("$..c", {"a": 0, "b": [{"c": "*"}, {"c": "*"}]}),
        ("$['b'][-1]", {"a": 0, "b": [{"c": 1}, "*"]}),
        ("$.nothing.here", {"a": 0, "b": [{"c": 1}, {"c": 2}]}),
    ],
)
def test_paths_find_what_they_name(path: str, expected: object) -> None:
    assert JsonPath(path).replace({"a": 0, "b": [{"c": 1}, {"c": 2}]}, "*") == expected


def test_replicas_of_one_broker(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(5):
            producer.send(topic, b"v", partition=0)
    shown = api.get(f"/api/topics/{topic}/replication")["partitions"]
    (replica,) = shown[0]["replicas"]
    assert (replica["end"], replica["high_watermark"], replica["lag"], replica["in_sync"]) == (5, 5, 0, True)
    assert shown[0]["epochs"] == [{"epoch": shown[0]["leader_epoch"], "start": 0}]
    assert api.get("/api/replication")["under_replicated"] == []
