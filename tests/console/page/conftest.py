"""The pages of the console in a real browser: Chromium from the system's packages, driven by Playwright.

Every visit is watched: an error in the browser's console and a request to another host fail the test.
BARNABAS_TEST_BOOTSTRAP=host:port points the tests at another broker, for example at Apache Kafka."""

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from tests.clients.broker_process import PROGRAM, running_broker

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.testing.broker import KEEP_OLD_RECORDS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
QUICK = {"group.initial.rebalance.delay.ms": "0", **KEEP_OLD_RECORDS}
WAIT_MS = 30_000
START_SECONDS_MAX = 30.0
expect.set_options(timeout=WAIT_MS)


class ConsoleProcess:
    """`barnabas console` as users start it, on a free port."""

    def __init__(self, bootstrap: str, directory: Path, *options: str) -> None:
        self._log = directory / f"console-{uuid.uuid4().hex[:6]}.log"
        command = [str(PROGRAM), "console", "--bootstrap-server", bootstrap, "--port", "0", *options]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=directory
            )
        self.url = self._ready()

    def _ready(self) -> str:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self._process.poll() is None:
            words = self.output().split()
            if found := [word for word in words if word.startswith("http://")]:
                return found[0].rstrip("/")
            time.sleep(0.02)
        self.stop()
        raise AssertionError(f"the console did not start:\n{self.output()}")

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the console did not stop:\n{self.output()}") from None


@contextmanager
def running_console(bootstrap: str, directory: Path, *options: str) -> Iterator[ConsoleProcess]:
    console = ConsoleProcess(bootstrap, directory, *options)
    try:
        yield console
    finally:
        console.stop()
    assert "Traceback" not in console.output(), console.output()


class Visit:
    """A page in the browser, with what it asked for and what it complained about."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        # Tests that stop brokers, or log in with a wrong password, expect answers that are errors.
        self.expects_failures = False
        self.page.on("console", self._noted)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _noted(self, message: ConsoleMessage) -> None:
        answered_with_error = message.text.startswith("Failed to load resource") or "ERR_" in message.text
        if message.type in ("error", "warning") and not (self.expects_failures and answered_with_error):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str) -> None:
        self.page.goto(self.base + path)
        expect(self.page.locator("main h1")).to_be_visible()

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self.base)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def act(self, button: str) -> Locator:
        """Press a button of the page that opens a dialog; returns the dialog."""
        self.page.locator("main").get_by_role("button", name=button, exact=True).first.click()
        return self.page.locator("dialog")

    def finish(self, dialog: Locator, verb: str) -> str:
        """Wait for the preview, do it, and return the equivalent command that the console shows."""
        submit = dialog.get_by_role("button", name=verb, exact=True)
        expect(submit).to_be_enabled()
        before = dialog.locator(".command pre").inner_text()
        submit.click()
        expect(dialog.locator(".done")).to_be_visible()
        after = dialog.locator(".command pre").inner_text()
        assert before == after
        dialog.get_by_role("button", name="Close", exact=True).last.click()
        return after

    def table(self, name: str) -> Locator:
        return self.page.get_by_role("table", name=name, exact=True)

    def sees(self, locator: Locator, text: str) -> None:
        expect(locator).to_contain_text(text)

    def check(self) -> None:
        assert self.complaints == []
        assert self.hosts == {urlsplit(self.base).netloc}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # For one module: while Playwright runs, its event loop counts as the running one of this thread.
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(
        viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"]
    )
    yield made
    made.close()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker that most tests share."""
    if FOREIGN_BOOTSTRAP is not None:
        yield FOREIGN_BOOTSTRAP
        return
    with running_broker(tmp_path_factory.mktemp("console-broker"), QUICK) as running:
        yield running.bootstrap


@pytest.fixture(scope="session")
def listed(bootstrap: str) -> list[str]:
    """Topics that exist before the console starts, so that its lists have them at once. On a shared broker,
    topics of other tests have other names."""
    names = [f"on-the-page-{letter}-{uuid.uuid4().hex[:8]}" for letter in "abc"]
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 2, 1) for name in names])
    return names


@pytest.fixture(scope="session")
def console(
    bootstrap: str, listed: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleProcess]:
    with running_console(bootstrap, tmp_path_factory.mktemp("console")) as started:
        yield started


@pytest.fixture
def visit(context: BrowserContext, console: ConsoleProcess) -> Iterator[Visit]:
    visit = Visit(context, console.url)
    yield visit
    visit.check()


@pytest.fixture
def admin(bootstrap: str) -> Iterator[barnabas.Admin]:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        yield admin


@pytest.fixture
def producer(bootstrap: str) -> Iterator[barnabas.Producer]:
    with barnabas.Producer(bootstrap_servers=bootstrap) as producer:
        yield producer


MakeTopic = Callable[..., str]


@pytest.fixture
def make_topic(admin: barnabas.Admin) -> MakeTopic:
    """make_topic("orders", partitions=3) creates a topic whose name begins so, and returns the name."""

    def make(prefix: str = "orders", partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, 1, configs=configs or {})])
        return name

    return make
