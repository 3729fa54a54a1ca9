"""A driver that kills itself (SIGKILL) before or after a step of a commit: python -m tests.spark.dying_driver
SERVERS TOPIC STEP (before | after)"""

import os
import signal
import sys
from typing import Any

from tests.spark.writing import Query, numbers

from barnabas.spark.sink.publishing import Publisher


def main(servers: str, topic: str, step: str, when: str) -> None:
    query = Query(
        {
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "delivery": "exactly-once",
            "transactional.id": f"id of {topic}",
        }
    )
    query.run(0, [numbers(0, 10)])
    messages = query.write([numbers(10, 500)], [numbers(500, 1000)], batch=1)
    real = getattr(Publisher, step)

    def last_step(self: Publisher, *arguments: Any) -> None:
        if when == "after":
            real(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(Publisher, step, last_step)
    query.commit(messages, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
