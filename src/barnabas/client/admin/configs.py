"""Settings of topics, brokers and groups: describe, change, list what has any."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.types import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from barnabas.client.connection import BrokerConnection
from barnabas.client.errors import KafkaError, raise_for
from barnabas.wire.messages import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)

Entries = dict[str, ConfigEntry]
_Ask = Callable[
    [BrokerConnection, list[ConfigResource]], Awaitable[dict[ConfigResource, "Entries | KafkaError"]]
]
_KNOWN_TYPES = frozenset(map(int, ConfigResourceType))
_OF_ONE_BROKER = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)


class ConfigAdmin(AdminBase):
    def describe_configs(
        self,
        resources: Collection[ConfigResource],
        *,
        keys: Collection[str] | None = None,
        include_synonyms: bool = True,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, Entries]:
        """Settings by name, all or those of `keys`.

        orders = ConfigResource(ConfigResourceType.TOPIC, "orders")
        admin.describe_configs([orders])[orders]["retention.ms"].value"""

        async def ask(
            connection: BrokerConnection, asked: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configuration_keys=None if keys is None else list(keys),
                    )
                    for resource in asked
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            response = await connection.send(describe_configs.API_KEY, request)
            return {
                _resource(result.resource_type, result.resource_name): outcome_of(
                    result.error_code,
                    result.error_message,
                    {entry.name: _entry(entry) for entry in result.configs},
                )
                for result in response.results
            }

        async def work(call: Call) -> dict[ConfigResource, Entries]:
            return await self._settle(call, resources, lambda left: self._by_broker(left, ask))

        return self._run(timeout, work)

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change some settings and leave the others.

        admin.incremental_alter_configs({orders: [AlterConfigOp("retention.ms", "60000")]})"""
        wanted = {resource: list(operations) for resource, operations in changes.items()}

        async def ask(
            connection: BrokerConnection, asked: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[_incremental(resource, wanted[resource]) for resource in asked],
                validate_only=validate_only,
            )
            response = await connection.send(incremental_alter_configs.API_KEY, request)
            return _altered(response)

        async def work(call: Call) -> None:
            await self._settle(call, wanted, lambda left: self._by_broker(left, ask))

        self._run(timeout, work)

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Replace all settings of a resource: what is not named falls back to its default."""

        async def ask(
            connection: BrokerConnection, asked: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = alter_configs.AlterConfigsRequest(
                resources=[_replacement(resource, configs[resource]) for resource in asked],
                validate_only=validate_only,
            )
            response = await connection.send(alter_configs.API_KEY, request)
            return _altered(response)

        async def work(call: Call) -> None:
            await self._settle(call, configs, lambda left: self._by_broker(left, ask))

        self._run(timeout, work)

    def list_config_resources(
        self, types: Collection[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """What has settings: of the given types, or of all."""

        async def ask() -> list[ConfigResource]:
            connection = await self._cluster.any()
            request = list_config_resources.ListConfigResourcesRequest(
                resource_types=[int(kind) for kind in types]
            )
            response = await connection.send(list_config_resources.API_KEY, request)
            raise_for(response.error_code)
            return [
                _resource(found.resource_type, found.resource_name)
                for found in response.config_resources
                # A newer broker may have kinds that this client has no name for.
                if found.resource_type in _KNOWN_TYPES
            ]

        async def work(call: Call) -> list[ConfigResource]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    async def _by_broker(
        self, resources: list[ConfigResource], ask: _Ask
    ) -> dict[ConfigResource, Entries | KafkaError]:
        """A broker answers for its own settings; any answers for the rest."""
        outcomes: dict[ConfigResource, Entries | KafkaError] = {}
        by_broker: dict[int | None, list[ConfigResource]] = {}
        for resource in resources:
            own = resource.type in _OF_ONE_BROKER and resource.name.isdecimal()
            by_broker.setdefault(int(resource.name) if own else None, []).append(resource)
        for broker, asked in by_broker.items():
            try:
                connection = await (
                    self._cluster.any() if broker is None else self._cluster.connection(broker)
                )
                outcomes.update(await ask(connection, asked))
            except KafkaError as error:
                outcomes.update(dict.fromkeys(asked, error))
        return outcomes


def _resource(number: int, name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType(number), name)


def _entry(entry: describe_configs.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        entry.name,
        entry.value,
        entry.config_source,
        entry.is_sensitive,
        entry.read_only,
        entry.config_type,
        tuple(ConfigSynonym(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms),
        entry.documentation or None,
    )


def _incremental(
    resource: ConfigResource, operations: list[AlterConfigOp]
) -> incremental_alter_configs.AlterConfigsResource:
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=operation.name, value=operation.value, config_operation=operation.operation
            )
            for operation in operations
        ],
    )


def _replacement(resource: ConfigResource, configs: Mapping[str, str]) -> alter_configs.AlterConfigsResource:
    return alter_configs.AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[alter_configs.AlterableConfig(name=name, value=value) for name, value in configs.items()],
    )


def _altered(
    response: alter_configs.AlterConfigsResponse | incremental_alter_configs.IncrementalAlterConfigsResponse,
) -> dict[ConfigResource, Entries | KafkaError]:
    nothing: Entries = {}
    return {
        _resource(result.resource_type, result.resource_name): outcome_of(
            result.error_code, result.error_message, nothing
        )
        for result in response.responses
    }
