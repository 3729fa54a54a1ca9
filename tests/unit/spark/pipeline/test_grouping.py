"""Which sinks share a query, also when the file of a pipeline changes between two runs."""

from barnabas.spark.pipeline.definition import Pipeline, Rule, Source, TableSink, TopicSink
from barnabas.spark.pipeline.grouping import Group, Member, Record, groups_of, members_of, new_record

A, B, C = (Member(name, "orders", "append") for name in ("a", "b", "c"))
SUMS = Member("sums", "sums", "append")


def members_by_query(members: list[Member], record: Record, *started: str) -> dict[str, tuple[str, ...]]:
    return {group.name: group.members for group in groups_of(members, record, started)}


def test_members_of_one_root_share_a_query_and_one_alone_keeps_its_name() -> None:
    groups = groups_of([A, SUMS, B], {}, ())
    assert groups == [
        Group("orders", "orders", "append", ("a", "b")),
        Group("sums", "sums", "append", ("sums",)),
    ]


def test_only_a_query_with_the_name_of_its_member_is_not_shared() -> None:
    assert Group("orders", "orders", "append", ("a",)).is_shared
    assert not Group("a", "orders", "append", ("a",)).is_shared


def test_output_modes_need_queries_of_their_own() -> None:
    update = [Member(name, "orders", "update") for name in ("c", "d")]
    assert members_by_query([A, B, *update], {}) == {"orders": ("a", "b"), "orders-update": ("c", "d")}


def test_a_sink_that_is_added_later_has_a_query_of_its_own() -> None:
    assert members_by_query([A, B, C], {"orders": ["a", "b"]}) == {"orders": ("a", "b"), "c": ("c",)}


def test_a_shared_query_goes_on_with_one_member() -> None:
    assert members_by_query([A], {"orders": ["a", "b"]}) == {"orders": ("a",)}


def test_a_sink_with_its_own_checkpoint_keeps_its_query() -> None:
    assert members_by_query([A, B, C], {}, "a") == {"orders": ("b", "c"), "a": ("a",)}
    assert members_by_query([A, B], {}, "a") == {"a": ("a",), "b": ("b",)}


def test_a_sink_that_comes_back_is_a_new_one() -> None:
    record: Record = {"orders": ["a", "b"]}
    for members, expected in (
        ([A], {"orders": ("a",)}),
        ([A, B], {"orders": ("a",), "b": ("b",)}),
    ):
        groups = groups_of(members, record, ())
        assert {group.name: group.members for group in groups} == expected
        record = new_record(groups, record)


def test_a_shared_query_without_members_is_remembered_because_its_checkpoint_exists() -> None:
    record = new_record(
        groups_of([SUMS], {"orders": ["a", "b"], "sums": ["sums"]}, ["sums"]), {"orders": ["a"]}
    )
    assert record == {"orders": [], "sums": ["sums"]}
    assert members_by_query([A, B], record) == {"a": ("a",), "b": ("b",)}


def test_the_members_of_a_pipeline() -> None:
    upserts = TableSink("orders", path="t/newest", mode="upsert", key=("id",))
    pipeline = Pipeline(
        name="shop",
        bootstrap="localhost:9092",
        checkpoint="./state",
        sources={"orders": Source(topics=("orders",), bad_records="quarantine")},
        sinks=(upserts, TopicSink("sums", "totals", mode="complete"), TableSink("sums", path="t/sums")),
        quality={"sums": (Rule("known", "id > 0"),)},
    )
    assert members_of(pipeline, {"orders": "orders", "sums": "sums"}) == [
        # The rows of a source do not change, so an upsert needs no other output mode there.
        Member("orders-to-newest", "orders", "append"),
        Member("sums-to-totals", "sums", "complete"),
        Member("sums-to-sums", "sums", "append"),
        Member("undecodable-orders", "orders", "append"),
        Member("rejected-sums", "sums", "append"),
    ]
