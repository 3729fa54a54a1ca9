"""5,000 topics, 1,000,000 messages, and a live tail of 10,000 messages per second stay usable."""

import re
import threading
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.console.page.conftest import MakeTopic, Visit

import barnabas
from barnabas.client.admin import NewTopic

pytestmark = pytest.mark.slow

TOPICS = 5000
MESSAGES = 1_000_000
SECONDS_OF_TAIL = 30
ROWS_MAX = 200


def first_paint_ms(visit: Visit) -> float:
    script = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    return float(visit.page.evaluate(script))


@pytest.fixture
def many_topics(admin: barnabas.Admin) -> None:
    for first in range(0, TOPICS, 500):
        admin.create_topics(
            [NewTopic(f"many-{first + number:04}", 1, 1) for number in range(500)], timeout=120
        )


def test_five_thousand_topics(visit: Visit, many_topics: None) -> None:
    visit.open("/topics?search=many-")
    visit.sees(visit.page.locator(".amount"), "5,000")
    expect(visit.table("Topics").locator("tbody tr")).to_have_count(50)
    visit.page.reload()
    print(f"first paint after {first_paint_ms(visit):.0f} ms")
    visit.button("Last page").click()
    visit.sees(visit.table("Topics"), "many-4999")
    visit.page.get_by_role("searchbox").fill("many-4321")
    expect(visit.table("Topics").locator("tbody tr")).to_have_count(1)
    visit.page.get_by_role("button", name="Copy CSV").click()
    expect(visit.page.locator(".toast")).to_contain_text("copied")
    assert "many-4321" in visit.page.evaluate("navigator.clipboard.readText()")
    visit.open("/")
    visit.sees(visit.page.locator(".tiles"), "1 of 1")


@pytest.fixture
def million(bootstrap: str, make_topic: MakeTopic) -> str:
    topic = make_topic("million", 4)
    with barnabas.Producer(bootstrap_servers=bootstrap, linger_ms=20, compression_type="lz4") as producer:
        for number in range(MESSAGES):
            producer.send(topic, b'{"number": %d, "state": "open"}' % number, key=b"key-%d" % number)
        producer.flush()
    return topic


def test_a_million_messages(visit: Visit, million: str) -> None:
    rows = visit.table("Messages").locator("tbody tr.linked")
    visit.open(f"/topics/{million}/messages")
    expect(rows).to_have_count(50)
    print(f"first paint after {first_paint_ms(visit):.0f} ms")
    visit.sees(visit.page.locator(".tiles"), "1,000,000")
    visit.button("Older ›").click()
    visit.page.wait_for_url(re.compile("cursor="))
    expect(rows).to_have_count(50)
    visit.page.locator("summary", has_text="Filters").click()
    visit.page.get_by_label("From").select_option("beginning")
    visit.page.get_by_label("Key", exact=True).fill("key-777777")
    visit.button("Read").click()
    # The server may stop after many that do not match; the page then offers to go on.
    reading = visit.page.locator("[aria-busy=true]")
    for _ in range(100):
        expect(reading).to_have_count(0)
        if rows.count():
            break
        visit.button("Go on reading ›").click()
    visit.sees(rows.first, "key-777777")


@pytest.fixture
def fast_topic(bootstrap: str, make_topic: MakeTopic) -> Iterator[str]:
    """A topic that gets 10,000 messages per second while the test runs."""
    topic = make_topic("fast", 4)
    stop = threading.Event()

    def send() -> None:
        with barnabas.Producer(bootstrap_servers=bootstrap, linger_ms=10) as producer:
            while not stop.is_set():
                began = time.monotonic()
                for number in range(500):
                    producer.send(topic, b'{"number": %d}' % number)
                time.sleep(max(0.0, 0.05 - (time.monotonic() - began)))

    thread = threading.Thread(target=send)
    thread.start()
    yield topic
    stop.set()
    thread.join()


def test_a_fast_tail_does_not_grow_memory(visit: Visit, fast_topic: str) -> None:
    visit.open(f"/topics/{fast_topic}/messages?tail=true")
    rows = visit.table("Messages").locator("tbody tr")
    expect(rows).to_have_count(ROWS_MAX)
    session = visit.page.context.new_cdp_session(visit.page)

    def used_bytes() -> float:
        session.send("HeapProfiler.collectGarbage")
        return float(session.send("Runtime.getHeapUsage")["usedSize"])

    time.sleep(5)
    before = used_bytes()
    time.sleep(SECONDS_OF_TAIL)
    after = used_bytes()
    print(f"heap {before / 1e6:.1f} MB, after {SECONDS_OF_TAIL} s {after / 1e6:.1f} MB")
    assert after < before * 1.5 + 2e6
    assert rows.count() <= ROWS_MAX
