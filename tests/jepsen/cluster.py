"""A cluster of real processes to which any fault can happen."""

from collections.abc import Mapping
from itertools import permutations
from typing import Any, Self

from tests.jepsen.network import Frames
from tests.jepsen.packets import PacketNetwork
from tests.jepsen.shim import Shim

from barnabas.testing import Cluster
from barnabas.testing.links import Links


class FaultyCluster(Cluster):
    """`shims` has the disk and the clock of each broker, `frames` the requests of all clients.

    With `tracks_syncs`, power failures are possible. With `watches_brokers`, `frames_between` has the
    requests of one broker to another. With `packets`, all connections pass a network of packets, which is
    slower. With more than one of `disks`, each broker has so many log directories: disk-1, disk-2 and so on
    in its data directory. `how` has the other arguments of Cluster."""

    def __init__(
        self,
        brokers: int = 3,
        overrides: Mapping[str, str] | None = None,
        *,
        tracks_syncs: bool = False,
        watches_brokers: bool = False,
        packets: bool = False,
        disks: int = 1,
        **how: Any,
    ) -> None:
        super().__init__(brokers, overrides, **how)
        self.shims: dict[int, Shim] = {}
        self._tracks_syncs = tracks_syncs
        self._disks = disks
        self._watches_brokers = watches_brokers
        self._frames: Frames | None = None
        self._frames_between: dict[tuple[int, int], Frames] = {}
        self._packets = PacketNetwork() if packets else None

    @property
    def frames(self) -> Frames:
        assert self._frames is not None, "the cluster is not running"
        return self._frames

    def frames_between(self, source: int, target: int) -> Frames:
        """What broker `source` asks broker `target`."""
        assert self._frames_between, "this needs FaultyCluster(watches_brokers=True)"
        return self._frames_between[source, target]

    @property
    def packets(self) -> PacketNetwork:
        assert self._packets is not None, "this needs FaultyCluster(packets=True)"
        return self._packets

    def start(self) -> Self:
        for broker_id in self.environments:
            self._equip(broker_id)
        return super().start()

    def make_links(self) -> Links:
        links = Links(self.pids) if self._packets is None else Links(self.pids, self._packets.port_to)
        self._frames = Frames(links, list(self.environments))
        if self._watches_brokers:
            self._frames_between = {
                (source, target): Frames(links, [target], source)
                for source, target in permutations(self.environments, 2)
            }
        return links

    def add_broker(self, broker_id: int | None = None) -> int:
        broker_id = max(self.brokers) + 1 if broker_id is None else broker_id
        self._equip(broker_id)
        self.frames.watch(self.links, broker_id)
        return super().add_broker(broker_id)

    def _equip(self, broker_id: int) -> None:
        directory = self.data_dir_of(broker_id)
        shim = self.shims[broker_id] = Shim(directory.with_name(f"shim-{broker_id}"))
        if self._tracks_syncs:
            shim.track_syncs(directory)
        self.environments.setdefault(broker_id, {}).update(shim.environment)
        if self._disks > 1:
            log_dirs = ",".join(str(directory / f"disk-{number + 1}") for number in range(self._disks))
            self._broker_overrides.setdefault(broker_id, {})["log.dirs"] = log_dirs

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._packets is not None:
                self._packets.close()
