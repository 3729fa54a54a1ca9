"""Every page opens, on a screen and on a phone; addresses restore what was seen; the keyboard is enough."""

import re

import pytest
from playwright.sync_api import Browser, expect
from tests.console.page.conftest import ConsoleProcess, MakeTopic, Visit

import barnabas

PAGES = {
    "/": "Overview",
    "/topics": "Topics",
    "/groups": "Groups",
    "/brokers": "Brokers",
    "/brokers/1/configs": "Broker 1",
    "/replication": "Replication",
    "/transactions": "Transactions",
    "/no/such/page": "There is no such page",
}


@pytest.fixture
def first_broker(admin: barnabas.Admin) -> int:
    return next(iter(admin.describe_cluster().nodes)).id


def test_every_page_opens(visit: Visit, first_broker: int) -> None:
    for path, title in PAGES.items():
        visit.open(path.replace("/1/", f"/{first_broker}/"))
        expect(visit.page.locator("main h1")).to_have_text(title.replace("1", str(first_broker)))
    for title in ("Overview", "Topics", "Groups", "Brokers", "Replication", "Transactions"):
        visit.page.get_by_role("navigation", name="Pages").get_by_role("link", name=title).click()
        expect(visit.page.locator("main h1")).to_have_text(title)
        assert visit.page.title() == f"{title} – Barnabas"


def test_overview_shows_the_broker_and_live_charts(visit: Visit, first_broker: int) -> None:
    visit.open("/")
    row = visit.table("Brokers").locator("tbody tr").first
    visit.sees(row, str(first_broker))
    visit.sees(row, "alive")
    visit.sees(row, "controller")
    visit.sees(visit.page.locator(".tiles"), "1 of 1")
    # The server's samples become lines.
    expect(visit.page.locator("svg.chart path.line")).to_have_count(2)


def test_topic_tabs_have_addresses(visit: Visit, make_topic: MakeTopic, producer: barnabas.Producer) -> None:
    topic = make_topic("tabs", 3)
    producer.send(topic, b"one", partition=2).result(30)
    visit.open(f"/topics/{topic}")
    rows = visit.table("Partitions").locator("tbody tr")
    expect(rows).to_have_count(3)
    for title in ("Messages", "Configuration", "Groups", "Replication"):
        link = visit.page.get_by_role("navigation", name="Topic").get_by_role("link", name=title, exact=True)
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
    assert visit.path == f"/topics/{topic}/replication"
    expect(visit.page.locator(".replica-card")).to_have_count(3)
    visit.page.reload()
    expect(visit.page.locator(".replica-card")).to_have_count(3)
    visit.sees(visit.page.locator(".replica-card").nth(2), "high watermark 1")


def test_addresses_keep_search_and_sort(visit: Visit, listed: list[str]) -> None:
    visit.open("/topics")
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("on-the-page-")
    rows = visit.table("Topics").locator("tbody tr")
    expect(rows).to_have_count(3)
    visit.page.wait_for_url(re.compile("search=on-the-page-"))
    visit.page.get_by_role("button", name=re.compile("^Topic")).click()
    visit.page.wait_for_url(re.compile("order=desc"))
    expect(rows.first).to_contain_text(listed[-1])
    visit.page.reload()
    expect(rows.first).to_contain_text(listed[-1])
    expect(rows).to_have_count(3)
    expect(visit.page.get_by_role("searchbox")).to_have_value("on-the-page-")
    rows.first.click()
    expect(visit.page.locator("main h1")).to_have_text(listed[-1])
    visit.page.go_back()
    expect(rows).to_have_count(3)


def test_the_keyboard_is_enough(visit: Visit, listed: list[str]) -> None:
    visit.open("/")
    visit.page.keyboard.press("?")
    expect(visit.page.locator("dialog")).to_contain_text("walk through a table")
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("dialog")).to_have_count(0)
    visit.page.keyboard.press("g")
    visit.page.keyboard.press("t")
    expect(visit.page.locator("main h1")).to_have_text("Topics")
    visit.open("/topics?search=on-the-page-")
    rows = visit.table("Topics").locator("tbody tr")
    expect(rows).to_have_count(3)
    rows.first.focus()
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("j")
    visit.page.keyboard.press("k")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("main h1")).to_have_text(listed[1])
    visit.page.keyboard.press("n")
    expect(visit.page.locator("dialog")).to_contain_text(f"Produce to {listed[1]}")


def test_tables_are_copied_as_csv(visit: Visit, listed: list[str]) -> None:
    visit.open("/topics?search=on-the-page-")
    expect(visit.table("Topics").locator("tbody tr")).to_have_count(3)
    visit.page.get_by_role("button", name="Copy CSV").click()
    expect(visit.page.locator(".toast")).to_contain_text("copied")
    lines = visit.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0].startswith("Topic,Partitions,Replicas,Messages")
    assert [line.split(",")[:2] for line in lines[1:]] == [[name, "2"] for name in listed]


def test_theme_is_kept(visit: Visit) -> None:
    visit.open("/topics")
    background = "getComputedStyle(document.body).backgroundColor"
    light = visit.page.evaluate(background)
    visit.page.keyboard.press("t")
    visit.page.keyboard.press("t")
    dark = visit.page.evaluate(background)
    assert light != dark
    visit.page.reload()
    expect(visit.page.locator("main h1")).to_be_visible()
    assert visit.page.evaluate(background) == dark


def test_pages_fit_a_phone(browser: Browser, console: ConsoleProcess, make_topic: MakeTopic) -> None:
    topic = make_topic("a-topic-with-a-rather-long-name-for-a-phone", 2)
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    visit = Visit(context, console.url)
    for path in ("/", "/topics", "/replication", f"/topics/{topic}", f"/topics/{topic}/messages"):
        visit.open(path)
        expect(visit.page.locator("tbody tr").first).to_be_visible()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360, path
    visit.page.get_by_role("button", name="Menu").click()
    visit.page.get_by_role("link", name="Groups", exact=True).first.click()
    expect(visit.page.locator("main h1")).to_have_text("Groups")
    visit.check()
    context.close()
