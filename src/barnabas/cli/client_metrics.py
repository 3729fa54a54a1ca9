"""`barnabas client-metrics`: subscriptions to the metrics of clients (KIP-714), as kafka-client-metrics."""

import argparse
import sys

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.client.admin.types import AlterConfigOp, ConfigOperation, ConfigResource, ConfigResourceType
from barnabas.client.errors import KafkaError
from barnabas.ids import random_uuid, uuid_to_string

DESCRIPTION = """\
Subscriptions to the metrics of clients. Barnabas does not collect metrics of clients: --list prints nothing,
and changes are refused. Clients of ours have their own metrics (docs/clients.md)."""
EXAMPLES = """\
  barnabas client-metrics --bootstrap-server localhost:9092 --list
  barnabas client-metrics --bootstrap-server localhost:9092 --describe
"""
ACTIONS = ("alter", "delete", "describe", "list")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    for name in ACTIONS:
        parser.add_argument(f"--{name}", action="store_true", help=f"{name} subscriptions")
    parser.add_argument("--name", help="the name of a subscription")
    parser.add_argument("--generate-name", action="store_true", help="alter: a new name")
    parser.add_argument("--interval", type=int, metavar="MS", help="alter: how often clients send")
    parser.add_argument("--match", metavar="K=V,...", help="alter: which clients send")
    parser.add_argument("--metrics", metavar="PREFIX,...", help="alter: which metrics they send")


def run(options: argparse.Namespace) -> int:
    chosen = [name for name in ACTIONS if getattr(options, name)]
    if len(chosen) != 1:
        raise ToolError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if options.alter and (options.name is not None) == options.generate_name:
        raise ToolError("One of --name or --generate-name must be specified with --alter.")
    if options.delete and options.name is None:
        raise ToolError("A client metrics resource name must be specified with --delete.")
    try:
        if options.alter or options.delete:
            return _change(options)
        return _show(options)
    except KafkaError as error:
        raise ToolError(f"Error while executing client metrics command : {error.message}") from error


def _show(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        listed = admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
        names = sorted(resource.name for resource in listed)
        if options.list:
            print("\n".join(names))
            if not names:
                print("There are no subscriptions: Barnabas has none, Kafka may have some.", file=sys.stderr)
            return 0
        for name in names if options.name is None else [options.name]:
            resource = _resource(name)
            print(f"Client metrics configs for {name} are:")
            for key, entry in admin.describe_configs([resource])[resource].items():
                print(f"  {key}={entry.value}")
    return 0


def _change(options: argparse.Namespace) -> int:
    name = uuid_to_string(random_uuid()) if options.generate_name else options.name
    resource = _resource(name)
    with admin_of(options) as admin:
        if options.delete:
            current = admin.describe_configs([resource])[resource]
            changes = [AlterConfigOp(key, None, ConfigOperation.DELETE) for key in current]
        else:
            given = {"interval.ms": options.interval, "metrics": options.metrics, "match": options.match}
            changes = [_setting(key, value) for key, value in given.items() if value is not None]
        admin.incremental_alter_configs({resource: changes})
    print(f"{'Deleted' if options.delete else 'Altered'} client metrics config for {name}.")
    return 0


def _setting(key: str, value: object) -> AlterConfigOp:
    text = str(value)
    return AlterConfigOp(key, text, ConfigOperation.SET if text else ConfigOperation.DELETE)


def _resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
