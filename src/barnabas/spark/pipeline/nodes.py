"""Reads the fields of a YAML document and collects all mistakes with their lines.

Reading goes on after a mistake, so that one run reports all of them."""

import os
import re
from collections.abc import Iterator, Sequence

import yaml

from barnabas.spark.pipeline.problems import Problem, meant

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Document:
    """The problems found so far."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def wrong(self, node: yaml.Node, sentence: str) -> None:
        self.problems.append(Problem(sentence, node.start_mark.line + 1))


def text_of(document: Document, node: yaml.Node, what: str) -> str | None:
    """The text of a scalar, with ${VARIABLE} and ${VARIABLE:-default} replaced."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        document.wrong(node, f"{what} must be a text.")
        return None

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in os.environ:
            return os.environ[name]
        if default is None:
            document.wrong(
                node, f"{what} uses ${{{name}}}, which is not set; set it, or write ${{{name}:-default}}."
            )
            return ""
        return str(default)

    return _VARIABLE.sub(value, node.value)


class Fields:
    """The fields of a mapping. Unknown and repeated fields are problems."""

    def __init__(self, document: Document, node: yaml.Node, what: str, known: Sequence[str]) -> None:
        self.document = document
        self.node = node
        self.what = what
        self._left: dict[str, yaml.Node] = {}
        if not isinstance(node, yaml.MappingNode):
            document.wrong(node, f"{what} must have fields: {', '.join(known)}.")
            return
        for key, value in node.value:
            name = text_of(document, key, f"A field of {what}")
            if name is None:
                continue
            if name not in known:
                document.wrong(key, f"{what} has no field {name!r}; {meant(name, known)}")
            elif name in self._left:
                document.wrong(key, f"{name} is given twice.")
            else:
                self._left[name] = value

    def has(self, name: str) -> bool:
        return name in self._left

    def node_of(self, name: str) -> yaml.Node:
        return self._left.get(name, self.node)

    def wrong(self, name: str, sentence: str) -> None:
        self.document.wrong(self.node_of(name), sentence)

    def text(self, name: str, default: str | None = None, *, required: bool = False) -> str:
        node = self._left.get(name)
        if node is None:
            if required:
                self.document.wrong(self.node, f"{self.what} needs the field {name}.")
            return default or ""
        return text_of(self.document, node, f"{name} of {self.what}") or default or ""

    def maybe(self, name: str) -> str | None:
        return self.text(name) or None if self.has(name) else None

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        chosen = self.text(name, default)
        if chosen not in choices:
            self.wrong(name, f"{name} of {self.what} is {chosen!r}; {meant(chosen, choices)}")
            return default
        return chosen

    def flag(self, name: str, default: bool) -> bool:
        if not self.has(name):
            return default
        chosen = self.choice(name, ("true", "false"), "true" if default else "false")
        return chosen == "true"

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; a single text is a list of one."""
        node = self._left.get(name)
        if node is None:
            return ()
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        texts = [text_of(self.document, item, f"an item of {name} of {self.what}") for item in items]
        return tuple(text for text in texts if text is not None)

    def settings(self, name: str) -> dict[str, str]:
        """A mapping of any names to texts."""
        return {key: value for key, value in self._pairs(name)}

    def _pairs(self, name: str) -> Iterator[tuple[str, str]]:
        for key, node in self.items(name):
            value = text_of(self.document, node, f"{key} of {name} of {self.what}")
            if value is not None:
                yield key, value

    def items(self, name: str) -> Iterator[tuple[str, yaml.Node]]:
        """The fields of a mapping with any names."""
        node = self._left.get(name)
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode):
            self.document.wrong(node, f"{name} of {self.what} must be a mapping of names.")
            return
        for key, value in node.value:
            text = text_of(self.document, key, f"A name in {name}")
            if text is not None:
                yield text, value

    def elements(self, name: str) -> list[yaml.Node]:
        node = self._left.get(name)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.document.wrong(node, f"{name} of {self.what} must be a list.")
            return []
        return list(node.value)
