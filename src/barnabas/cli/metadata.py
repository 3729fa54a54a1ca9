"""`barnabas metadata dump`: the metadata log or its image, from ZooKeeper or from a data directory.
`barnabas metadata add-scram` is in metadata_scram.py."""

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from barnabas.cli import metadata_scram
from barnabas.cli.failures import ToolError
from barnabas.cli.output import columns, print_json
from barnabas.config.broker import is_secret
from barnabas.ids import uuid_to_string
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BROKER_RESOURCE
from barnabas.metadata.records import ConfigRecord, MetadataRecord, ScramCredentialRecord, record_to_json
from barnabas.metadata.replaying import image_of
from barnabas.metadata.store import Snapshot, StoreError, Update

DESCRIPTION = """\
Print the metadata of a cluster (--zookeeper) or of a broker that runs alone (--data-dir): the current state,
or with --log the log that led to it. Nothing is changed, and the brokers may run.
`add-scram` stores SCRAM credentials for the first start, while no broker runs."""
EXAMPLES = """\
  barnabas metadata dump --zookeeper localhost:2181/kafka
  barnabas metadata dump --data-dir ./data --log
  barnabas metadata dump --data-dir ./data --json
  barnabas metadata add-scram --data-dir ./data --add-scram 'SCRAM-SHA-256=[name=admin,password=admin-secret]'
  barnabas metadata add-scram --zookeeper localhost:2181/kafka --config server.properties --add-scram -
"""
HIDDEN = "(hidden)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", choices=["dump", "add-scram"], help="what to do")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--zookeeper", metavar="HOST:PORT/CHROOT", help="zookeeper.connect of the cluster")
    source.add_argument("--data-dir", type=Path, metavar="DIR", help="the first directory of log.dirs")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="a broker's properties, if ZooKeeper is protected, or for password.encoder.secret",
    )
    parser.add_argument("--log", action="store_true", help="print the log instead of the current state")
    parser.add_argument("--json", action="store_true", help="print JSON")
    metadata_scram.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    if options.command == "add-scram":
        return metadata_scram.add_scram(options)
    if options.add_scram:
        raise ToolError("--add-scram can only be used with add-scram.")
    try:
        if options.zookeeper is not None:
            cluster_id, updates = _from_zookeeper(options.zookeeper, options.config)
        else:
            cluster_id, updates = _from_directory(options.data_dir)
    except StoreError as error:
        raise ToolError(f"{error}.") from error
    if options.log:
        print_log(updates, as_json=options.json)
    else:
        print_image(image_of(cluster_id, updates), as_json=options.json)
    return 0


def _from_zookeeper(connect: str, properties_file: Path | None) -> tuple[str, Sequence[Update]]:
    # Imported late: a dump of a directory does not need kazoo.
    from barnabas.cli.zookeeper_access import settings_of
    from barnabas.metadata.zookeeper.inspecting import read_metadata

    return asyncio.run(read_metadata(settings_of(connect, properties_file)))


def _from_directory(data_dir: Path) -> tuple[str, Sequence[Update]]:
    """Read the file without its lock: the broker may run. A change that is being written is left out."""
    from barnabas.metadata.embedded import DIRECTORY_NAME
    from barnabas.metadata.files import RealFiles
    from barnabas.metadata.frames import parse
    from barnabas.metadata.logfile import LOG_NAME
    from barnabas.metadata.opening import read_membership

    directory = data_dir / DIRECTORY_NAME
    membership = read_membership(RealFiles(), directory)
    if membership is not None:
        raise ToolError(
            f"The broker of {data_dir} belongs to a cluster: use --zookeeper {membership.zookeeper}."
        )
    path = directory / LOG_NAME
    if not path.exists():
        raise ToolError(f"There is no metadata in {data_dir}: {path} does not exist.")
    contents = parse(path.read_bytes())
    updates: list[Update] = [] if contents.snapshot is None else [contents.snapshot]
    updates += [batch for _, batch in contents.batches]
    return contents.header.cluster_id, updates


def print_log(updates: Sequence[Update], *, as_json: bool) -> None:
    if as_json:
        print_json([_update_json(update) for update in updates])
        return
    for update in updates:
        if isinstance(update, Snapshot):
            print(f"snapshot of the records below offset {update.end_offset}:")
            for record in without_secrets(update.records):
                print(f"  {_line(record)}")
        else:
            for offset, record in enumerate(without_secrets(update.records), update.offset):
                print(f"{offset}: {_line(record)}")


def _update_json(update: Update) -> dict[str, object]:
    records = [record_to_json(record) for record in without_secrets(update.records)]
    if isinstance(update, Snapshot):
        return {"snapshot_end_offset": update.end_offset, "records": records}
    return {"offset": update.offset, "records": records}


def _line(record: MetadataRecord) -> str:
    fields = record_to_json(record)
    name = fields.pop("type")
    fields.pop("version", None)
    return f"{name} " + " ".join(f"{key}={value}" for key, value in fields.items())


def without_secrets(records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    return [_without_secret(record) for record in records]


def _without_secret(record: MetadataRecord) -> MetadataRecord:
    if isinstance(record, ConfigRecord) and _is_secret(record):
        return replace(record, value=HIDDEN)
    if isinstance(record, ScramCredentialRecord) and record.credential is not None:
        return replace(record, credential=HIDDEN)
    return record


def _is_secret(record: ConfigRecord) -> bool:
    is_broker = record.resource_type == BROKER_RESOURCE
    return is_broker and record.value is not None and is_secret(record.key)


def print_image(image: MetadataImage, *, as_json: bool) -> None:
    if as_json:
        records = [record_to_json(record) for record in without_secrets(image.records())]
        print_json({"cluster_id": image.cluster_id, "offset": image.offset, "records": records})
        return
    print(f"cluster {image.cluster_id}, metadata offset {image.offset}")
    print(f"controller {image.controller_id}, next producer id {image.next_producer_id}")
    _print_section(("BROKER", "EPOCH", "STATE", "RACK", "LISTENERS"), _broker_rows(image))
    _print_section(("TOPIC", "ID", "PARTITIONS"), _topic_rows(image))
    headers = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "ADDING", "REMOVING")
    _print_section(headers, _partition_rows(image))
    _print_section(("RESOURCE", "NAME", "KEY", "VALUE"), _config_rows(image))
    _print_section(("FEATURE", "LEVEL"), list(image.features.items()))


def _print_section(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        print(f"\n{columns(headers, rows)}")


def _broker_rows(image: MetadataImage) -> list[tuple[object, ...]]:
    return [
        (
            broker.id,
            broker.epoch,
            "fenced" if broker.fenced else "shutting-down" if broker.in_controlled_shutdown else "active",
            broker.rack,
            ",".join(f"{listener.name}://{listener.host}:{listener.port}" for listener in broker.listeners),
        )
        for broker in image.brokers.values()
    ]


def _topic_rows(image: MetadataImage) -> list[tuple[object, ...]]:
    return [(topic.name, uuid_to_string(topic.id), len(topic.partitions)) for topic in image.topics.values()]


def _partition_rows(image: MetadataImage) -> list[tuple[object, ...]]:
    return [
        (
            f"{topic.name}-{index}",
            partition.leader,
            partition.leader_epoch,
            *map(_ids, (partition.replicas, partition.isr, partition.elr)),
            *map(_ids, (partition.adding_replicas, partition.removing_replicas)),
        )
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
    ]


def _ids(broker_ids: Sequence[int]) -> str | None:
    return ",".join(map(str, broker_ids)) or None


def _config_rows(image: MetadataImage) -> list[tuple[object, ...]]:
    return [
        (record.resource_type, record.resource_name or "(default)", record.key, record.value)
        for record in without_secrets(image.records())
        if isinstance(record, ConfigRecord)
    ]
