"""`barnabas run-class`: for scripts that name Kafka's tools by their Java classes."""

import argparse

from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Run the command that corresponds to a Java class of Kafka, with its arguments. The package does not matter:
tools have moved from kafka.tools and kafka.admin to org.apache.kafka.tools over the years."""
EXAMPLES = """\
  barnabas run-class kafka.tools.GetOffsetShell --broker-list localhost:9092 --time -1 --topic orders
  barnabas run-class org.apache.kafka.tools.TopicCommand --bootstrap-server localhost:9092 --list
"""

# The command for each class, without its package.
CLASSES = {
    "AclCommand": "acls",
    "BrokerApiVersionsCommand": "broker-api-versions",
    "ClientMetricsCommand": "client-metrics",
    "ClusterTool": "cluster",
    "ConfigCommand": "configs",
    "ConsoleConsumer": "console-consumer",
    "ConsoleProducer": "console-producer",
    "ConsoleShareConsumer": "console-share-consumer",
    "ConsumerGroupCommand": "consumer-groups",
    "ConsumerPerformance": "consumer-perf-test",
    "DelegationTokenCommand": "delegation-tokens",
    "DeleteRecordsCommand": "delete-records",
    "DumpLogSegments": "dump-log",
    "EndToEndLatency": "e2e-latency",
    "FeatureCommand": "features",
    "GetOffsetShell": "get-offsets",
    "GroupsCommand": "groups",
    "Kafka": "start",
    "LeaderElectionCommand": "leader-election",
    "ReplicaVerificationTool": "replica-verification",
    "LogDirsCommand": "log-dirs",
    "MetadataQuorumCommand": "metadata-quorum",
    "PreferredReplicaLeaderElectionCommand": "leader-election",
    "ProducerPerformance": "producer-perf-test",
    "ReassignPartitionsCommand": "reassign-partitions",
    "ShareGroupCommand": "share-groups",
    "StorageTool": "storage",
    "StreamsGroupCommand": "streams-groups",
    "StreamsResetter": "streams-application-reset",
    "TopicCommand": "topics",
    "TransactionsCommand": "transactions",
    "VerifiableConsumer": "verifiable-consumer",
    "VerifiableProducer": "verifiable-producer",
}
PACKAGES = ("kafka", "org.apache.kafka")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Scripts pass these before the class. They configure Java's logs, which do not exist here.
    parser.add_argument("-name", metavar="NAME", help="accepted and ignored")
    parser.add_argument("-loggc", action="store_true", help="accepted and ignored")
    parser.add_argument("class_name", metavar="CLASS", help="a class of Kafka's tools, with its package")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the tool's arguments")


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.main import main

    return main([command_of(options.class_name), *options.arguments])


def command_of(class_name: str) -> str:
    package, _, name = class_name.rpartition(".")
    is_kafka = any(package == known or package.startswith(f"{known}.") for known in PACKAGES)
    if not is_kafka or name not in CLASSES:
        raise ToolError(
            f"There is no command for {class_name}. The known classes are {', '.join(sorted(CLASSES))}; "
            "write them with a package of Kafka, as in kafka.tools.GetOffsetShell."
        )
    return CLASSES[name]
