"""Kafka's own command-line tools, run from its jars: a JVM for each call, or one JVM for all calls."""

import json
import subprocess
from typing import Any, Protocol

from tests.java.jvm import compiled_sources, java_command, run_java


class Runner(Protocol):
    """Runs a main class to its end; the caller checks the exit status."""

    def __call__(
        self, main_class: str, *arguments: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]: ...


class Shell:
    """One JVM (judge.Shell) for many tools, since its start takes longer than most of them. The tools have no
    standard input."""

    def __init__(self) -> None:
        compiled_sources()
        self._process = subprocess.Popen(
            java_command("judge.Shell", []), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(
        self, main_class: str, *arguments: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        assert stdin is None, "the tools of one JVM share its standard input"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([main_class, *arguments]), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(
            [main_class, *arguments], answer["status"], answer["output"], answer["errors"]
        )

    def close(self) -> None:
        self._process.communicate()


class Tools:
    """Runs a tool by the name of its script, and fails when the tool fails."""

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
        "kafka-acls": "org.apache.kafka.tools.AclCommand",
        "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
        "kafka-features": "org.apache.kafka.tools.FeatureCommand",
        "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
        "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    }

    def __init__(self, bootstrap: str, run: Runner = run_java) -> None:
        self.bootstrap = bootstrap
        self._run = run

    def __call__(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        return self.bare(tool, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)

    def bare(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        done = self._run(self.CLASSES[tool], *arguments, stdin=stdin)
        assert done.returncode == 0, f"{tool} {arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, tool: str, *arguments: str) -> str:
        done = self._run(self.CLASSES[tool], "--bootstrap-server", self.bootstrap, *arguments)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr
