"""One request of the API, as its handler sees it: checked values, the clients to use, and helpers for
answers."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from barnabas.client.schema_registry import Registry
from barnabas.console.answers import Streams
from barnabas.console.failures import ApiError
from barnabas.console.sessions import Session, Sessions
from barnabas.console.settings import ConsoleSettings
from barnabas.console.workspace import Workspace

if TYPE_CHECKING:
    from barnabas.console.pipelines import Pipelines

Item = dict[str, Any]


@dataclass
class Call:
    """`workspace` is missing only in routes that need no login."""

    request: Request
    settings: ConsoleSettings
    sessions: Sessions
    visitor: str
    session: Session | None
    shared: Workspace | None
    registry: Registry | None
    pipelines: "Pipelines"
    streams: Streams
    path: dict[str, str]
    query: dict[str, Any]
    body: dict[str, Any]

    @property
    def workspace(self) -> Workspace:
        if self.session is not None:
            return self.session.workspace
        if self.shared is None:
            raise ApiError(401, "LOGIN_REQUIRED", "Log in with a user of the cluster first.")
        return self.shared

    @property
    def is_preview(self) -> bool:
        return bool(self.query.get("preview"))

    def command(self, tool: str, *arguments: str) -> str:
        """The equivalent command line, for a shell."""
        words = ["barnabas", tool, "--bootstrap-server", self.settings.bootstrap]
        if self.settings.is_secured:
            words += ["--command-config", "client.properties"]
        return shlex.join([*words, *arguments])

    def check_confirmed(self, name: str) -> None:
        """What cannot be undone needs the name of the thing in the request."""
        if not self.is_preview and self.body.get("confirm") != name:
            raise ApiError(
                400, "NOT_CONFIRMED", f"This cannot be undone: repeat the name {name!r} in `confirm`."
            )

    def page_of(
        self, items: Iterable[Item], *, stale_since_ms: int | None = None, name: str = "name"
    ) -> Item:
        """The requested page of the items that match the search."""
        query = self.query
        search = query["search"].lower()
        found = [item for item in items if search in str(item[name]).lower()]
        key = query["sort"] or name
        if found and key not in found[0]:
            raise ApiError(400, "INVALID_REQUEST", f"There is no field {key[:50]!r} to sort by.")
        found.sort(key=itemgetter(name))
        found.sort(key=_sortable(key), reverse=query["order"] == "desc")
        first = (query["page"] - 1) * query["size"]
        return {
            "items": found[first : first + query["size"]],
            "total": len(found),
            "page": query["page"],
            "size": query["size"],
            "stale_since_ms": stale_since_ms,
        }


def _sortable(key: str) -> Callable[[Item], Any]:
    """Unknown values come before all others; values of different kinds are compared as texts."""

    def of(item: Item) -> tuple[bool, bool, Any]:
        value = item[key]
        if isinstance(value, bool | int | float):
            return True, False, value
        return value is not None, True, "" if value is None else str(value)

    return of
