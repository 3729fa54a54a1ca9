"""`barnabas transactions`: list and describe transactions, find hanging ones, end them."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import cast

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
The transactions of producers: which are open, who opened them and to which partitions they wrote. Also finds
and ends hanging transactions, which no coordinator will end."""
EXAMPLES = """\
  barnabas transactions --bootstrap-server localhost:9092 list
  barnabas transactions --bootstrap-server localhost:9092 describe --transactional-id billing-1
  barnabas transactions --bootstrap-server localhost:9092 describe-producers --topic orders --partition 0
  barnabas transactions --bootstrap-server localhost:9092 find-hanging --broker-id 1
  barnabas transactions --bootstrap-server localhost:9092 abort --topic orders --partition 0 --start-offset 42
  barnabas transactions --bootstrap-server localhost:9092 force-terminate --transactional-id billing-1
"""

Verb = Callable[[argparse.Namespace], int]
_Add = Callable[..., argparse.Action]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # The address may be before the verb, as Kafka requires, or after it, as many people write it.
    add_connection(parser, server_group=parser.add_mutually_exclusive_group())
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, prog=parser.prog)

    def verb(name: str, does: str, help: str, aliases: tuple[str, ...] = ()) -> _Add:
        sentence = f"{help[0].upper()}{help[1:]}."
        added = verbs.add_parser(name, help=help, description=sentence, aliases=aliases)
        added.set_defaults(does=does)
        added.add_argument(
            "--bootstrap-server", default=argparse.SUPPRESS, metavar="HOST:PORT", help=argparse.SUPPRESS
        )
        return added.add_argument

    listing = verb("list", "describing.list_all", "list transactional ids and their states")
    listing(
        "--duration-filter",
        type=int,
        default=-1,
        metavar="MS",
        help="only transactions that have been open for longer than this",
    )
    listing("--transactional-id-pattern", metavar="REGEX", help="only ids that match")
    describing = verb("describe", "describing.describe", "describe the transaction of a transactional id")
    describing("--transactional-id", required=True, metavar="ID")
    producers = verb(
        "describe-producers", "describing.describe_producers", "describe the producers of a partition"
    )
    _add_partition(producers)
    producers("--broker-id", type=int, metavar="N", help="ask the replica on this broker, not the leader")
    for add in (listing, describing, producers, _add_hanging(verb)):
        add("--json", action="store_true", help="print JSON instead of a table")
    _add_ending(verb)


def _add_partition(add: _Add) -> None:
    add("--topic", required=True)
    add("--partition", type=int, required=True, metavar="N")


def _add_hanging(verb: Callable[..., _Add]) -> _Add:
    hanging = verb("find-hanging", "hanging.find", "find transactions that no coordinator will end")
    hanging("--broker-id", type=int, metavar="N", help="search the partitions of this broker")
    hanging("--topic", help="search this topic")
    hanging("--partition", type=int, metavar="N", help="search this partition of the topic only")
    hanging(
        "--max-transaction-timeout",
        type=int,
        default=15,
        metavar="MINUTES",
        help="only a transaction that has been open for longer than this can be hanging (15)",
    )
    return hanging


def _add_ending(verb: Callable[..., _Add]) -> None:
    abort = verb("abort", "ending.abort", "abort a transaction that hangs in a partition")
    _add_partition(abort)
    abort("--start-offset", type=int, metavar="N", help="the start of the transaction, from find-hanging")
    abort("--producer-id", type=int, metavar="N", help="for brokers before 3.0, with the next two")
    abort("--producer-epoch", type=int, metavar="N")
    abort("--coordinator-epoch", type=int, metavar="N")
    terminate = verb(
        "force-terminate",
        "ending.force_terminate",
        "abort the open transaction of a transactional id and fence its producer",
        ("forceTerminateTransaction",),
    )
    terminate("--transactional-id", "--transactionalId", dest="transactional_id", required=True, metavar="ID")


def run(options: argparse.Namespace) -> int:
    if options.bootstrap_server is None:
        raise ToolError("The following arguments are required: --bootstrap-server.")
    module, _, name = options.does.partition(".")
    does = cast(Verb, getattr(import_module(f"barnabas.cli.transactions.{module}"), name))
    return does(options)
