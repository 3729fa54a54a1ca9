"""Pages of the site that are not in docs/: README and the other pages of the root, and files of the code.

mkdocs calls the functions that begin with `on_`. A link to a file of the repository leads to a page that
shows the file, so that the site is complete without the repository. In pages about the code, the path of a
module, such as `log/segment.py`, is such a link too."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PACKAGE = "src/barnabas"
PAGES_OF_THE_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "how-it-works/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "how-it-works/contributing.md",
    "SECURITY.md": "reporting.md",
}
DECISIONS = "decisions"
ABOUT_DECISIONS = """\
# Decisions

Why things are as they are. Each page has one decision, its reasons, and its price.

"""
# Pages whose paths of modules become links.
ABOUT_CODE = ("how-it-works/", f"{DECISIONS}/")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh", ".toml": "toml", ".json": "json"}
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s:]+)((?:#[^)\s]*)?)\)")
MODULE = re.compile(r"(?<!\[)`([\w./-]+\.(?:py|pyx|pxd|toml))`(?!\])")


def source_of(uri: str) -> str:
    """Where the page with this address in the site is in the repository."""
    for name, page in PAGES_OF_THE_ROOT.items():
        if page == uri:
            return name
    return f"docs/{uri}"


def page_of(path: str) -> str:
    """The page of the site that shows this file or directory of the repository."""
    if path in PAGES_OF_THE_ROOT:
        return PAGES_OF_THE_ROOT[path]
    if path == f"docs/{DECISIONS}":
        return f"{DECISIONS}/index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"code/{path}.md"


def file_of(name: str) -> str | None:
    """The file that a page about the code means by a path: below src/barnabas, or below the root."""
    for path in (f"{PACKAGE}/{name}", name):
        if (ROOT / path).is_file():
            return path
    return None


def target_of(link: str, source: str) -> str:
    """The path in the repository to which a relative link in the file `source` leads."""
    return os.path.normpath(PurePosixPath(source).parent / link)


def with_links_in_the_site(markdown: str, uri: str) -> str:
    source, here = source_of(uri), str(PurePosixPath(uri).parent)

    def link(match: re.Match[str]) -> str:
        page = page_of(target_of(match[1], source))
        return f"]({os.path.relpath(page, here)}{match[2]})"

    def module(match: re.Match[str]) -> str:
        path = file_of(match[1])
        return match[0] if path is None else f"[{match[0]}]({os.path.relpath(page_of(path), here)})"

    parts = FENCE.split(markdown)
    for place in range(0, len(parts), 2):  # the parts between are blocks of code
        parts[place] = LINK.sub(link, parts[place])
        if uri.startswith(ABOUT_CODE):
            parts[place] = MODULE.sub(module, parts[place])
    return "".join(parts)


def named_paths(markdown: str, uri: str) -> Iterator[str]:
    """The files outside of docs/ to which the page leads, and directories with their files."""
    text = "".join(FENCE.split(markdown)[::2])
    paths = {target_of(match[1], source_of(uri)) for match in LINK.finditer(text)}
    if uri.startswith(ABOUT_CODE):
        paths |= {path for match in MODULE.finditer(text) if (path := file_of(match[1]))}
    for path in paths:
        if page_of(path).startswith("code/") and (ROOT / path).exists():
            yield path
            if (ROOT / path).is_dir():
                yield from (str(each.relative_to(ROOT)) for each in files_below(path))


def files_below(path: str) -> list[Path]:
    return sorted(
        each for each in (ROOT / path).rglob("*") if each.is_file() and "__pycache__" not in each.parts
    )


def shown(path: str) -> str:
    """A page that shows a file, or lists the files of a directory. The search leaves it out."""
    head = f"---\nsearch: {{exclude: true}}\nhide: [navigation]\n---\n\n# {path}\n\n"
    if (ROOT / path).is_dir():
        return head + "\n".join(
            f"- [{each.name}]({each.relative_to((ROOT / path).parent)}.md)" for each in files_below(path)
        )
    language = LANGUAGES.get(PurePosixPath(path).suffix, "text")
    return f'{head}````{{.{language} linenums="1"}}\n{(ROOT / path).read_text()}\n````\n'


def decisions() -> list[str]:
    return [f"{DECISIONS}/{path.name}" for path in sorted((ROOT / "docs" / DECISIONS).glob("*.md"))]


def list_of_decisions() -> str:
    titles = {uri: (ROOT / "docs" / uri).read_text().partition("\n")[0].lstrip("# ") for uri in decisions()}
    return ABOUT_DECISIONS + "".join(
        f"- [{title}]({PurePosixPath(uri).name})\n" for uri, title in titles.items()
    )


def on_config(config: "MkDocsConfig") -> None:
    """A new decision needs no change of the navigation."""
    for entry in config.nav or ():
        for title, pages in entry.items():
            if pages == f"{DECISIONS}/*":
                entry[title] = [f"{DECISIONS}/index.md", *decisions()]


def on_files(files: Files, config: "MkDocsConfig") -> Files:
    files.append(File.generated(config, f"{DECISIONS}/index.md", content=list_of_decisions()))
    for name, uri in PAGES_OF_THE_ROOT.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text()))
    pages = [(file.content_string, file.src_uri) for file in files.documentation_pages()]
    for path in sorted({path for markdown, uri in pages for path in named_paths(markdown, uri)}):
        files.append(File.generated(config, page_of(path), content=shown(path)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: Files) -> str:
    uri = page.file.src_uri
    return markdown if uri.startswith("code/") else with_links_in_the_site(markdown, uri)
