"""Masks: parts of messages that the console hides before anything leaves it, or is compared with a filter.

    orders:$.card.number      a field of JSON or Avro values; orders* is every topic that begins with orders
    orders:$..card            fields with this name at any depth
    orders:key                the key
    orders:headers.token      a header

Where a topic has masks for its values, a value that is neither JSON nor Avro of the registry is hidden as a
whole: the console cannot know where in it the field is."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from barnabas.console.json_paths import JsonPath

MASKED = "***"
KEY = "key"
HEADERS = "headers."


class TopicMasks:
    """What is hidden in one topic."""

    def __init__(self, targets: Iterable[str]) -> None:
        named = list(targets)
        self.hides_key = KEY in named
        self._headers = {each.removeprefix(HEADERS).lower() for each in named if each.startswith(HEADERS)}
        self._paths = [JsonPath(each) for each in named if each.startswith("$")]

    @property
    def has_paths(self) -> bool:
        return bool(self._paths)

    def hides_header(self, name: str) -> bool:
        return name.lower() in self._headers

    def masked(self, value: Any) -> Any:
        """A decoded value without what is hidden; it may be changed in place."""
        for path in self._paths:
            value = path.replace(value, MASKED)
        return value


NOTHING = TopicMasks(())


class Masks:
    def __init__(self, rules: Iterable[str]) -> None:
        self._rules = [_parsed(rule) for rule in rules]

    def of(self, topic: str) -> TopicMasks:
        targets = [target for pattern, target in self._rules if fnmatchcase(topic, pattern)]
        return TopicMasks(targets) if targets else NOTHING


def _parsed(rule: str) -> tuple[str, str]:
    pattern, colon, target = rule.partition(":")
    is_known = target == KEY or target.startswith("$") or target.removeprefix(HEADERS) not in ("", target)
    if not pattern or not colon or not is_known:
        raise ValueError(
            f"--mask {rule!r} must be TOPIC:PATH, such as 'orders:$.card', 'orders:key' "
            "or 'orders:headers.token'."
        )
    if target.startswith("$"):
        JsonPath(target)
    return pattern, target
