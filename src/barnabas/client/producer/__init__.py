"""The producer: it collects records into batches per partition, and an I/O thread sends them.

producer.py       what users call; how one record is sent
accumulator.py    batches that wait, by partition, and the memory they use
sender.py         Produce requests and their answers, on the I/O thread
sequences.py      sequence numbers, which make retries safe
transactions.py   requests to the transaction coordinator"""

from barnabas.client.producer.partitioners import random_partitioner, round_robin_partitioner
from barnabas.client.producer.producer import Producer

__all__ = ["Producer", "random_partitioner", "round_robin_partitioner"]
