"""`barnabas mirror`: copies topics from one cluster to another, exactly once, with the offsets of groups."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.connecting import await_broker, key_values
from barnabas.cli.failures import ToolError
from barnabas.cli.output import columns
from barnabas.cli.spark_session import add_spark, spark_session
from barnabas.config.properties import load_properties

if TYPE_CHECKING:
    from barnabas.spark.jobs.mirror import Mirror, Round
    from barnabas.spark.jobs.translation import Translated

DESCRIPTION = """\
Copy topics to another cluster: keys, values, headers, timestamps and partitions stay the same, and every
committed record arrives exactly once. Topics that do not exist in the target are created with the partitions
and settings of the source. The topic mirror-offsets.<alias>.internal of the target maps offsets of the source
to offsets of the target; it is used to translate the committed offsets of groups. It runs on Spark, copies
again and again, and continues from its checkpoint. Nobody else may write to the copies. See docs/jobs.md."""
EXAMPLES = """\
  barnabas mirror --source old:9092 --target new:9092 --topic orders --checkpoint ./mirror --once
  barnabas mirror --source eu:9092 --target us:9092 --topic-pattern 'orders-.*' --rename 'eu.{topic}' \\
      --alias eu --group billing --group search --checkpoint ./mirror --every 10
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for side in ("source", "target"):
        add(f"--{side}", required=True, metavar="HOST:PORT", help=f"brokers of the {side}")
        add(f"--{side}-config", type=Path, metavar="FILE", help=f"a properties file for the {side}'s client")
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", action="append", metavar="NAME", help="a topic; may be repeated")
    topics.add_argument("--topic-pattern", metavar="REGEX", help="topics whose full name matches")
    add("--checkpoint", required=True, metavar="DIR", help="where the mirror stores its progress")
    add("--alias", default="source", metavar="NAME", help="the name of the source in the target (source)")
    add("--rename", default="{topic}", metavar="NAME", help="the names of the copies ('{topic}')")
    add(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group whose offsets are translated; may be repeated",
    )
    add(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the data source; may be repeated",
    )
    add("--once", action="store_true", help="copy what is there now, then exit")
    add("--every", type=float, default=5.0, metavar="SECONDS", help="the pause between copies (5)")
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    with spark_session(options, f"mirror {options.alias}") as spark:
        from barnabas.spark.jobs.clients import JobError
        from barnabas.spark.jobs.mirror import mirror_once
        from barnabas.spark.options import OptionError

        mirror = _mirror(options)
        try:
            while True:
                _print(mirror_once(spark, mirror))
                if options.once:
                    return 0
                time.sleep(options.every)
        except (JobError, OptionError) as error:
            raise ToolError(str(error)) from error
        except KeyboardInterrupt:
            print("Stopped; run it again to continue.")
            return 0


def _mirror(options: argparse.Namespace) -> "Mirror":
    from barnabas.spark.jobs.mirror import Mirror
    from barnabas.spark.settings import Topics

    return Mirror(
        source=_client(options.source, options.source_config),
        target=_client(options.target, options.target_config),
        topics=Topics(tuple(options.topic or ()), options.topic_pattern or ""),
        # Spark's process may have another working directory, so the path must be absolute.
        checkpoint=options.checkpoint
        if "://" in options.checkpoint
        else str(Path(options.checkpoint).absolute()),
        alias=options.alias,
        rename=options.rename,
        groups=tuple(options.group),
        reading=key_values(options.option, "--option"),
    )


def _client(servers: str, file: Path | None) -> dict[str, str]:
    from barnabas.client.config import admin_config

    read = {} if file is None else load_properties(file.read_text())
    await_broker(admin_config({"bootstrap.servers": servers}).servers)
    return {**read, "bootstrap.servers": servers}


def _print(done: "Round") -> None:
    for topic in done.made:
        print(f"made {topic}")
    print(f"{done.rows:,} records copied.", flush=True)
    if done.groups:
        rows = [_row(each) for each in done.groups]
        print(columns(["GROUP", "TOPIC", "PARTITION", "SOURCE", "TARGET", ""], rows))


def _row(row: "Translated") -> tuple[object, ...]:
    return (row.group, *row.partition, row.source, row.target, row.reason)
