"""Chooses topics as Kafka's tools do: by name, by several names separated by commas, or by pattern."""

import re

from barnabas.cli.failures import ToolError
from barnabas.client.admin.types import TopicListing


class TopicFilter:
    """A pattern must match the full name. A comma means "or"; quotes and spaces around names are ignored."""

    def __init__(self, text: str) -> None:
        pattern = text.strip().replace(" ", "").strip("\"'").replace(",", "|")
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise ToolError(f"{text} is an invalid regex: {error}.") from error

    def allows(self, name: str) -> bool:
        return self._pattern.fullmatch(name) is not None


def chosen(
    listings: dict[str, TopicListing], text: str | None, *, exclude_internal: bool = False
) -> list[str]:
    """The topic names that match the text (None: all), sorted."""
    topic_filter = None if text is None else TopicFilter(text)
    return sorted(
        name
        for name, listing in listings.items()
        if (topic_filter is None or topic_filter.allows(name))
        and not (exclude_internal and listing.is_internal)
    )
