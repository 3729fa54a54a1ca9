"""Topics for tests of the data source: our own clients create, fill, extend and truncate them."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import barnabas
from barnabas.client.admin.types import NewTopic
from barnabas.ids import TopicPartition


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = barnabas.Admin(bootstrap_servers=bootstrap)
        self._producer = barnabas.Producer(bootstrap_servers=bootstrap, linger_ms=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._producer.close()
        self.admin.close()

    def make(self, name: str, partitions: int = 2, **configs: str) -> str:
        """Its records stay, however old their timestamps are."""
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): text for key, text in configs.items()}
        self.admin.create_topics([NewTopic(name, partitions, configs=settings)])
        return name

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions({topic: partitions})
        # A producer that does not know the new partitions would refuse to write to them.
        self._producer.close()
        self._producer = barnabas.Producer(bootstrap_servers=self.bootstrap, linger_ms=0)

    def put(self, topic: str, values: Iterable[bytes | None], partition: int = 0, **options: Any) -> None:
        """Write values to one partition, and wait until they are there."""
        futures = [self._producer.send(topic, value, partition=partition, **options) for value in values]
        for future in futures:
            future.result(30)

    def numbers(self, topic: str, first: int, last: int, partition: int = 0) -> None:
        self.put(topic, [b"%d" % number for number in range(first, last)], partition)

    def put_in_transaction(self, topic: str, values: Sequence[bytes], *, commits: bool) -> None:
        with barnabas.Producer(bootstrap_servers=self.bootstrap, transactional_id=f"tx-{topic}") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value, partition=0)
            # An abort would drop records that are not sent yet.
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()

    def cut(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        self.admin.delete_records({TopicPartition(topic, partition): before})

    def committed(self, group: str) -> dict[TopicPartition, int]:
        offsets = self.admin.list_consumer_group_offsets(group)
        return {partition: each.offset for partition, each in offsets.items()}

    def records(self, topic: str, partition: int = 0) -> list[Any]:
        """All records of a partition."""
        with barnabas.Consumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False) as consumer:
            where = TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek_to_beginning(where)
            end = consumer.end_offsets([where])[where]
            polled: list[Any] = []
            while consumer.position(where) < end:
                polled += consumer.poll(5.0)
            return polled
