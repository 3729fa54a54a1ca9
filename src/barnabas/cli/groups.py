"""`barnabas groups`: the groups of all types, as kafka-groups prints them."""

import argparse

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.admin.types import GroupListing

DESCRIPTION = """\
List the groups of all types with their protocols. Barnabas has groups of consumers (classic and consumer)
and of Kafka Connect; share and streams groups exist only in clusters of Apache Kafka."""
EXAMPLES = """\
  barnabas groups --bootstrap-server localhost:9092 --list
  barnabas groups --bootstrap-server localhost:9092 --list --consumer
  barnabas groups --bootstrap-server localhost:9092 --list --group-type classic --protocol consumer
"""

NAMES = {"classic": "Classic", "consumer": "Consumer", "share": "Share", "streams": "Streams"}
# The least width of a column in Kafka's table.
WIDTH_MIN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    parser.add_argument("--list", action="store_true", help="list the groups")
    parser.add_argument(
        "--consumer", action="store_true", help="only groups of consumers, of either protocol"
    )
    parser.add_argument(
        "--group-type", metavar="TYPE", help="only this type: classic, consumer, share, streams"
    )
    parser.add_argument("--protocol", metavar="PROTOCOL", help="only groups with this protocol")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    if not options.list:
        raise ToolError("Command must include exactly one action: --list.")
    if options.consumer and (options.group_type is not None or options.protocol is not None):
        raise ToolError("--consumer does not go with --group-type or --protocol.")
    if options.group_type is not None and options.group_type.lower() not in NAMES:
        raise ToolError(f"--group-type must be a valid group type: {', '.join(NAMES)}.")
    with admin_of(options) as admin:
        groups = [group for group in admin.list_groups() if _is_wanted(group, options)]
    if options.json:
        print_json(
            [{"group": each.group_id, "type": _type(each), "protocol": each.protocol} for each in groups]
        )
        return 0
    width = max(WIDTH_MIN, *(len(each.group_id) for each in groups), 0)
    print(f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}")
    for each in groups:
        # As in Kafka's table, rows end with one space more than the header.
        print(f"{each.group_id:{width}} {_type(each):{width}} {each.protocol:{width}} ")
    return 0


def _is_wanted(group: GroupListing, options: argparse.Namespace) -> bool:
    if options.consumer:
        return group.is_of_consumers
    if options.group_type is not None and group.type != options.group_type.lower():
        return False
    return options.protocol is None or group.protocol == options.protocol


def _type(group: GroupListing) -> str:
    return NAMES.get(group.type, group.type)
