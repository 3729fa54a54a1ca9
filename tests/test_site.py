"""The site of the documents: it is built without warnings, needs no other host, and has every public name."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tools.pictures.drawings import DRAWINGS
from tools.write_client_setting_docs import TARGET, document

import barnabas
import barnabas.testing

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# What a browser loads by itself, by tag; links that readers may follow are not among them.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loads(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "prev", "next"):
            return
        if address := values.get(LOADED.get(tag, "")):
            self.found.append(address)


def pages_of(site: Path) -> list[Path]:
    """All pages but those that only show a file: they are many, and have the same frame."""
    return [page for page in site.rglob("*.html") if page.relative_to(site).parts[0] != "code"]


def loads_of_other_hosts(site: Path) -> Iterator[str]:
    for page in pages_of(site):
        loads = Loads()
        loads.feed(page.read_text())
        yield from (f"{page.name}: {address}" for address in loads.found if "//" in address)
    for sheet in site.rglob("*.css"):
        yield from re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//[^)]*", sheet.read_text())


def test_the_site_is_complete_without_other_hosts(site: Path) -> None:
    assert list(loads_of_other_hosts(site)) == []
    assert "Tutorial" in (site / "search" / "search_index.json").read_text()
    # Material would load Mermaid from another host for such diagrams.
    assert not any('class="mermaid"' in page.read_text() for page in pages_of(site))


def test_a_link_to_the_code_leads_to_a_page_that_shows_it(site: Path) -> None:
    assert (
        'href="../code/src/barnabas/log/retention.py.html"'
        in (site / "how-it-works" / "log.html").read_text()
    )
    assert "_delete_by_age" in (site / "code" / "src" / "barnabas" / "log" / "retention.py.html").read_text()


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    public = [f"barnabas.{name}" for name in barnabas.__all__ if name != "__version__"]
    public += [f"barnabas.testing.{name}" for name in barnabas.testing.__all__]
    assert sorted(set(public) - set(shown)) == []
    assert len(shown) == len(set(shown))


def test_the_settings_of_the_clients_are_those_of_the_tables() -> None:
    assert TARGET.read_text() == document(), "run `make docs`"


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_what_its_drawing_makes(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.svg").read_text() == DRAWINGS[name](), "run `make docs`"
