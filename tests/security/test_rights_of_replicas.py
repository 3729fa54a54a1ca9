"""A follower needs CLUSTER_ACTION, also while it fetches the short way: what is taken away counts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.raw_calls import Topic, batch_of, produce_request
from tests.support.small_cluster import SmallCluster, eventually, run_cluster

from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.errors import ErrorCode
from barnabas.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

PRODUCE = 0
DENIAL = Acl(
    ResourceType.CLUSTER,
    CLUSTER_NAME,
    PatternType.LITERAL,
    "User:ANONYMOUS",
    "*",
    Operation.CLUSTER_ACTION,
    Permission.DENY,
)


async def produced(cluster: SmallCluster, timeout_ms: int) -> int:
    """The error of a batch that all replicas have to confirm."""
    leader = cluster.brokers[1].image.topics["orders"].partitions[0].leader
    topic = cluster.brokers[leader].image.topics["orders"]
    request = produce_request(Topic(topic.name, topic.id), batch_of(b"value"))
    request.timeout_ms = timeout_ms
    answer: Any = await (await cluster.client(leader)).send(PRODUCE, request)
    return int(answer.responses[0].partition_responses[0].error_code)


async def story(cluster: SmallCluster) -> None:
    # Everybody may do everything until there is an ACL about the cluster.
    settings = {"authorizer_class_name": STANDARD_AUTHORIZER, "allow_everyone_if_no_acl_found": "true"}
    await cluster.start(1, 2, **settings)
    await cluster.create_topic(1, "orders", replicas=2)
    for _ in range(5):
        assert await produced(cluster, 10_000) == ErrorCode.NONE
    controller = next(each.controller for each in cluster.brokers.values() if each.controller.active)
    assert await controller.create_acls([DENIAL]) == [None]
    await eventually(lambda: all(len(each.image.acls) == 1 for each in cluster.brokers.values()))
    assert await produced(cluster, 500) == ErrorCode.REQUEST_TIMED_OUT
    await controller.delete_acls([AclFilter()])

    async def is_produced() -> bool:
        return await produced(cluster, 2000) == ErrorCode.NONE

    await eventually(is_produced)


def test_a_follower_without_the_right_does_not_confirm_anything(tmp_path: Path) -> None:
    run_cluster(tmp_path, story)
