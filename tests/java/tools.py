"""Kafka's own command-line tools, run from its jars: each call is a JVM of its own."""

from tests.java.jvm import run_java


class Tools:
    """Each tool by the name of its script; fails when the tool does."""

    CLASSES = {
        "kafka-topics": "org.apache.kafka.tools.TopicCommand",
        "kafka-configs": "kafka.admin.ConfigCommand",
        "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
        "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
        "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
        "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
        "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
        "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
        "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
        "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    }

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        return self.bare(tool, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)

    def bare(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        done = run_java(self.CLASSES[tool], *arguments, stdin=stdin)
        assert done.returncode == 0, f"{tool} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, tool: str, *arguments: str) -> str:
        done = run_java(self.CLASSES[tool], "--bootstrap-server", self.bootstrap, *arguments)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr
