"""`barnabas broker-api-versions`: which APIs each broker supports, and which of their versions we use."""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import print_errors, results_and_errors
from barnabas.cli.output import print_json
from barnabas.client.admin import ApiVersionsDescription
from barnabas.client.types import Node
from barnabas.wire.messages import NAMES, VERSIONS

DESCRIPTION = (
    "Print the APIs that each broker supports, their versions, and the version that this client uses."
)
EXAMPLES = """\
  barnabas broker-api-versions --bootstrap-server localhost:9092
  barnabas broker-api-versions --bootstrap-server localhost:9092 --json | jq '.[].apis[].name'
"""

# APIs between brokers and controllers: they are not printed as UNSUPPORTED, since clients do not use them.
BETWEEN_SERVERS = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})


class Line(NamedTuple):
    """One API: the broker's versions and the one we would use; None if there is none."""

    key: int
    name: str
    versions: tuple[int, int] | None
    usable: int | None = None
    problem: str = ""

    def __str__(self) -> str:
        start = f"{self.name}({self.key}): "
        if self.versions is None:
            return start + "UNSUPPORTED"
        first, last = self.versions
        start += str(first) if first == last else f"{first} to {last}"
        if self.problem:
            return f"{start} [unusable: {self.problem}]"
        return start if self.usable is None else f"{start} [usable: {self.usable}]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        described, errors = results_and_errors(lambda: admin.api_versions())
        nodes = {node.id: node for node in admin.describe_cluster().nodes}
    if options.json:
        print_json([_as_json(described[broker]) for broker in sorted(described)])
        return print_errors({f"broker {broker}": error for broker, error in errors.items()})
    for broker in sorted(described):
        rows = ",\n\t".join(map(str, lines(described[broker].versions)))
        print(f"{_named(described[broker].node)} -> (\n\t{rows}\n)")
    for broker, error in errors.items():
        print(f"{_named(nodes.get(broker, Node(broker, '', -1)))} -> ERROR: {error.message}")
    return 1 if errors else 0


def _named(node: Node) -> str:
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: false)"


def lines(versions: Mapping[int, tuple[int, int]]) -> list[Line]:
    """All APIs that a broker supports, and those that only clients know, by key."""
    keys = {*versions, *(key for key in NAMES if key not in BETWEEN_SERVERS)}
    return [_line(key, versions.get(key)) for key in sorted(keys)]


def _line(key: int, theirs: tuple[int, int] | None) -> Line:
    ours, name = VERSIONS.get(key), NAMES.get(key, "UNKNOWN")
    if ours is None or theirs is None:
        return Line(key, name, theirs)
    first, last = ours
    if last < theirs[0]:
        return Line(key, name, theirs, problem="node too new")
    if theirs[1] < first:
        return Line(key, name, theirs, problem="node too old")
    return Line(key, name, theirs, min(last, theirs[1]))


def _as_json(described: ApiVersionsDescription) -> dict[str, Any]:
    node = described.node
    return {
        "broker": {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack},
        "apis": [
            {
                "key": line.key,
                "name": line.name,
                "minVersion": None if line.versions is None else line.versions[0],
                "maxVersion": None if line.versions is None else line.versions[1],
                "usableVersion": line.usable,
            }
            for line in lines(described.versions)
        ],
        "supportedFeatures": {
            name: {"minVersion": first, "maxVersion": last}
            for name, (first, last) in described.supported_features.items()
        },
        "finalizedFeatures": dict(described.finalized_features),
    }
