"""`barnabas storage`: ids and data directories before the first start, as kafka-storage.

A broker formats its directories itself at its first start. Formatting them before lets an operator choose
the id of the cluster."""

import argparse
from pathlib import Path

from barnabas.broker.startup import broker_config
from barnabas.cli.failures import ToolError
from barnabas.config.values import BrokerConfig
from barnabas.ids import random_uuid, uuid_to_string
from barnabas.log.checkpoints import MetaProperties, read_meta_properties, write_meta_properties
from barnabas.log.disk import RealDisk

DESCRIPTION = """\
Prepare the data directories of a broker. This is not needed: a broker formats its directories at its first
start, with a random cluster id. `format` gives them an id of your choice; those of a cluster that uses
ZooKeeper must have the id that is in ZooKeeper, so leave them to the start."""
EXAMPLES = """\
  barnabas storage random-uuid
  barnabas storage format --standalone -t 5L6g3nShT-eMCtK--X86sw -c server.properties
  barnabas storage info -c server.properties
"""

ACTIONS = ("info", "format", "version-mapping", "feature-dependencies", "random-uuid")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("--config", "-c", type=Path, metavar="FILE", help="a server.properties file")
    parser.add_argument("--cluster-id", "-t", metavar="ID", help="format: the id of the cluster")
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="format: skip directories that are formatted"
    )
    parser.add_argument(
        "--add-scram", "-S", action="append", default=[], metavar="CREDENTIAL", help="format: a first user"
    )
    # There is no quorum of controllers, and there are no versions of metadata: all of these mean the same
    # here.
    for name, short in (("--standalone", "-s"), ("--no-initial-controllers", "-N")):
        parser.add_argument(name, short, action="store_true", help="accepted, as in Kafka")
    for name, short in (("--initial-controllers", "-I"), ("--release-version", "-r")):
        parser.add_argument(name, short, metavar="VALUE", help="accepted, as in Kafka")
    parser.add_argument(
        "--feature", "-f", action="append", metavar="NAME=LEVEL", help="accepted, as in Kafka"
    )


def run(options: argparse.Namespace) -> int:
    if options.action == "random-uuid":
        print(uuid_to_string(random_uuid()))
        return 0
    if options.action in ("version-mapping", "feature-dependencies"):
        raise ToolError(
            "There are no versions of metadata here: `barnabas features describe` shows the features."
        )
    if options.config is None:
        raise ToolError("Name the file with the settings of the broker: --config server.properties.")
    config = broker_config(options.config)
    return _info(config) if options.action == "info" else _format(config, options)


def _directories(config: BrokerConfig) -> dict[Path, MetaProperties | None]:
    """What each data directory says about itself; None if it is not formatted."""
    try:
        return {Path(each): read_meta_properties(RealDisk(), Path(each)) for each in config.log_dirs}
    except ValueError as error:
        raise ToolError(str(error)) from error


def _info(config: BrokerConfig) -> int:
    found = _directories(config)
    formatted = {path: meta for path, meta in found.items() if meta is not None}
    problems = [
        f"{path} {'is not formatted.' if path.is_dir() else 'does not exist'}"
        for path in found
        if path not in formatted
    ]
    ids = {meta.cluster_id for meta in formatted.values()}
    if len(ids) > 1:
        problems.append(f"The directories belong to different clusters: {', '.join(sorted(ids))}.")
    if formatted:
        print(f"Found log director{'ies' if len(formatted) > 1 else 'y'}:")
        print("".join(f"  {path}\n" for path in formatted))
        meta = next(iter(formatted.values()))
        directory_id = uuid_to_string(meta.directory_id)
        print(
            f"Found metadata: {{cluster.id={meta.cluster_id}, directory.id={directory_id}, "
            f"node.id={meta.node_id}, version=1}}\n"
        )
    if problems:
        print(f"Found problem{'s' if len(problems) > 1 else ''}:")
        print("".join(f"  {problem}\n" for problem in problems))
    return 1 if problems else 0


def _format(config: BrokerConfig, options: argparse.Namespace) -> int:
    if options.cluster_id is None:
        raise ToolError("Name the cluster with -t ID; `barnabas storage random-uuid` prints a new id.")
    if config["zookeeper.connect"] is not None:
        raise ToolError(
            "The id of a cluster with ZooKeeper is in ZooKeeper: start the broker, which formats its "
            "directories."
        )
    found = _directories(config)
    formatted = [str(path) for path, meta in found.items() if meta is not None]
    if formatted and not options.ignore_formatted:
        raise ToolError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this "
            "directory "
            "and format the others."
        )
    if len(formatted) == len(found):
        print("All of the log directories are already formatted.")
        return 0
    for path, meta in found.items():
        if meta is None:
            path.mkdir(parents=True, exist_ok=True)
            write_meta_properties(
                RealDisk(), path, MetaProperties(options.cluster_id, config.node_id, random_uuid())
            )
            print(
                f"Formatting directory {path} with cluster id {options.cluster_id} for node {config.node_id}."
            )
    return _add_users(config, options) if options.add_scram else 0


def _add_users(config: BrokerConfig, options: argparse.Namespace) -> int:
    from barnabas.cli.metadata_scram import add_scram

    options.zookeeper, options.data_dir = None, Path(config.log_dirs[0])
    return add_scram(options)
