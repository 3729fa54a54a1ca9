"""The messages of a topic: where reading begins, filters, formats, transactions, the live tail, downloads."""

import io
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import fastavro
import pytest
from playwright.sync_api import expect
from tests.console.page.conftest import MakeTopic, Visit

import barnabas

ROWS_MAX = 200


@pytest.fixture
def orders(producer: barnabas.Producer, make_topic: MakeTopic) -> str:
    """120 orders in one partition; every tenth is paid."""
    topic = make_topic("orders")
    for number in range(120):
        order = {"order": number, "state": "paid" if number % 10 == 0 else "open"}
        headers = {"table": str(number % 7).encode()}
        producer.send(topic, json.dumps(order).encode(), key=f"key-{number}".encode(), headers=headers)
    producer.flush()
    return topic


def offsets(visit: Visit) -> list[int]:
    cells = visit.table("Messages").locator("tbody tr.linked td:nth-child(2)").all_inner_texts()
    return [int(text.replace(",", "")) for text in cells]


def test_reading_begins_where_it_is_said(visit: Visit, orders: str) -> None:
    rows = visit.table("Messages").locator("tbody tr.linked")
    visit.open(f"/topics/{orders}/messages")
    expect(rows).to_have_count(50)
    assert offsets(visit) == list(range(119, 69, -1))
    visit.button("Older ›").click()
    expect(rows.first).to_contain_text("69")
    assert offsets(visit) == list(range(69, 19, -1))
    visit.page.go_back()
    expect(rows.first).to_contain_text("119")
    visit.page.get_by_label("From").select_option("offset")
    visit.page.get_by_label("Offset", exact=True).fill("100")
    visit.button("Read").click()
    expect(rows).to_have_count(20)
    assert offsets(visit) == list(range(100, 120))
    visit.page.reload()
    expect(rows).to_have_count(20)
    visit.page.get_by_label("From").select_option("beginning")
    visit.button("Read").click()
    expect(rows.first).to_contain_text("key-0")
    visit.page.get_by_label("From").select_option("time")
    visit.page.get_by_label("Time", exact=True).fill("2020-01-01T00:00:00")
    visit.button("Read").click()
    visit.page.wait_for_url(re.compile("time_ms="))
    expect(rows.first).to_contain_text("key-0")


@pytest.mark.parametrize(
    ("label", "text", "found"),
    [
        ("Key", "key-11", [11, *range(110, 120)]),
        ("Value", '"order": 42', [42]),
        ("Header", "table=3", [number for number in range(120) if number % 7 == 3]),
        ("Regular expression", "key-[12]0$", [10, 20]),
        ("JSON path", '$.state == "paid"', list(range(0, 120, 10))),
    ],
)
def test_filters(visit: Visit, orders: str, label: str, text: str, found: list[int]) -> None:
    visit.open(f"/topics/{orders}/messages?from=beginning&limit=100")
    visit.page.locator("summary", has_text="Filters").click()
    visit.page.get_by_label(label, exact=True).fill(text)
    visit.button("Read").click()
    expect(visit.table("Messages").locator("tbody tr.linked")).to_have_count(len(found))
    assert offsets(visit) == found


def test_a_message_has_an_address(visit: Visit, orders: str) -> None:
    visit.open(f"/topics/{orders}/messages?partition=0&from=offset&offset=40&open=0-40")
    detail = visit.page.locator(".message-detail")
    visit.sees(detail, '"order": 40')
    visit.sees(detail, "table")
    visit.page.locator("tr.linked").first.press("Enter")
    expect(detail).to_have_count(0)


def test_bytes_and_nulls_are_shown_for_what_they_are(
    visit: Visit, producer: barnabas.Producer, make_topic: MakeTopic
) -> None:
    topic = make_topic("bytes")
    producer.send(topic, None, key=b"\x00\xff\xfe").result(30)
    producer.send(topic, b"", key=b"empty").result(30)
    visit.open(f"/topics/{topic}/messages?from=beginning")
    rows = visit.table("Messages").locator("tbody tr.linked")
    expect(rows).to_have_count(2)
    visit.sees(rows.nth(0).locator(".value"), "null")
    visit.sees(rows.nth(0).locator(".key"), "00fffe")
    visit.sees(rows.nth(1).locator(".value"), "empty")


def test_avro_with_a_given_schema(visit: Visit, producer: barnabas.Producer, make_topic: MakeTopic) -> None:
    topic = make_topic("avro")
    schema = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "long"}]}
    data = io.BytesIO()
    fastavro.schemaless_writer(data, schema, {"total": 4711})
    producer.send(topic, data.getvalue()).result(30)
    visit.open(f"/topics/{topic}/messages")
    visit.page.locator("summary", has_text="Filters").click()
    visit.page.get_by_label("Value as").select_option("avro")
    visit.page.get_by_label("Avro schema").fill(json.dumps(schema))
    visit.button("Read").click()
    visit.sees(visit.table("Messages").locator("tr.linked .value"), '"total"')
    visit.sees(visit.table("Messages").locator("tr.linked .value"), "4711")


def test_transactions_and_control_records(visit: Visit, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic("payments")
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as writer:
        writer.init_transactions()
        for value in (b"kept", b"dropped", b"pending"):
            writer.begin_transaction()
            writer.send(topic, value).result(30)
            if value == b"kept":
                writer.commit_transaction()
            elif value == b"dropped":
                writer.abort_transaction()
        visit.open(f"/topics/{topic}/messages?from=beginning&control=true")
        rows = visit.table("Messages").locator("tbody tr.linked .value")
        texts = ["transaction committed kept", "commit marker", "transaction aborted dropped", "abort marker"]
        expected = [re.compile(r"\s*".join(text.split(" "))) for text in [*texts, "transaction open pending"]]
        expect(rows).to_have_text(expected)
        rows.nth(1).click()
        visit.sees(visit.page.locator(".message-detail"), "committed")
        visit.page.get_by_label("Isolation").select_option("committed")
        visit.page.get_by_label("Show control records").uncheck()
        visit.button("Read").click()
        expect(rows).to_have_text([re.compile("kept")])
        writer.abort_transaction()


def test_messages_are_downloaded(visit: Visit, orders: str) -> None:
    visit.open(f"/topics/{orders}/messages?from=beginning&limit=500")
    expect(visit.table("Messages").locator("tbody tr.linked")).to_have_count(120)
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("link", name="Download JSON lines").click()
    lines = waiting.value.path().read_text().splitlines()
    assert len(lines) == 120
    assert json.loads(lines[7])["offset"] == 7


@contextmanager
def sending(bootstrap: str, topic: str) -> Iterator[None]:
    """Sends messages all the time, some thousand per second."""
    stop = threading.Event()

    def send() -> None:
        with barnabas.Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            number = 0
            while not stop.is_set():
                for _ in range(100):
                    producer.send(topic, b'{"number": %d}' % number, key=b"key-%d" % number)
                    number += 1
                time.sleep(0.03)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_live_tail_does_not_grow_the_page(visit: Visit, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic("tailed", 2)
    visit.open(f"/topics/{topic}/messages")
    visit.button("▶ Live tail").click()
    visit.page.wait_for_url(re.compile("tail=true"))
    rows = visit.table("Messages").locator("tbody tr")
    with sending(bootstrap, topic):
        expect(rows).to_have_count(ROWS_MAX)
        elements = visit.page.evaluate("document.querySelectorAll('*').length")
        newest = rows.first.locator(".value")
        for _ in range(3):
            expect(newest).not_to_have_text(newest.inner_text())
        assert rows.count() <= ROWS_MAX
        assert visit.page.evaluate("document.querySelectorAll('*').length") < elements * 1.1
        visit.button("❚❚ Pause").click()
        visit.sees(visit.page.locator(".note"), "Paused")
        seen = newest.inner_text()
        visit.sees(visit.page.locator(".note"), "waiting")
        assert newest.inner_text() == seen
        # A paused tail can be read at leisure: a message opens and stays.
        rows.first.click()
        expect(visit.page.locator(".message-detail")).to_be_visible()
        visit.button("▶ Resume").click()
        expect(newest).not_to_have_text(seen)
    visit.button("■ Stop").click()
    expect(rows).to_have_count(50)
