"""A network with real packets: TCP of the kernel, whose packets are delayed, lost, duplicated and reordered.

It needs root, network namespaces and /dev/net/tun, but neither tc nor the kernel's netem. Without them,
`barnabas.testing.Cluster.degrade` does the same to bytes instead of packets."""

import json
import threading
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Self

from tests.jepsen.helper_process import start_module


@dataclass(frozen=True, slots=True)
class PacketQuality:
    """Each packet arrives `delay_ms` later, more or less by up to `jitter_ms`, which also changes their
    order. `loss` and `duplicates` are shares of the packets. `bytes_per_second` is the limit of all
    connections together; None: no limit."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    duplicates: float = 0.0
    bytes_per_second: float | None = None


class PacketNetwork:
    """`port_to(port)` is another port that leads to the same process through this network."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = start_module("tests.jepsen.packet_process")
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def port_to(self, port: int) -> int:
        return int(self._call({"port_to": port}))

    def degrade(self, quality: PacketQuality) -> None:
        """All packets pass with this quality from now on."""
        given = {name: value for name, value in asdict(quality).items() if value is not None}
        self._call({"quality": given})

    def heal(self) -> None:
        self._call({"quality": {}})

    def counts(self) -> dict[str, int]:
        """How many packets there were so far, and how many of them were lost, duplicated, reordered, or
        dropped because the queue was full."""
        counts: dict[str, int] = self._call({})
        return counts

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the network of packets has ended:\n{self._process.stderr.read()}")
        return json.loads(line)


@cache
def why_no_packets() -> str | None:
    """Why there can be no PacketNetwork on this machine; None if there can be one."""
    try:
        PacketNetwork().close()
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]
    return None
