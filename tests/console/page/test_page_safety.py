"""Hostile names and payloads, read-only mode, and what the sources of the page may not contain."""

import re
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import BrowserContext, expect
from tests.console.page.conftest import MakeTopic, Visit, running_console

import barnabas
from barnabas import TopicPartition
from barnabas.client.types import OffsetAndMetadata

HOSTILE = "<img src=x onerror=\"window.hacked='yes'\"><script>window.hacked='yes'</script>"
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    r"|setHTMLUnsafe|DOMParser|srcdoc|https?://(?!www\.w3\.org/2000/svg)|\bstyle="
)


def test_sources_of_the_page_never_parse_data_as_html_and_name_no_other_host() -> None:
    sources = [
        path
        for path in files("barnabas.console").joinpath("static").iterdir()
        if path.name.endswith((".js", ".html", ".css", ".svg"))
    ]
    assert len(sources) > 20
    found = [
        f"{path.name}: {line}"
        for path in sources
        for line in path.read_text().splitlines()
        if FORBIDDEN.search(line)
    ]
    assert found == []


def test_all_modules_are_loaded_at_once() -> None:
    """Otherwise the browser would find them one after the other, import by import."""
    static = files("barnabas.console").joinpath("static")
    modules = {path.name for path in static.iterdir() if path.name.endswith(".js")}
    named = set(re.findall(r'"/static/([\w-]+\.js)"', static.joinpath("index.html").read_text()))
    assert named == modules


def hacked(visit: Visit) -> object:
    return visit.page.evaluate(
        "[window.hacked ?? null, document.querySelectorAll('main img, main script').length]"
    )


def test_hostile_names_and_payloads_stay_text(
    visit: Visit, bootstrap: str, producer: barnabas.Producer, make_topic: MakeTopic
) -> None:
    topic = make_topic("hostile")
    hostile = HOSTILE.encode()
    producer.send(
        topic, b'{"a": "%s"}' % HOSTILE.replace('"', '\\"').encode(), key=hostile, headers={HOSTILE: hostile}
    ).result(30)
    producer.send(topic, hostile).result(30)
    group = f"{HOSTILE}/{topic}?x=1#y%20z"
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "enable_auto_commit": False}
    with barnabas.Consumer(**settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(1)})
    visit.open(f"/topics/{topic}/messages?from=beginning")
    rows = visit.page.locator("tr.linked")
    expect(rows).to_have_count(2)
    for row in (rows.nth(1), rows.nth(0)):
        row.click()
    expect(visit.page.locator(".message-detail")).to_have_count(2)
    visit.sees(visit.page.locator(".message-detail").first, "onerror=")
    assert hacked(visit) == [None, 0]
    visit.page.locator(".message-detail").first.get_by_role("button", name="Produce again…").click()
    visit.sees(visit.page.locator("dialog .command"), "console-producer")
    visit.page.keyboard.press("Escape")
    visit.page.goto(f"{visit.base}/topics/{topic}/groups")
    visit.sees(visit.table("Groups with offsets here"), group)
    visit.page.get_by_role("link", name=group, exact=True).click()
    expect(visit.page.locator("main h1")).to_have_text(group)
    visit.sees(visit.table("Offsets"), topic)
    assert hacked(visit) == [None, 0]
    visit.page.reload()
    expect(visit.page.locator("main h1")).to_have_text(group)
    visit.sees(visit.table("Offsets"), topic)
    visit.open("/groups?search=onerror")
    visit.sees(visit.table("Groups"), group)
    assert hacked(visit) == [None, 0]


def test_search_texts_of_addresses_stay_text(visit: Visit) -> None:
    for path in ("/topics?search=", "/groups?search=", "/topics/x/messages?text=", "/no-page/", "/groups/"):
        visit.expects_failures = True
        visit.page.goto(visit.base + path + HOSTILE)
        expect(visit.page.locator("main h1")).to_be_visible()
        assert hacked(visit) == [None, 0]


def test_read_only_mode_offers_no_action(
    context: BrowserContext, bootstrap: str, tmp_path: Path, make_topic: MakeTopic
) -> None:
    topic = make_topic("frozen")
    with running_console(bootstrap, tmp_path, "--read-only") as console:
        visit = Visit(context, console.url)
        visit.open(f"/topics/{topic}")
        visit.sees(visit.page.locator(".side"), "read-only")
        expect(visit.table("Partitions").locator("tbody tr")).to_have_count(1)
        for path in (f"/topics/{topic}", f"/topics/{topic}/configs", "/topics", "/transactions"):
            visit.open(path)
            visit.page.wait_for_load_state("load")
            names = visit.page.locator("main button").all_inner_texts()
            assert not {"Produce", "Delete", "Empty", "Add partitions", "Create topic", "Set", "Abort"} & set(
                names
            )
        visit.check()
