"""What a route is. Dispatch, the rules about login, read-only mode and tokens, and OpenAPI all follow from
it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from barnabas.console.failures import bad_request
from barnabas.console.shapes import Choice, Flag, Shape, Text, Whole

if TYPE_CHECKING:
    from barnabas.console.calls import Call

Handler = Callable[["Call"], Awaitable[Any]]
"""Returns what is answered as JSON, or a response of Starlette."""

PAGE_SIZE_MAX = 500
LIST_QUERY: dict[str, Shape] = {
    "search": Text("only items whose name has this text", default=""),
    "page": Whole("the page, from 1", default=1, least=1, most=1_000_000),
    "size": Whole("items on a page", default=50, least=1, most=PAGE_SIZE_MAX),
    "sort": Text("the field to sort by", default=""),
    "order": Choice("asc", "desc", default="asc"),
}
PREVIEW = {"preview": Flag("change nothing, and answer what would be changed")}


@dataclass(frozen=True)
class Route:
    """`{name}` in the path is one segment; it may have any characters, percent-encoded."""

    method: str
    path: str
    handler: Handler
    summary: str
    query: Mapping[str, Shape] = field(default_factory=dict)
    body: Mapping[str, Shape] | None = None
    needs_login: bool = True
    # For a POST that changes nothing in the cluster.
    is_harmless: bool = False

    @property
    def is_safe(self) -> bool:
        """Whether it needs no token: it can be called from anywhere without an effect."""
        return self.method == "GET"

    @property
    def changes(self) -> bool:
        """Whether read-only mode refuses it."""
        return not self.is_safe and not self.is_harmless

    @property
    def tag(self) -> str:
        return self.segments[-1 if len(self.segments) == 1 else 1].partition(".")[0]

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))

    @cached_property
    def all_query(self) -> dict[str, Shape]:
        return {**self.query, **(PREVIEW if self.changes else {})}

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        """The values of the path's parameters; None if it is another path."""
        if len(segments) != len(self.segments):
            return None
        values = {}
        for pattern, given in zip(self.segments, segments, strict=True):
            if pattern.startswith("{"):
                values[pattern[1:-1]] = given
            elif pattern != given:
                return None
        return values


class Table:
    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]] | None:
        """The route and its parameters. HEAD is answered as GET."""
        segments = path_segments(raw_path)
        for route in self.routes:
            if route.method == ("GET" if method == "HEAD" else method):
                values = route.match(segments)
                if values is not None:
                    return route, values
        return None

    def methods(self, raw_path: str) -> list[str]:
        segments = path_segments(raw_path)
        return sorted({route.method for route in self.routes if route.match(segments) is not None})


def path_segments(raw_path: str) -> tuple[str, ...]:
    """The parts of a path. They are split before they are decoded: names of groups may have slashes in
    them."""
    try:
        return tuple(unquote(part, errors="strict") for part in raw_path.strip("/").split("/"))
    except UnicodeDecodeError:
        raise bad_request("The path is not valid UTF-8.") from None
