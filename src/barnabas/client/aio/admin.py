"""The admin client for asyncio: every method of Admin, as a coroutine.

    async with AsyncAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topics([NewTopic("orders", partitions=3)])
        print(await admin.lag_of("billing"))

Arguments, results and errors are those of Admin."""

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

from barnabas.client.admin import Admin
from barnabas.client.admin.base import Call
from barnabas.client.aio.bridge import run_on, running_loop, stop
from barnabas.client.habits import Hinted
from barnabas.client.settings import AdminSettings

_T = TypeVar("_T")
_P = ParamSpec("_P")


class _Planner(Admin):
    """An Admin whose methods only store the coroutine that they would run, so that it can be awaited."""

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[AdminSettings]) -> None:
        super().__init__(settings, **keywords)
        self._planned: Coroutine[Any, Any, Any] | None = None

    def _run(self, timeout: float | None, work: Callable[[Call], Coroutine[Any, Any, _T]]) -> _T:
        seconds = self._config.seconds("default.api.timeout.ms") if timeout is None else timeout
        self._planned = self._bounded(seconds, work)
        return cast(_T, None)

    async def perform(self, method: Callable[[], _T]) -> _T:
        """Await the coroutine that a method of this object has stored. Every method calls `_run` once."""
        method()
        planned, self._planned = self._planned, None
        assert planned is not None
        return cast(_T, await run_on(self._io, planned))

    async def end(self) -> None:
        if self._io.is_running:
            await run_on(self._io, self._cluster.close())
            await stop(self._io)


def _awaited(
    method: Callable[Concatenate[Admin, _P], _T],
) -> Callable[Concatenate["AsyncAdmin", _P], Coroutine[Any, Any, _T]]:
    """The method of Admin, as a coroutine."""

    @functools.wraps(method)
    async def perform(self: "AsyncAdmin", /, *arguments: _P.args, **keywords: _P.kwargs) -> _T:
        planner = self._planner
        return await planner.perform(lambda: method(planner, *arguments, **keywords))

    return perform


class AsyncAdmin(Hinted):
    """The settings are Kafka's: keyword arguments with underscores, or a dict with dots."""

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[AdminSettings]) -> None:
        running_loop("admin client")
        self._planner = _Planner(settings, **keywords)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; waiting calls fail. May be called twice."""
        await self._planner.end()

    create_topics = _awaited(Admin.create_topics)
    delete_topics = _awaited(Admin.delete_topics)
    create_partitions = _awaited(Admin.create_partitions)
    list_topics = _awaited(Admin.list_topics)
    describe_topics = _awaited(Admin.describe_topics)

    describe_configs = _awaited(Admin.describe_configs)
    incremental_alter_configs = _awaited(Admin.incremental_alter_configs)
    alter_configs = _awaited(Admin.alter_configs)
    list_config_resources = _awaited(Admin.list_config_resources)

    describe_cluster = _awaited(Admin.describe_cluster)
    fetch_metadata = _awaited(Admin.fetch_metadata)
    api_versions = _awaited(Admin.api_versions)
    unregister_broker = _awaited(Admin.unregister_broker)
    describe_features = _awaited(Admin.describe_features)
    update_features = _awaited(Admin.update_features)
    describe_log_dirs = _awaited(Admin.describe_log_dirs)
    list_partition_reassignments = _awaited(Admin.list_partition_reassignments)
    alter_partition_reassignments = _awaited(Admin.alter_partition_reassignments)
    elect_leaders = _awaited(Admin.elect_leaders)
    alter_replica_log_dirs = _awaited(Admin.alter_replica_log_dirs)
    read_replicas = _awaited(Admin.read_replicas)
    leader_epochs = _awaited(Admin.leader_epochs)
    replica_ends = _awaited(Admin.replica_ends)

    list_groups = _awaited(Admin.list_groups)
    list_consumer_groups = _awaited(Admin.list_consumer_groups)
    describe_consumer_groups = _awaited(Admin.describe_consumer_groups)
    delete_consumer_groups = _awaited(Admin.delete_consumer_groups)
    remove_members_from_consumer_group = _awaited(Admin.remove_members_from_consumer_group)
    list_consumer_group_offsets = _awaited(Admin.list_consumer_group_offsets)
    alter_consumer_group_offsets = _awaited(Admin.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _awaited(Admin.delete_consumer_group_offsets)
    lag_of = _awaited(Admin.lag_of)

    delete_records = _awaited(Admin.delete_records)
    list_offsets = _awaited(Admin.list_offsets)
    read_batches = _awaited(Admin.read_batches)
    append_batches = _awaited(Admin.append_batches)
    new_producer_identity = _awaited(Admin.new_producer_identity)

    describe_producers = _awaited(Admin.describe_producers)
    describe_client_quotas = _awaited(Admin.describe_client_quotas)
    alter_client_quotas = _awaited(Admin.alter_client_quotas)
    list_transactions = _awaited(Admin.list_transactions)
    describe_transactions = _awaited(Admin.describe_transactions)
    abort_transaction = _awaited(Admin.abort_transaction)
    fence_producers = _awaited(Admin.fence_producers)
    force_terminate_transaction = _awaited(Admin.force_terminate_transaction)

    create_acls = _awaited(Admin.create_acls)
    describe_acls = _awaited(Admin.describe_acls)
    delete_acls = _awaited(Admin.delete_acls)
    describe_user_scram_credentials = _awaited(Admin.describe_user_scram_credentials)
    alter_user_scram_credentials = _awaited(Admin.alter_user_scram_credentials)
    create_delegation_token = _awaited(Admin.create_delegation_token)
    renew_delegation_token = _awaited(Admin.renew_delegation_token)
    expire_delegation_token = _awaited(Admin.expire_delegation_token)
    describe_delegation_tokens = _awaited(Admin.describe_delegation_tokens)
