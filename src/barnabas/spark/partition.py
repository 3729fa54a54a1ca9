"""What Spark hands a task: a range of one partition. Pickled by the driver, so it is found by its module."""

from pyspark.sql.datasource import InputPartition

from barnabas.ids import TopicPartition
from barnabas.spark.planning import Range


class RangePartition(InputPartition):
    """Offsets `start` to `end` (exclusive) of one partition; nothing to read without a topic."""

    def __init__(self, topic: str = "", partition: int = 0, start: int = 0, end: int = 0) -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end

    @classmethod
    def of(cls, found: Range) -> "RangePartition":
        return cls(*found.partition, found.start, found.end)

    @property
    def range(self) -> Range:
        return Range(TopicPartition(self.topic, self.partition), self.start, self.end)
