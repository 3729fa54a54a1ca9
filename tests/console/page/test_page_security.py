"""The login, and the pages for ACLs, users and quotas, on a broker that `--secure` has started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect
from tests.console.page.conftest import ConsoleProcess, Visit, running_console
from tests.security.test_secure_start import started

from barnabas.cli.secure import ADMIN, SecureFiles


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secured") / "data"


@pytest.fixture(scope="module")
def secured(data_dir: Path) -> Iterator[ConsoleProcess]:
    """A console without a user of its own, for brokers that ask for one."""
    with started(data_dir, "start") as bootstrap:
        settings = SecureFiles(data_dir).client_settings()
        del settings["sasl.jaas.config"]
        properties = data_dir.parent / "console.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with running_console(bootstrap, data_dir.parent, "--command-config", str(properties)) as console:
            yield console


@pytest.fixture
def password(data_dir: Path) -> str:
    return SecureFiles(data_dir).client_settings()["sasl.jaas.config"].split('password="')[1].split('"')[0]


def log_in(visit: Visit, password: str) -> None:
    visit.page.get_by_label("User", exact=True).fill(ADMIN)
    visit.page.get_by_label("Password", exact=True).fill(password)
    visit.button("Log in").click()


@pytest.fixture
def visit(context: BrowserContext, secured: ConsoleProcess, password: str) -> Iterator[Visit]:
    """The console after a login."""
    visit = Visit(context, secured.url)
    visit.open("/")
    log_in(visit, password)
    expect(visit.page.locator("main h1")).to_have_text("Overview")
    yield visit
    visit.check()


def test_login_comes_first_and_leads_to_the_address(
    context: BrowserContext, secured: ConsoleProcess, password: str
) -> None:
    visit = Visit(context, secured.url)
    visit.expects_failures = True
    visit.open("/topics?search=x")
    expect(visit.page.locator("main h1")).to_have_text("Log in")
    log_in(visit, "wrong")
    visit.sees(visit.page.locator(".login").get_by_role("alert"), "does not accept")
    expect(visit.page.get_by_label("Password", exact=True)).to_have_value("")
    log_in(visit, password)
    expect(visit.page.locator("main h1")).to_have_text("Topics")
    expect(visit.page.get_by_role("searchbox")).to_have_value("x")
    visit.sees(visit.page.locator(".account"), ADMIN)
    # Scripts cannot read the cookie.
    assert visit.page.evaluate("document.cookie") == ""
    visit.button("Log out").click()
    expect(visit.page.locator("main h1")).to_have_text("Log in")
    visit.page.reload()
    expect(visit.page.locator("main h1")).to_have_text("Log in")
    visit.check()


def row_with(visit: Visit, table: str, text: str) -> Locator:
    return visit.table(table).locator("tbody tr", has_text=text)


def test_acls_are_added_and_removed(visit: Visit) -> None:
    visit.open("/acls")
    dialog = visit.act("Add ACL")
    dialog.get_by_label("Principal").fill("User:alice")
    dialog.get_by_label("Name", exact=True).fill("orders")
    dialog.get_by_label("Operation").select_option("WRITE")
    command = visit.finish(dialog, "Add")
    assert "acls" in command
    assert "User:alice" in command
    row = row_with(visit, "ACLs", "User:alice")
    visit.sees(row, "write")
    visit.sees(row, "orders")
    row.get_by_role("button", name="Remove").click()
    dialog = visit.page.locator("dialog")
    dialog.get_by_label("Type the name").fill("User:alice")
    assert "--remove" in visit.finish(dialog, "Remove")
    expect(row).to_have_count(0)


def test_users_are_added_and_deleted(visit: Visit) -> None:
    visit.open("/users")
    dialog = visit.act("Add user")
    dialog.get_by_label("User", exact=True).fill("bob")
    dialog.get_by_label("Password").fill("a secret of bob")
    command = visit.finish(dialog, "Set")
    assert "a secret of bob" not in command
    row = row_with(visit, "Users", "bob")
    visit.sees(row, "SCRAM-SHA-512")
    row.get_by_role("button", name="Delete").click()
    dialog = visit.page.locator("dialog")
    dialog.get_by_label("Type the name").fill("bob")
    visit.finish(dialog, "Delete")
    expect(row).to_have_count(0)


def test_quotas_are_set_and_removed(visit: Visit) -> None:
    visit.open("/quotas")
    dialog = visit.act("Set quota")
    dialog.get_by_label("user", exact=True).fill("carol")
    dialog.get_by_label("producer byte rate").fill("2048")
    assert "producer_byte_rate=2048" in visit.finish(dialog, "Set")
    row = row_with(visit, "Quotas", "carol")
    visit.sees(row, "2048")
    row.get_by_role("button", name="Change").click()
    dialog = visit.page.locator("dialog")
    dialog.get_by_label("producer byte rate").fill("")
    visit.finish(dialog, "Set")
    expect(row).to_have_count(0)
