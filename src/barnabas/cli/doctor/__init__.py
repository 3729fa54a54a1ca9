"""`barnabas doctor`: checks this machine and what it talks to, and says what to do about each problem."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from barnabas.broker.startup import broker_config
from barnabas.cli.connecting import add_connection
from barnabas.cli.doctor import machine, services
from barnabas.cli.doctor.finding import Finding, Status
from barnabas.cli.output import print_json
from barnabas.config.values import BrokerConfig

DESCRIPTION = """\
Check what a broker, a cluster or a pipeline needs: Python, Java, gcc, ports, disks, file descriptors, the
clock, ZooKeeper, Spark's workers. Prints what was found, and a remedy for each problem. The exit code is 1
if something fails that --for needs; what only other uses need is a warning."""
EXAMPLES = """\
  barnabas doctor                                        before the first `barnabas start`
  barnabas doctor --config server.properties --for cluster
  barnabas doctor --for spark --json
  barnabas doctor --bootstrap-server localhost:9092 --running    beside a running broker
"""

USES = ("broker", "cluster", "spark", "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Its address is not required: there may be no broker yet.
    address = parser.add_mutually_exclusive_group()
    add_connection(parser, server_group=address)
    parser.add_argument(
        "--for", dest="uses", nargs="+", choices=USES, action="extend", help="what must work (broker)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a server.properties file")
    parser.add_argument("--port", type=int, metavar="PORT", help="the port of the broker (9092)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="its data directory")
    parser.add_argument("--zookeeper", metavar="HOST:PORT,...", help="instead of zookeeper.connect")
    parser.add_argument("--spark-master", metavar="URL", help="spark://HOST:PORT, to see whether it answers")
    parser.add_argument("--running", action="store_true", help="do not check ports: the broker runs already")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    findings = list(_findings(options))
    failed = sum(finding.status is Status.FAILED for finding in findings)
    warnings = sum(finding.status is Status.WARNING for finding in findings)
    if options.json:
        print_json({"failed": failed, "warnings": warnings, "checks": [each._asdict() for each in findings]})
    else:
        _print(findings)
        print(f"\n{len(findings)} checks, {failed} failed, {warnings} warnings.")
    return 1 if failed else 0


def _findings(options: argparse.Namespace) -> Iterator[Finding]:
    config = broker_config(options.config, options.data_dir, options.port)
    uses = set(options.uses or ())
    yield from machine.python()
    yield machine.compiler(is_needed="build" in uses)
    yield machine.java(is_needed=bool(uses & {"cluster", "spark"}))
    yield machine.descriptors()
    yield machine.clock()
    for directory in config.log_dirs:
        yield machine.disk(Path(directory))
    if not options.running:
        metrics = (config["barnabas.metrics.host"], config["barnabas.metrics.port"])
        yield from services.listeners(config.listeners, metrics)
    yield from services.zookeeper(_zookeeper(options, config), is_needed="cluster" in uses)
    yield from services.spark(options.spark_master, is_needed="spark" in uses)
    yield from services.broker(options)


def _zookeeper(options: argparse.Namespace, config: BrokerConfig) -> str | None:
    connect: str | None = options.zookeeper or config["zookeeper.connect"]
    return connect


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        print(f"{finding.status:8} {finding.check:{width}}  {finding.found}")
        if finding.remedy is not None:
            print(f"{'':8} {'':{width}}  -> {finding.remedy}")
