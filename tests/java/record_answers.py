"""Writes down what Apache Kafka answers to the calls of tests/support/unsecured_calls.py.

python -m tests.java.record_answers"""

import tempfile
from pathlib import Path

from tests.java.kafka_server import KafkaServer, running_kafka
from tests.support.raw_client import RawClient
from tests.support.unsecured_calls import ANSWERS, answers_of, prepare


def answers_of_kafka(kafka: KafkaServer) -> dict[str, str]:
    host, port = kafka.bootstrap.split(":")
    with RawClient(host, int(port)) as client:
        prepare(client)
        return answers_of(client, str(kafka.log_dir))


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kafka-answers-") as directory,
        running_kafka(Path(directory)) as kafka,
    ):
        answers = answers_of_kafka(kafka)
    ANSWERS.write_text("".join(f"{ident} = {answer}\n" for ident, answer in answers.items()))
    print(f"{len(answers)} answers are in {ANSWERS}")


if __name__ == "__main__":
    main()
