Buffer = bytes | bytearray | memoryview

PLAIN_VERSION_MIN: int
PLAIN_VERSION_MAX: int

class ReplicaFetchFrame:
    version: int
    correlation_id: int
    client_id: bytes
    replica_id: int
    broker_epoch: int
    wait_ms: int
    bytes_min: int
    bytes_max: int
    session_id: int
    session_epoch: int
    topic_id: bytes | None
    partition: int
    leader_epoch: int
    fetch_offset: int
    last_epoch: int
    log_start_offset: int
    partition_bytes_max: int
    def read(self, buffer: Buffer) -> bool: ...

def write_replica_fetch(
    version: int,
    correlation_id: int,
    client_id: bytes,
    replica_id: int,
    broker_epoch: int,
    wait_ms: int,
    bytes_min: int,
    bytes_max: int,
    session_id: int,
    session_epoch: int,
    topic_id: bytes | None,
    partition: int,
    leader_epoch: int,
    fetch_offset: int,
    last_epoch: int,
    log_start_offset: int,
    partition_bytes_max: int,
) -> bytearray: ...

class FetchedFrame:
    correlation_id: int
    session_id: int
    topic_id: bytes | None
    partition: int
    high_watermark: int
    log_start_offset: int
    start: int
    size: int
    def read(self, buffer: Buffer) -> bool: ...
