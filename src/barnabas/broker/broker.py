"""One broker: puts the layers together, starts them in order, and stops them in reverse order.

Everything it owns belongs to the event loop that called `start`. The methods are in the order of a start:
sockets, metadata, registration (fenced), logs, candidacy, partitions, upkeep, requests. A broker of a cluster
answers requests before it is unfenced, so that clients of the partitions that it gets find it."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from barnabas.broker.apis import ROWS
from barnabas.broker.authentication import Authentication
from barnabas.broker.authorization.authorizer import authorizer_of
from barnabas.broker.authorization.between_brokers import on_their_listener
from barnabas.broker.broker_life import BrokerLife
from barnabas.broker.call import Api
from barnabas.broker.cleaning import CleanerDriver
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.delegation_tokens import DelegationTokens
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.dynamic_settings import TAKERS
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.following import follower_manager, healer
from barnabas.broker.group_coordinator import GroupCoordinator
from barnabas.broker.housekeeping import Housekeeping
from barnabas.broker.initial_users import create_initial_users
from barnabas.broker.isr_changes import AlterPartitions, isr_changes
from barnabas.broker.log_moves import LogMoves
from barnabas.broker.metadata_followers import MetadataFollowers
from barnabas.broker.metrics.health import health, readiness
from barnabas.broker.metrics.page import page_of
from barnabas.broker.metrics.scrape import Scraper
from barnabas.broker.metrics.server import MetricsServer, Probes
from barnabas.broker.newest_metadata import NewestMetadata
from barnabas.broker.peers import Peers, peer_settings
from barnabas.broker.processors import share_processors
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.quotas import Quotas
from barnabas.broker.server import Server
from barnabas.broker.strays import adopt_strays, set_strays_aside
from barnabas.broker.surroundings import surroundings_of
from barnabas.broker.transaction_coordinator import TransactionCoordinator
from barnabas.clock import Clock, SystemClock
from barnabas.config.listeners import Listener
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig
from barnabas.ids import TopicPartition, random_uuid
from barnabas.log.checkpoints import clean_shutdown_epoch, read_meta_properties
from barnabas.log.compaction.cleaner import Cleaner, CleanerSettings
from barnabas.log.disk import Disk, RealDisk
from barnabas.log.errors import LogDirError
from barnabas.log.load_progress import Loading
from barnabas.log.manager import LogManager, LogSettings
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller, ControllerSettings
from barnabas.metadata.difference import Difference
from barnabas.metadata.embedded import DIRECTORY_NAME
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.opening import OpenedStore, encoder_secrets, open_store, zookeeper_settings
from barnabas.metadata.parts import BROKER_RESOURCE, CLUSTER_DEFAULT
from barnabas.metadata.records import NO_CONTROLLER
from barnabas.metadata.records import Listener as RegisteredListener
from barnabas.metadata.store import BrokerRegistration
from barnabas.replication.following.manager import FollowerManager
from barnabas.replication.gate import Gate
from barnabas.replication.healing import Healer
from barnabas.replication.partition import RequestCounts
from barnabas.replication.replicas import Replicas

logger = logging.getLogger(__name__)

# As barnabas.metadata.opening.open_store; tests have their own.
OpenStore: TypeAlias = Callable[..., Awaitable[OpenedStore]]

# An incremental fetch session is not evicted for a new one before this time has passed.
FETCH_SESSION_SECONDS_MIN = 120.0


class Broker:
    rows: Mapping[int, Api] = ROWS
    # Created by `start`.
    metadata: MetadataNode
    newest_metadata: NewestMetadata
    peers: Peers
    logs: LogManager
    replicas: Replicas
    gate: Gate
    cleaner: Cleaner
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    followers: MetadataFollowers
    following: FollowerManager
    healer: Healer
    log_moves: LogMoves
    isr_changes: AlterPartitions

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        disk: Disk | None = None,
        open_store: OpenStore = open_store,
    ) -> None:
        self.config = config
        self.id = config.node_id
        self.clock = clock or SystemClock()
        self._disk = disk or RealDisk()
        self._open_store = open_store
        # Requests for partitions that this broker does not have; the others are counted by each partition.
        self.unknown_requests = RequestCounts()
        self.authorizer = authorizer_of(config)
        if self.authorizer.is_enabled:
            # Imported here because only a broker with an authorizer needs it.
            from barnabas.broker.authorization.guard import guarded_rows

            self.rows = guarded_rows(self.rows)
        self.rows = on_their_listener(self.rows, config.inter_broker_listener.name)
        self.quotas = Quotas(config, self.clock)
        self.dispatcher = Dispatcher(self, self.rows)
        self.tokens: DelegationTokens = DelegationTokens(self)
        self.authentication: Authentication = Authentication(self)
        self.server = Server(config, self.dispatcher, self.authentication)
        self.fetch_sessions = FetchSessions(
            self.clock, config["max.incremental.fetch.session.cache.slots"], FETCH_SESSION_SECONDS_MIN
        )
        self.endpoints: list[Listener] = []
        self.controller_channel = ControllerChannel(self)
        self.life = BrokerLife(self)
        self.metrics_port: int | None = None
        probes: Probes = {"/health": partial(health, self), "/ready": partial(readiness, self)}
        self._metrics = MetricsServer(Scraper(self).scrape, lambda: page_of(self), probes)
        self._housekeeping: Housekeeping | None = None
        self.cleaning: CleanerDriver | None = None
        # While the logs are loaded.
        self.loading: Loading | None = None
        # From the end of the start to the beginning of the stop.
        self.is_ready = False
        self._is_stopped = False

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    @property
    def controller(self) -> Controller:
        return self.metadata.controller

    @property
    def is_clustered(self) -> bool:
        """Whether there may be other brokers."""
        return self.config["zookeeper.connect"] is not None

    @property
    def controller_id(self) -> int:
        """The broker that clients may take for the controller: one that lives. If the true one does not, or
        is not known, it is this broker, which forwards requests as soon as there is one."""
        if self.controller.active or not self.is_clustered:
            return self.id if self.controller.active else NO_CONTROLLER
        known = self.image.controller_id
        return known if self.image.alive(known) else self.id

    async def start(self) -> None:
        # Half of the files are for logs, the other half for connections.
        self._disk.open_files.most = _raise_file_limit() // 2
        await self._bind()
        await self._serve_metrics()
        await self._open_metadata()
        await self._load_logs()
        await self._join()
        self._open_partitions()
        self._start_upkeep()
        self._metrics.is_starting = False
        if not self.is_clustered:
            # A client must not see a cluster without a living broker.
            await self.life.unfence()
        await self.server.serve()
        await self.life.unfence()
        self.life.start()
        await create_initial_users(self)
        self.is_ready = True

    async def stop(self) -> None:
        """Stop everything in order; parts that were not started are skipped."""
        if self._is_stopped:
            return
        self._is_stopped = True
        was_ready, self.is_ready = self.is_ready, False
        await self.life.shut_down()
        await self.server.close()
        await self.dispatcher.drain()
        await self._metrics.stop()
        if hasattr(self, "transactions"):
            await self.transactions.close()
            await self.groups.close()
        if self.cleaning is not None:
            await self.cleaning.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        if hasattr(self, "replicas"):
            await self.following.stop()
            await self.log_moves.stop()
            await self.isr_changes.close()
            self.replicas.finish()
        if hasattr(self, "logs"):
            self.logs.shutdown(self.metadata.broker_epoch)
        if hasattr(self, "followers"):
            self.followers.close()
            await self.newest_metadata.close()
        if hasattr(self, "peers"):
            await self.peers.close()
        if hasattr(self, "metadata"):
            await self.metadata.close()
        # A start that failed ends with its error, and nothing else.
        logger.log(logging.INFO if was_ready else logging.DEBUG, "stopped")

    def topic_config(self, topic: str, image: MetadataImage) -> TopicConfig:
        return self.config.topic_config(image.topic_config(topic))

    # ---- the steps of a start

    async def _bind(self) -> None:
        """Bind the ports; requests are not answered before everything is up."""
        ports = {listener.name: await self.server.bind(listener) for listener in self.config.listeners}
        self.endpoints = [
            listener if listener.port else listener._replace(port=ports[listener.name])
            for listener in self.config.advertised_listeners
        ]

    async def _open_metadata(self) -> None:
        """Load the metadata and begin the session of this broker, which the controller registers as fenced.
        From here on there is an image, and the dynamic settings in it count."""
        first = Path(self.config.log_dirs[0])
        # If the directory belongs to a cluster already, such as one of Kafka's, a new store takes its id.
        try:
            meta = read_meta_properties(self._disk, first)
        except ValueError as problem:
            raise LogDirError(str(problem)) from problem
        incarnation = random_uuid()
        opened = await self._open_store(
            self.metadata_directory,
            zookeeper_settings(self.config),
            incarnation=incarnation,
            cluster_id=None if meta is None else meta.cluster_id,
            secrets=encoder_secrets(self.config),
        )
        rules, settings = ConfigRules(lambda: self.config), _controller_settings(self.config)
        try:
            self.metadata = await MetadataNode.open(opened.store, self.id, rules, settings)
        except BaseException:
            await opened.store.close()
            raise
        registration = BrokerRegistration(
            self.id,
            incarnation,
            tuple(RegisteredListener(*listener) for listener in self.endpoints),
            self.config["broker.rack"],
            self._previous_epoch(),
            opened.previous_incarnation,
        )
        await self.metadata.register(registration)
        self._take_settings()
        self.server.reconfigure(self.config)
        await self.server.listen_on(self.config.listeners)

    @property
    def metadata_directory(self) -> Path:
        return Path(self.config.log_dirs[0]) / DIRECTORY_NAME

    def _previous_epoch(self) -> int:
        """The broker epoch of the last start if it ended cleanly in all log directories, otherwise -1."""
        epochs = {clean_shutdown_epoch(self._disk, Path(directory)) for directory in self.config.log_dirs}
        return epochs.pop() if len(epochs) == 1 else -1

    async def _load_logs(self) -> None:
        """In a thread: a recovery may take long, and meanwhile the loop answers probes and keeps the session
        with the store. Nothing else uses the logs yet."""
        settings = LogSettings(self.metadata.cluster_id, self.id, self.config["producer.id.expiration.ms"])
        directories = [Path(directory) for directory in self.config.log_dirs]
        logs = LogManager(directories, settings, clock=self.clock, disk=self._disk)
        self.loading = logs.loading
        loading = asyncio.ensure_future(
            asyncio.to_thread(logs.load, lambda topic: self.topic_config(topic, self.image))
        )
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            logs.loading.give_up()
            await asyncio.wait([loading])
            if loading.exception() is None:
                self.logs = logs
            raise
        finally:
            self.loading = None
        # Only now: a stop closes them, but not those that could not be opened.
        self.logs = logs

    async def _join(self) -> None:
        """Be a candidate for controller; from here on there is a broker epoch."""
        listener_name = self.config.inter_broker_listener.name
        self.peers = Peers(lambda: self.image, listener_name, peer_settings(lambda: self.config))
        await self.life.join()
        self.producer_ids = ProducerIds(self)
        if self.config["barnabas.adopt.log.dirs"]:
            await adopt_strays(self)

    def _open_partitions(self) -> None:
        # No await from here to `listen`: a change of the metadata in between would be missed.
        image = self.image
        set_strays_aside(self.logs, image)
        self.following = follower_manager(self)
        self.healer = healer(self)
        self.log_moves = LogMoves(self)
        self.isr_changes = isr_changes(self)
        self.newest_metadata = NewestMetadata(self.metadata, self.clock)
        surroundings = surroundings_of(self)
        self.replicas = Replicas(self.id, self.logs, self.topic_config, surroundings, self.following)
        self.authorizer.follow(image)
        self.gate = Gate(self.replicas, self.config.inter_broker_listener.name, self.authorizer.rights)
        self.quotas.follow(image)
        self.server.limits.follow(self.quotas.table)
        self.replicas.follow(image, image.difference(MetadataImage()))
        self.replicas.finish()
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.groups.follow(image)
        self.transactions.follow(image)
        self.replicas.when_settled = self._follow_partitions
        self.followers = self._metadata_followers(image)
        share_processors(image, self.id)
        self.metadata.listen(self.followers.follow)

    def _start_upkeep(self) -> None:
        self._housekeeping = Housekeeping(self)
        self._housekeeping.start()
        self.groups.start()
        self.log_moves.resume()
        self.cleaner = Cleaner(self.logs.logs, self._disk, CleanerSettings.of(self.config))
        self.logs.when_truncated = self.cleaner.truncated
        if self.config["log.cleaner.enable"]:
            self.cleaning = CleanerDriver.of(self.cleaner, self.config, self.clock)
            self.cleaning.start()

    async def _serve_metrics(self) -> None:
        """Before the logs are opened, which may take long: a port that is taken is noticed at once, and
        probes are answered."""
        port = self.config["barnabas.metrics.port"]
        if port >= 0:
            self._metrics.is_starting = True
            self.metrics_port = await self._metrics.start(self.config["barnabas.metrics.host"], port)

    # ---- what follows the metadata

    def _metadata_followers(self, image: MetadataImage) -> MetadataFollowers:
        """Who takes a change, in this order: partitions need the settings, coordinators the partitions."""
        followers = MetadataFollowers(image)
        followers.add("the broker's settings", partial(self._if_settings_changed, Broker._take_settings))
        for component, take in TAKERS.items():
            followers.add(component.value, partial(self._if_settings_changed, take))
        followers.add("the authorizer", lambda image, _: self._follow_acls(image))
        followers.add("the quotas", self._follow_quotas)
        followers.add("the peers", lambda image, _: self.peers.follow(image))
        followers.add("the event loop", self._share_processors)
        followers.add("the cleaned offsets", self._follow_deleted_topics)
        followers.add("the partitions", self.replicas.follow)
        followers.add("the group coordinator", lambda image, _: self.groups.follow(image))
        followers.add("the transaction coordinator", lambda image, _: self.transactions.follow(image))
        followers.add("the groups", lambda _, difference: self.groups.topics_changed(difference))
        return followers

    def _follow_partitions(self) -> None:
        """Coordinators may have work in partitions that were opened some turns after the change."""
        self.groups.follow(self.image)
        self.transactions.follow(self.image)

    def _if_settings_changed(
        self, take: Callable[[Broker], None], image: MetadataImage, difference: Difference
    ) -> None:
        if any(resource_type == BROKER_RESOURCE for resource_type, _ in difference.configs_changed):
            take(self)

    def _follow_acls(self, image: MetadataImage) -> None:
        if self.authorizer.follow(image):
            self.replicas.withdraw_permits()

    def _follow_quotas(self, image: MetadataImage, difference: Difference) -> None:
        if difference.client_quotas_changed:
            self.quotas.follow(image)
            self.server.limits.follow(self.quotas.table)
            self.replicas.withdraw_permits()

    def _share_processors(self, image: MetadataImage, difference: Difference) -> None:
        if difference.brokers_changed:
            share_processors(image, self.id)

    def _follow_deleted_topics(self, image: MetadataImage, difference: Difference) -> None:
        for topic in difference.topics_deleted:
            for index in range(len(topic.partitions)):
                self.cleaner.forget(TopicPartition(topic.name, index))

    def _take_settings(self) -> None:
        image = self.image
        self.config = self.config.with_dynamic(
            image.config(*CLUSTER_DEFAULT), image.config(BROKER_RESOURCE, str(self.id))
        )


def _controller_settings(config: BrokerConfig) -> ControllerSettings:
    return ControllerSettings(
        config["num.partitions"],
        config["default.replication.factor"],
        config["leader.imbalance.check.interval.seconds"] if config["auto.leader.rebalance.enable"] else None,
        config["unclean.leader.election.interval.ms"] / 1000,
    )


def _raise_file_limit() -> int:
    """Every segment in use and every connection is a file; the soft limit of most systems is far too low for
    that. How many there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
