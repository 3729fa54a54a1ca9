"""Pipelines in the console, and Avro with a schema registry."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fastavro
import pytest
from tests.console.conftest import MakeTopic, Peer
from tests.console.served import console

from barnabas import Producer
from barnabas.console.masks import Masks
from barnabas.spark.dead_letter_headers import STEP_HEADER, TOPIC_HEADER

PIPELINE = """\
name: small
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: {letters}
sources:
  orders: {{topic: {topic}, decode: json, schema: "id long"}}
sinks:
  - {{from: orders, topic: copies}}
"""
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "card", "type": "string"}]}


def test_a_pipeline_its_queries_and_its_dead_letters(
    broker: Peer, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, letters = make_topic(), make_topic()
    file = tmp_path / "small.yaml"
    file.write_text(PIPELINE.format(bootstrap=broker.bootstrap, topic=topic, letters=letters))
    broken = tmp_path / "broken.yaml"
    broken.write_text("sources: nothing\n")
    with console(broker.bootstrap, pipelines=(file, broken)) as api:
        assert api.begin()["features"]["pipelines"] is True
        good, bad = api.get("/api/pipelines")["items"]
        assert (good["name"], good["file"], good["state"]) == ("small", str(file), "new")
        assert [(each["name"], each["batch"]) for each in good["queries"]] == [("orders-to-copies", 0)]
        assert good["dead_letters"] == {"topic": letters, "count": 0} and good["problem"] is None
        assert bad["state"] == "unknown" and bad["problem"].endswith(".")
        headers = [(TOPIC_HEADER, topic.encode()), (STEP_HEADER, b"orders")]
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send(letters, b"not json", headers=headers).result(30)
        preview = api.post("/api/pipelines/small/replay", preview="true")
        assert preview["command"] == f"barnabas pipeline replay-dlq {file}"
        assert preview["preview"]["lines"][-1] == "1 dead letters would be sent."
        assert api.post("/api/pipelines/small/replay")["lines"][-1] == "1 dead letters sent."
        assert api.refused("POST", "/api/pipelines/other/replay") == (404, "NOT_FOUND")
        assert api.refused("POST", "/api/pipelines/broken/replay") == (409, "REPLAY_FAILED")


@pytest.fixture
def registry() -> Iterator[str]:
    """A schema registry that knows one schema, with the id 7."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path == "/schemas/ids/7"
            content = json.dumps({"schema": json.dumps(SCHEMA)} if is_known else {}).encode()
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing: the tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_avro_with_the_schemas_of_a_registry(broker: Peer, make_topic: MakeTopic, registry: str) -> None:
    topic = make_topic()
    data = io.BytesIO()
    fastavro.schemaless_writer(data, SCHEMA, {"card": "4111"})
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for schema_id in (7, 8):
            producer.send(topic, b"\0" + schema_id.to_bytes(4, "big") + data.getvalue()).result(30)
    path = f"/api/topics/{topic}/messages"
    with console(broker.bootstrap, schema_registry=registry) as api:
        known, unknown = api.get(path, **{"from": "beginning"})["items"]
        assert (known["value"]["as"], known["value"]["json"]) == ("avro", {"card": "4111"})
        assert unknown["value"]["as"] == "hex"
        unknown = api.get(path, value_as="avro")["items"][0]
        assert "404" in unknown["value"]["problem"]
        assert len(api.get(path, json_path='$.card == "4111"')["items"]) == 1
    with console(broker.bootstrap, schema_registry=registry, masks=Masks([f"{topic}:$.card"])) as api:
        hidden, masked = api.get(path)["items"]
        assert (masked["value"]["json"], hidden["value"]["as"]) == ({"card": "***"}, "masked")
