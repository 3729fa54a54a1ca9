"""Roots are found in Spark's plans; whatever is not known to have no state makes a root."""

import pytest

from barnabas.spark.pipeline.lineage import ALIAS, roots_in

ORDERS = f"""\
~SubqueryAlias {ALIAS}orders
+- ~DeduplicateWithinWatermark [id#20L]
   +- ~EventTimeWatermark bfe11476, at#22: timestamp, 1 hours
      +- ~StreamingRelationV2 org.apache.spark.PythonDataSourceV2@6c, barnabas, [subscribe=a], [id#20L]
"""


def above(plan: str, *nodes: str) -> str:
    """The plan with nodes above it, the first of them at the top."""
    for node in reversed(nodes):
        lines = plan.splitlines()
        plan = "\n".join([node, f"+- {lines[0]}", *(f"   {line}" for line in lines[1:])])
    return plan + "\n"


def test_state_below_the_root_does_not_count() -> None:
    assert roots_in(ORDERS) == {"orders"}
    view = "View (`orders`, [id#20L])"
    plan = above(ORDERS, "~Project [id#20L]", "~Filter (id#20L > 1)", "~SubqueryAlias orders", view)
    assert roots_in(plan) == {"orders"}


@pytest.mark.parametrize(
    "node",
    [
        "~Aggregate [id#20L], [sum(amount#21) AS s#1]",
        "~Deduplicate [id#20L]",
        "~DeduplicateWithinWatermark [id#20L]",
        "~Distinct",
        "~GlobalLimit 3",
        "Window [row_number() windowspecdefinition(id#20L)]",
        "~FlatMapGroupsInPandasWithState f(id#20L)",
        "TransformWithStateInPandas",
        "ANodeOfTheFuture",
        "'~strange text'",
        "",
    ],
)
def test_everything_that_is_not_known_makes_a_root(node: str) -> None:
    assert roots_in(above(ORDERS, "~Project [id#20L]", node)) is None


def test_two_branches_of_one_root_are_still_one_root() -> None:
    first = "\n".join(
        f":{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(ORDERS.splitlines())
    )
    second = "\n".join(
        f"{'+- ' if number == 0 else '   '}{line}" for number, line in enumerate(ORDERS.splitlines())
    )
    assert roots_in(f"~Union false, false\n{first}\n{second}\n") == {"orders"}
    other = second.replace(f"{ALIAS}orders", f"{ALIAS}payments")
    assert roots_in(f"~Union false, false\n{first}\n{other}\n") == {"orders", "payments"}


def test_a_plan_without_a_root_has_none() -> None:
    assert roots_in(above("OneRowRelation", "Project [1 AS a#1]")) is None
    assert roots_in("") == set()
