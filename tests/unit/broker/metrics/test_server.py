"""The endpoint of the metrics as HTTP clients and scrapers see it; Prometheus' own parsers are the judges."""

import gzip
import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from tests.support.raw_calls import Topic, batch_of, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker.metrics import server
from barnabas.errors import ErrorCode

OPEN_METRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleBroker]:
    directory = tmp_path_factory.mktemp("metrics")
    with visible_broker(directory, {"barnabas.metrics.port": "0"}) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            produce_batch(client, new_topic(client, name="orders"), batch_of(b"a record"))
        yield broker


def metrics_port(running: VisibleBroker) -> int:
    port = running.broker.metrics_port
    assert port is not None
    return port


def ask(
    running: VisibleBroker, path: str = "/metrics", method: str = "GET", **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", metrics_port(running), timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=named)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_plain_text_by_default(running: VisibleBroker) -> None:
    response, body = ask(running)
    assert response.status == 200
    assert response.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in parse_text(body.decode())}
    assert families["kafka_server_replicamanager_partitioncount"].samples[0].value >= 1
    names = {sample.name for sample in families["kafka_server_brokertopicmetrics_bytesin"].samples}
    assert names == {"kafka_server_brokertopicmetrics_bytesin_total"}


def test_open_metrics_when_the_scraper_prefers_it(running: VisibleBroker) -> None:
    response, body = ask(running, Accept=OPEN_METRICS)
    assert response.getheader("Content-Type") == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert body.endswith(b"# EOF\n")
    families = {family.name: family for family in parse_open_metrics(body.decode())}
    assert families["kafka_network_requestmetrics_totaltime_seconds"].type == "histogram"
    assert families["kafka_server_brokertopicmetrics_bytesin"].type == "counter"


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain",
        "*/*",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.1,text/plain;q=0.9",
        "application/openmetrics-text;q=nonsense",
    ],
)
def test_plain_text_when_the_scraper_prefers_that(running: VisibleBroker, accept: str) -> None:
    response, _ = ask(running, Accept=accept)
    assert (response.getheader("Content-Type") or "").startswith("text/plain")


def test_both_formats_have_the_same_samples(running: VisibleBroker) -> None:
    text, open_metrics = ask(running)[1].decode(), ask(running, Accept=OPEN_METRICS)[1].decode()
    names = {sample.name for family in parse_text(text) for sample in family.samples}
    assert names == {sample.name for family in parse_open_metrics(open_metrics) for sample in family.samples}
    helped = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}
    assert len(helped) == sum(line.startswith("# HELP") for line in text.splitlines())


def test_gzip_when_asked_for(running: VisibleBroker) -> None:
    response, body = ask(running, Accept_Encoding="deflate, gzip;q=0.8")
    assert response.getheader("Content-Encoding") == "gzip"
    text = gzip.decompress(body)
    assert len(body) < len(text) / 3
    assert b"kafka_log_log_size" in text
    response, body = ask(running, Accept_Encoding="gzip;q=0")
    assert response.getheader("Content-Encoding") is None
    assert b"kafka_log_log_size" in body


def test_head_has_the_headers_and_no_body(running: VisibleBroker) -> None:
    for path in ("/metrics", "/"):
        response, body = ask(running, path, "HEAD")
        assert (response.status, body) == (200, b"")
        assert response.getheader("Content-Type") == ask(running, path)[0].getheader("Content-Type")


def test_the_page_says_what_this_is(running: VisibleBroker) -> None:
    response, body = ask(running, "/")
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    page = body.decode()
    assert '<a href="/metrics">' in page
    assert "Barnabas broker 1" in page
    assert f"PLAINTEXT://127.0.0.1:{running.port}" in page


def test_other_paths_and_methods_are_refused_with_a_sentence(running: VisibleBroker) -> None:
    response, body = ask(running, "/favicon.ico")
    assert (response.status, body) == (404, b"There is nothing here: the metrics are at /metrics.\n")
    response, body = ask(running, "/metrics", "POST")
    assert (response.status, body) == (405, b"Only GET and HEAD are served here.\n")
    assert response.getheader("Allow") == "GET, HEAD"
    assert ask(running, "/metrics?name=x")[0].status == 200


def converse(running: VisibleBroker, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", metrics_port(running)), timeout=20) as peer:
        peer.sendall(data)
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
        return answer


def test_malformed_requests_are_refused(running: VisibleBroker) -> None:
    assert converse(running, b"hello\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert converse(running, b"\x00\xff\x00 \xfe\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    too_long = b"GET /metrics HTTP/1.1\r\nX: " + b"x" * server.REQUEST_BYTES_MAX * 2
    assert converse(running, too_long).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_peer_that_sends_nothing_is_disconnected(
    running: VisibleBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS_MAX", 0.05)
    assert converse(running, b"GET /metrics HTTP/1.1\r\n") == b""


def test_connections_have_a_limit(running: VisibleBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    with socket.create_connection(("127.0.0.1", metrics_port(running)), timeout=20) as first:
        first.sendall(b"GET / HTTP/1.1\r\n")
        response, body = ask(running)
        assert (response.status, body) == (503, b"Too many connections.\n")
        first.sendall(b"\r\n")
        assert first.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_labels_are_escaped(running: VisibleBroker) -> None:
    # Group ids may have any characters.
    name = 'a "group"\\with\nlines'
    with RawClient("127.0.0.1", running.port) as client:
        group = RawGroup(client, name)
        group.find()
        assert group.commit(Topic("orders", b""), 0) == ErrorCode.NONE
    for accept, parse in (("text/plain", parse_text), (OPEN_METRICS, parse_open_metrics)):
        families = {family.name: family for family in parse(ask(running, Accept=accept)[1].decode())}
        (sample,) = families["kafka_consumergroup_lag_sum"].samples
        assert sample.labels == {"consumergroup": name, "topic": "orders"}
        assert sample.value == 1


def test_probes(running: VisibleBroker) -> None:
    for path in ("/health", "/ready"):
        response, body = ask(running, path)
        assert (response.status, response.getheader("Content-Type")) == (200, "application/json")
        assert json.loads(body)["status"] == "ok"
        assert ask(running, path, "HEAD")[1] == b""


def test_probes_of_a_broker_that_is_not_ready(running: VisibleBroker) -> None:
    def set_ready(is_ready: bool) -> None:
        running.look(lambda broker: setattr(broker, "is_ready", is_ready))

    set_ready(False)
    try:
        response, body = ask(running, "/ready")
        assert response.status == 503
        assert json.loads(body)["checks"]["started"] == "the broker is starting or stopping"
        assert ask(running, "/health")[0].status == 200
    finally:
        set_ready(True)


def test_probes_while_a_log_directory_is_offline(running: VisibleBroker) -> None:
    def set_online(is_online: bool) -> None:
        running.look(lambda broker: setattr(broker.logs.directories[0], "online", is_online))

    set_online(False)
    try:
        for path in ("/health", "/ready"):
            response, body = ask(running, path)
            assert response.status == 503
            assert json.loads(body)["checks"]["log directories"].startswith("none can be used; offline: /")
    finally:
        set_online(True)


def test_before_the_logs_are_open_only_probes_are_answered(running: VisibleBroker) -> None:
    def set_starting(is_starting: bool) -> None:
        running.look(lambda broker: setattr(broker._metrics, "is_starting", is_starting))

    set_starting(True)
    try:
        for path in ("/metrics", "/"):
            response, body = ask(running, path)
            assert (response.status, body) == (503, b"The broker is starting: try again.\n")
        assert ask(running, "/health")[0].status == 200
    finally:
        set_starting(False)
