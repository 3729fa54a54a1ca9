"""Quotas of users, client ids and addresses: describe and change them.

An entity is a tuple of (type, name) pairs, see barnabas.security.quotas. The name None is the default."""

from collections.abc import Iterable, Mapping

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.errors import KafkaError, raise_for
from barnabas.security.quotas import Entity, FilterPart, entity_of
from barnabas.wire.messages import alter_client_quotas, describe_client_quotas

Changes = Mapping[str, float | None]


class QuotaAdmin(AdminBase):
    def describe_client_quotas(
        self, parts: Iterable[FilterPart] = (), *, strict: bool = False, timeout: float | None = None
    ) -> dict[Entity, dict[str, float]]:
        """The quotas of the entities that all parts of the filter match; all of them without a filter. If
        `strict`, the entities have no other parts.

        admin.describe_client_quotas([FilterPart("user", EXACT, "alice")], strict=True)"""
        components = [
            describe_client_quotas.ComponentData(
                entity_type=part.type, match_type=part.match_type, match=part.name
            )
            for part in parts
        ]

        async def ask() -> dict[Entity, dict[str, float]]:
            request = describe_client_quotas.DescribeClientQuotasRequest(
                components=list(components), strict=strict
            )
            connection = await self._cluster.any()
            response = await connection.send(describe_client_quotas.API_KEY, request)
            raise_for(response.error_code, response.error_message)
            return {
                entity_of((part.entity_type, part.entity_name) for part in entry.entity): {
                    value.key: value.value for value in entry.values
                }
                for entry in response.entries or ()
            }

        async def work(call: Call) -> dict[Entity, dict[str, float]]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def alter_client_quotas(
        self,
        changes: Mapping[Entity, Changes],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set quotas, or remove those whose new value is None; the others stay as they are.

        admin.alter_client_quotas({(("client-id", "app"),): {"producer_byte_rate": 1_000_000}})"""

        async def ask(entities: list[Entity]) -> dict[Entity, KafkaError | None]:
            request = alter_client_quotas.AlterClientQuotasRequest(
                entries=[_entry(entity, changes[entity]) for entity in entities], validate_only=validate_only
            )
            connection = await self._cluster.any()
            response = await connection.send(alter_client_quotas.API_KEY, request)
            return {
                entity_of((part.entity_type, part.entity_name) for part in entry.entity): outcome_of(
                    entry.error_code, entry.error_message, None
                )
                for entry in response.entries
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, changes, ask)

        self._run(timeout, work)


def _entry(entity: Entity, changes: Changes) -> alter_client_quotas.RequestEntryData:
    return alter_client_quotas.RequestEntryData(
        entity=[alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
