"""Which partition of an internal topic a key belongs to: Java's String.hashCode, as Kafka uses it."""

from barnabas.kernels.hashing import java_hash


def partition_for(key: str, partitions: int) -> int:
    """abs(hash) % partitions. As in Kafka, the absolute value of the smallest integer is 0."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
