"""Settings of topics, brokers and groups: describe and change them, list the resources that have any."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.types import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from barnabas.client.errors import KafkaError, raise_for
from barnabas.net.broker_connection import BrokerConnection
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
        """Settings by name: all of them, or only `keys`.

        For example, `admin.describe_configs([orders])[orders]["retention.ms"].value`, if `orders` is
        `ConfigResource(ConfigResourceType.TOPIC, "orders")`."""

        async def ask(
            connection: BrokerConnection, requested: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configuration_keys=None if keys is None else list(keys),
                    )
                    for resource in requested
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
            return await self._retry_items(call, resources, lambda left: self._by_broker(left, ask))

        return self._run(timeout, work)

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change some settings; the others stay as they are.

        admin.incremental_alter_configs({orders: [AlterConfigOp("retention.ms", "60000")]})"""
        operations = {resource: list(given) for resource, given in changes.items()}

        async def ask(
            connection: BrokerConnection, requested: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[_incremental(resource, operations[resource]) for resource in requested],
                validate_only=validate_only,
            )
            response = await connection.send(incremental_alter_configs.API_KEY, request)
            return _altered(response)

        async def work(call: Call) -> None:
            await self._retry_items(call, operations, lambda left: self._by_broker(left, ask))

        self._run(timeout, work)

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Replace all settings of a resource: those that are not given return to their defaults."""

        async def ask(
            connection: BrokerConnection, requested: list[ConfigResource]
        ) -> dict[ConfigResource, Entries | KafkaError]:
            request = alter_configs.AlterConfigsRequest(
                resources=[_replacement(resource, configs[resource]) for resource in requested],
                validate_only=validate_only,
            )
            response = await connection.send(alter_configs.API_KEY, request)
            return _altered(response)

        async def work(call: Call) -> None:
            await self._retry_items(call, configs, lambda left: self._by_broker(left, ask))

        self._run(timeout, work)

    def list_config_resources(
        self, types: Collection[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """The resources that have settings: those of the given types, or all."""

        async def ask() -> list[ConfigResource]:
            connection = await self._cluster.any()
            request = list_config_resources.ListConfigResourcesRequest(
                resource_types=[int(kind) for kind in types]
            )
            response = await connection.send(list_config_resources.API_KEY, request)
            raise_for(response.error_code)
            return [
                _resource(resource.resource_type, resource.resource_name)
                for resource in response.config_resources
                # A newer broker may have types that this client does not know.
                if resource.resource_type in _KNOWN_TYPES
            ]

        async def work(call: Call) -> list[ConfigResource]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    async def _by_broker(
        self, resources: list[ConfigResource], ask: _Ask
    ) -> dict[ConfigResource, Entries | KafkaError]:
        """Ask each broker about its own settings, and any broker about the rest."""
        outcomes: dict[ConfigResource, Entries | KafkaError] = {}
        by_broker: dict[int | None, list[ConfigResource]] = {}
        for resource in resources:
            own = resource.type in _OF_ONE_BROKER and resource.name.isdecimal()
            by_broker.setdefault(int(resource.name) if own else None, []).append(resource)
        for broker, requested in by_broker.items():
            try:
                connection = await (
                    self._cluster.any() if broker is None else self._cluster.connection(broker)
                )
                outcomes.update(await ask(connection, requested))
            except KafkaError as error:
                outcomes.update(dict.fromkeys(requested, error))
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
