"""Counters of what went in and out; plain integers, because they are counted on the hot path."""


class TopicTraffic:
    __slots__ = ("bytes_in", "records_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.records_in = 0


class Traffic:
    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self.bytes_out = 0

    def count_in(self, topic: str, size: int, records: int) -> None:
        counted = self.topics.get(topic)
        if counted is None:
            counted = self.topics[topic] = TopicTraffic()
        counted.bytes_in += size
        counted.records_in += records

    def count_out(self, size: int) -> None:
        self.bytes_out += size

    def forget(self, topic: str) -> None:
        """A deleted topic leaves no counters behind."""
        self.topics.pop(topic, None)
