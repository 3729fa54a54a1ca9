"""The producer: records gathered into batches per partition and sent by an I/O thread.

producer.py       what users call; the path of one record
accumulator.py    batches that wait, by partition, and the memory they take
sender.py         requests and their answers, on the I/O thread
sequences.py      sequence numbers: what makes retries safe
transactions.py   talking to the transaction coordinator"""

from barnabas.client.producer.partitioners import random_partitioner, round_robin_partitioner
from barnabas.client.producer.producer import Producer

__all__ = ["Producer", "random_partitioner", "round_robin_partitioner"]
