"""A claim to write: the candidate node and the epoch of a controller, checked by ZooKeeper in every write."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from barnabas.metadata.store import ControllerFenced


@dataclass(eq=False, slots=True)
class Claim:
    """`candidate` is the path of the node that makes its owner the controller; `epoch_version` is the version
    that the epoch node has while nobody else has become the controller."""

    broker_id: int
    epoch: int
    epoch_version: int
    candidate: str
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        if self.lost.is_set():
            raise ControllerFenced(f"controller epoch {self.epoch} is over")

    def conditions(self, epoch_path: str) -> list[tuple[Any, ...]]:
        """The operations of a transaction that fail when this claim is over."""
        return [("check", epoch_path, self.epoch_version), ("check", self.candidate, 0)]
