"""Messages: pages in both directions, filters, formats, transactions, masks, tail, download and produce."""

import csv
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from tests.console.conftest import MakeTopic, Peer
from tests.console.served import Api, console

from barnabas import Admin, Producer
from barnabas.console.masks import Masks

Item = dict[str, Any]


def send(broker: Peer, topic: str, records: list[tuple[bytes | None, bytes | None]], **options: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for key, value in records:
            producer.send(topic, value, key, **options)


def all_pages(api: Api, topic: str, **query: Any) -> list[Item]:
    items: list[Item] = []
    cursor = None
    while True:
        page = api.get(f"/api/topics/{topic}/messages", cursor=cursor, **query)
        items += page["items"]
        cursor = page["cursor"]
        if page["at_end"]:
            return items


def texts(api: Api, topic: str, **query: Any) -> list[str]:
    page = api.get(f"/api/topics/{topic}/messages", **{"from": "beginning", **query})
    return [item["value"]["text"] for item in page["items"]]


def test_pages_in_both_directions_have_every_message_once(
    api: Api, broker: Peer, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    send(broker, topic, [(str(number).encode(), b"v") for number in range(500)])
    for start in ("beginning", "end"):
        found = [
            (item["partition"], item["offset"]) for item in all_pages(api, topic, **{"from": start}, limit=70)
        ]
        assert len(found) == len(set(found)) == 500
        for partition in range(3):
            own = [offset for number, offset in found if number == partition]
            assert own == sorted(own, reverse=start == "end")


def test_a_topic_with_many_partitions(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(150)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(1500):
            producer.send(topic, b"v", partition=number % 150)
    for start in ("beginning", "end"):
        items = all_pages(api, topic, **{"from": start}, limit=200)
        assert len({(item["partition"], item["offset"]) for item in items}) == len(items) == 1500


def test_pages_begin_at_an_offset_or_a_time(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(20):
            producer.send(topic, str(number).encode(), timestamp=1_700_000_000_000 + number * 1000)
    path = f"/api/topics/{topic}/messages"
    assert texts(api, topic, **{"from": "offset"}, offset=17) == ["17", "18", "19"]
    assert texts(api, topic, **{"from": "time"}, time_ms=1_700_000_018_500) == ["19"]
    older = api.get(path, **{"from": "offset"}, offset=2, direction="older")
    assert [item["offset"] for item in older["items"]] == [2, 1, 0] and older["stopped_by"] == "end"
    assert api.refused("GET", path, **{"from": "offset"}) == (400, "INVALID_REQUEST")
    assert api.refused("GET", path, partition="7") == (400, "INVALID_REQUEST")
    assert api.refused("GET", path, cursor="bm90IG9uZQ") == (400, "INVALID_REQUEST")


def test_filters_look_at_keys_values_headers_and_json(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    send(
        broker,
        topic,
        [(f"k{n}".encode(), json.dumps({"n": n, "s": {"on": n % 2 == 0}}).encode()) for n in range(9)],
    )
    send(broker, topic, [(b"plain", b"not json at all")], headers=[("trace", b"abc-1")])

    def count(**query: Any) -> int:
        return len(texts(api, topic, **query))

    assert count(key="k3") == 1
    assert count(value="not json") == 1
    assert count(header="trace=abc") == count(header="abc-1") == count(text="abc-1") == 1
    assert count(regex=r"^k[0-4]$") == 5
    assert count(json_path="$.n >= 7") == 2
    assert count(json_path="$.s.on == true") == 5
    assert count(json_path="$.s") == 9 and count(json_path="$..on") == 9
    assert count(key="k", json_path="$.n < 3") == 3
    path = f"/api/topics/{topic}/messages"
    assert api.refused("GET", path, regex="(") == (400, "INVALID_REQUEST")
    assert api.refused("GET", path, json_path="n > 3") == (400, "INVALID_REQUEST")


def test_values_as_text_json_hex_numbers_and_avro(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    schema = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "long"}]}
    data = io.BytesIO()
    fastavro.schemaless_writer(data, schema, {"total": 7})
    send(broker, topic, [(b"\0\0\0\0\0\0\0\x05", data.getvalue()), (None, b'{"a": NaN}'), (None, None)])
    first, nan, null = api.get(f"/api/topics/{topic}/messages", **{"from": "beginning"})["items"]
    assert (first["key"]["as"], first["value"]["as"]) == ("hex", "hex")
    assert nan["value"]["as"] == "text" and null["value"]["is_null"] and null["value"]["text"] is None
    query = {"from": "beginning", "key_as": "number", "value_as": "avro", "schema": json.dumps(schema)}
    first, nan, _ = api.get(f"/api/topics/{topic}/messages", **query)["items"]
    assert first["key"]["json"] == 5 and first["value"]["json"] == {"total": 7}
    assert nan["value"]["as"] == "hex" and "Avro" in nan["value"]["problem"]
    query["schema"] = "{"
    assert api.refused("GET", f"/api/topics/{topic}/messages", **query) == (400, "INVALID_REQUEST")


def test_a_long_value_is_cut_in_a_list_and_whole_alone(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    send(broker, topic, [(None, b'{"a": "%s"}' % (b"x" * 50_000))])
    (cut,) = api.get(f"/api/topics/{topic}/messages")["items"]
    assert cut["value"]["truncated"] and len(cut["value"]["text"]) == 16_384 and cut["value"]["json"] is None
    (whole,) = api.get(f"/api/topics/{topic}/messages", limit=1)["items"]
    assert whole["value"]["json"]["a"] == "x" * 50_000 and whole["value"]["size"] == 50_009


def test_transactions_and_control_records_are_shown_for_what_they_are(
    api: Api, broker: Peer, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=f"tx-{topic}") as producer:
        producer.init_transactions()
        for value, ends in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, value).result(30)
            ends()
        producer.begin_transaction()
        producer.send(topic, b"undecided").result(30)
        page = api.get(f"/api/topics/{topic}/messages", **{"from": "beginning"}, control="true")
        shown = [(item["value"]["text"], item["transaction"], item["control"]) for item in page["items"]]
        assert shown == [
            ("kept", "committed", None),
            (None, "committed", "commit"),
            ("dropped", "aborted", None),
            (None, "aborted", "abort"),
            ("undecided", "open", None),
        ]
        assert page["items"][0]["producer_id"] is not None and page["items"][0]["sequence"] == 0
        assert texts(api, topic) == ["kept", "dropped", "undecided"]
        assert texts(api, topic, isolation="committed") == ["kept"]

        transactions = api.get("/api/transactions", search=topic)
        (open_one,) = transactions["items"]
        assert (open_one["state"], open_one["partitions"]) == ("Ongoing", [{"topic": topic, "partition": 0}])
        (held,) = [each for each in transactions["holding"] if each["topic"] == topic]
        assert (held["last_stable_offset"], held["high_watermark"]) == (4, 5)
        assert held["producer_id"] == open_one["producer_id"] and held["start_offset"] == 4
        body = {"transactional_id": f"tx-{topic}"}
        assert api.post("/api/transactions/abort", body, preview="true")["preview"]["state"] == "Ongoing"
        aborted = api.post("/api/transactions/abort", body)
        assert f"force-terminate --transactional-id tx-{topic}" in aborted["command"]
        assert texts(api, topic, isolation="committed") == ["kept"]
        assert api.refused("POST", "/api/transactions/abort", {"transactional_id": "nobody"})[0] == 404
        producer.close()


def test_a_message_is_written_and_written_again(api: Api, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    path = f"/api/topics/{topic}/messages"
    body = {
        "partition": 1,
        "key": {"as": "text", "text": "it's"},
        "value": {"as": "json", "text": '{"a": 1}'},
        "headers": [{"name": "h", "text": "v"}],
    }
    assert api.post(path, body, preview="true")["preview"]["value_size"] == 8
    assert texts(api, topic) == []
    written = api.post(path, body)
    assert (written["partition"], written["offset"]) == (1, 0)
    assert written["command"].startswith(
        "printf '%s\\n' 'h:v\tit'\"'\"'s\t{\"a\": 1}' | barnabas console-producer"
    )
    (item,) = api.get(path)["items"]
    again = {"partition": None, "key": {"as": "hex", "text": "00ff"}, "value": {"as": "null", "text": None}}
    api.post(path, again)
    assert item["headers"] == [{"name": "h", "text": "v", "hex": "76"}]
    assert {each["key"]["text"] for each in api.get(path)["items"]} == {"it's", "00ff"}
    for wrong in ({"as": "json", "text": "{"}, {"as": "hex", "text": "0"}):
        assert api.refused("POST", path, {"value": wrong}) == (400, "INVALID_REQUEST")
    assert api.refused("POST", path, {"partition": 2}) == (400, "INVALID_REQUEST")
    assert api.refused("POST", "/api/topics/nowhere/messages", {})[0] == 404


def test_a_file_has_all_messages(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    send(broker, topic, [(b"k", b"=HYPERLINK(1)"), *((str(n).encode(), b"v") for n in range(1200))])
    answer = api.call("GET", f"/api/topics/{topic}/download", **{"from": "beginning"})
    assert answer.headers["content-disposition"] == f'attachment; filename="{topic}.jsonl"'
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows) == 1201
    answer = api.call("GET", f"/api/topics/{topic}/download", format="csv", key="k")
    header, row = csv.reader(io.StringIO(answer.text))
    # A spreadsheet does not run it.
    assert dict(zip(header, row, strict=True))["value"] == "'=HYPERLINK(1)"


# ---- tail


def test_a_tail_shows_new_messages_only_and_those_that_match(
    api: Api, broker: Peer, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    send(broker, topic, [(None, b"old")])
    stop = threading.Event()

    def write() -> None:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            while not stop.wait(0.05):
                producer.send(topic, b"new and right")
                producer.send(topic, b"wrong")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for name, data in api.events(f"/api/topics/{topic}/tail", value="new"):
            assert name == "messages"
            if data["items"]:
                assert {item["value"]["text"] for item in data["items"]} == {"new and right"}
                break
    finally:
        stop.set()
        writer.join()


def test_a_tail_of_a_fast_topic_is_a_sample(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    events = api.events(f"/api/topics/{topic}/tail")
    started = threading.Event()

    def write() -> None:
        started.wait()
        send(broker, topic, [(None, b"x" * 100)] * 30_000)

    writer = threading.Thread(target=write)
    writer.start()
    threading.Timer(0.5, started.set).start()
    shown = skipped = 0
    for _, data in events:
        assert len(data["items"]) <= 50
        shown += len(data["items"])
        skipped += data["skipped"]
        if shown + skipped >= 30_000:
            break
    events.close()
    writer.join()
    assert shown + skipped == 30_000 and skipped > 20_000


# ---- masks


@pytest.fixture(scope="module")
def masked_api(broker: Peer) -> Iterator[Api]:
    masks = Masks(["masked-*:$.card", "masked-*:$..secret", "masked-*:key", "masked-*:headers.token"])
    with console(broker.bootstrap, masks=masks) as api:
        yield api


def test_what_is_masked_leaves_the_console_in_no_way(masked_api: Api, broker: Peer, admin: Admin) -> None:
    topic = "masked-orders"
    value = b'{"card": "4111", "deep": [{"secret": "4111"}], "name": "Ann"}'
    send(broker, topic, [(b"key-4111", value), (b"key-4111", b"4111 as text")], headers=[("Token", b"4111")])
    path = f"/api/topics/{topic}"
    views = [{"value_as": each, "key_as": each} for each in ("auto", "text", "json", "hex", "avro", "number")]
    for view in views:
        answer = masked_api.call("GET", f"{path}/messages", **view).text
        assert "4111" not in answer and b"4111".hex() not in answer and "Ann" in answer
    items = masked_api.get(f"{path}/messages")["items"]
    assert sorted(item["value"]["as"] for item in items) == ["json", "masked"]
    # Filters must not find it either: that would be a way to guess it.
    for query in (
        {"value": "4111"},
        {"text": "4111"},
        {"key": "4111"},
        {"header": "Token=4111"},
        {"regex": "41+"},
        {"json_path": '$.card == "4111"'},
    ):
        assert masked_api.get(f"{path}/messages", **query)["items"] == []
    assert len(masked_api.get(f"{path}/messages", json_path='$.name == "Ann"')["items"]) == 1
    for kind in ("jsonl", "csv"):
        assert "4111" not in masked_api.call("GET", f"{path}/download", format=kind).text
    schema = json.dumps({"type": "string"})
    assert masked_api.refused("GET", f"{path}/messages", schema=schema) == (400, "INVALID_REQUEST")
    for _, data in _tail_while_sending(masked_api, broker, topic, value):
        if data["items"]:
            assert "4111" not in json.dumps(data)
            break


def _tail_while_sending(api: Api, broker: Peer, topic: str, value: bytes) -> Iterator[tuple[str, Any]]:
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            send(broker, topic, [(None, value)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield from api.events(f"/api/topics/{topic}/tail")
    finally:
        stop.set()
        writer.join()
