"""`barnabas delete-records`: delete the records of partitions before an offset."""

import argparse
import json
from pathlib import Path
from typing import Any

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json
from barnabas.client.types import TopicPartition

DESCRIPTION = """\
Delete the records of partitions before an offset (-1: all of them). This cannot be undone.
The file has the offsets:
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}"""
EXAMPLES = """\
  barnabas delete-records --bootstrap-server localhost:9092 --offset-json-file before.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    parser.add_argument(
        "--offset-json-file", type=Path, required=True, metavar="FILE", help="the offsets, by partition"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    before = read_offsets(options.offset_json_file.read_text())
    with admin_of(options) as admin:
        if not options.json:
            print("Executing records delete operation")
        low_watermarks, errors = results_and_errors(lambda: admin.delete_records(before))
    if options.json:
        rows: list[dict[str, Any]] = []
        for partition in before:
            row: dict[str, Any] = {"topic": partition.topic, "partition": partition.partition}
            if partition in errors:
                row["error"] = errors[partition].message
            else:
                row["lowWatermark"] = low_watermarks[partition]
            rows.append(row)
        print_json(rows)
    else:
        print("Records delete operation completed:")
        for partition in before:
            outcome = (
                f"error: {errors[partition].message}"
                if partition in errors
                else f"low_watermark: {low_watermarks[partition]}"
            )
            print(f"partition: {partition}\t{outcome}")
    return 1 if errors else 0


def read_offsets(text: str) -> dict[TopicPartition, int]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ToolError(f"The input string is not a valid JSON: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise ToolError("Missing partitions field: the JSON must be an object with a list `partitions`.")
    if document.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {document['version']}; it must be 1.")
    before: dict[TopicPartition, int] = {}
    twice: list[str] = []
    for entry in document["partitions"]:
        partition, offset = _entry(entry)
        if partition in before:
            twice.append(str(partition))
        before[partition] = offset
    if twice:
        raise ToolError(f"Offset json file contains duplicate topic partitions: {','.join(twice)}.")
    return before


def _entry(entry: object) -> tuple[TopicPartition, int]:
    if isinstance(entry, dict):
        topic, partition, offset = entry.get("topic"), entry.get("partition"), entry.get("offset")
        if isinstance(topic, str) and type(partition) is int and type(offset) is int:
            return TopicPartition(topic, partition), offset
    raise ToolError(
        f"Each entry of `partitions` needs a topic, a partition and an offset; found {json.dumps(entry)}."
    )
