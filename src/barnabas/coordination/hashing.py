"""Which partition of an internal topic a key belongs to: Java's String.hashCode, as Kafka uses it."""


def java_hash(text: str) -> int:
    """The signed 32-bit hash of a Java string, over its UTF-16 units."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        value = (31 * value + (encoded[position] << 8 | encoded[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(key: str, partitions: int) -> int:
    """abs(hash) % partitions. As in Kafka, the absolute value of the smallest integer is 0."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
