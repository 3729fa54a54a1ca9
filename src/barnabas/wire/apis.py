"""The APIs by key: their message classes, versions and header rules, loaded when they are first used."""

from functools import cache
from importlib import import_module
from typing import NamedTuple

from barnabas.wire.message import Message
from barnabas.wire.messages import MODULES

API_VERSIONS_KEY = 18


class Api(NamedTuple):
    key: int
    name: str
    request: type[Message]
    response: type[Message]
    first: int
    last: int
    flexible_from: int

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    def has_flexible_response_header(self, version: int) -> bool:
        """ApiVersions is always answered with the oldest header: the client does not know our version yet."""
        return version >= self.flexible_from and self.key != API_VERSIONS_KEY


@cache
def api_of(key: int) -> Api | None:
    """The API with that key, or None if we have no messages for it."""
    name = MODULES.get(key)
    if name is None:
        return None
    module = import_module(f"barnabas.wire.messages.{name}")
    first, last = module.VERSIONS
    return Api(key, name, module.REQUEST, module.RESPONSE, first, last, module.FLEXIBLE_FROM)
