"""Faults of a cluster: each has inject() and heal(), and says what it is (repr).

    with Killed(system, Leader("orders")):
        ...

A `system` is a `FaultyCluster`, or anything else with the interface `System`."""

from tests.jepsen.faults.base import Fault, System
from tests.jepsen.faults.clocks import ClockSkewed, ClockStrobing
from tests.jepsen.faults.disks import (
    BrokenDisk,
    Damaged,
    FullDisk,
    PowerLost,
    ReadOnlyDisk,
    SlowDisk,
)
from tests.jepsen.faults.hostile import HostileClients
from tests.jepsen.faults.links import BadPackets, Cut, Degraded, HeldRequests, Isolated, LosingAnswers
from tests.jepsen.faults.membership import BrokerAdded, BrokerRemoved, FactorChanged, Reassigned
from tests.jepsen.faults.processes import Killed, Paused, Restarted, Stopped
from tests.jepsen.faults.roles import (
    All,
    Brokers,
    Controller,
    Followers,
    GroupCoordinator,
    Leader,
    Role,
    TransactionCoordinator,
)
from tests.jepsen.faults.rotation import RandomFaults, Scope, Window
from tests.jepsen.faults.zookeeper import (
    SessionsExpired,
    ZooKeeperDown,
    ZooKeeperPaused,
    ZooKeeperServerKilled,
    ZooKeeperSlow,
)

__all__ = [
    "All",
    "BadPackets",
    "BrokenDisk",
    "BrokerAdded",
    "BrokerRemoved",
    "Brokers",
    "ClockSkewed",
    "ClockStrobing",
    "Controller",
    "Cut",
    "Damaged",
    "Degraded",
    "FactorChanged",
    "Fault",
    "Followers",
    "FullDisk",
    "GroupCoordinator",
    "HeldRequests",
    "HostileClients",
    "Isolated",
    "Killed",
    "Leader",
    "LosingAnswers",
    "Paused",
    "PowerLost",
    "RandomFaults",
    "ReadOnlyDisk",
    "Reassigned",
    "Restarted",
    "Role",
    "Scope",
    "SessionsExpired",
    "SlowDisk",
    "Stopped",
    "System",
    "TransactionCoordinator",
    "Window",
    "ZooKeeperDown",
    "ZooKeeperPaused",
    "ZooKeeperServerKilled",
    "ZooKeeperSlow",
]
