"""Groups through each library's admin client: listed, described, deleted; offsets and members changed."""

from collections.abc import Callable, Iterator

import pytest
from tests.clients.client import BrokerError, Message, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.conftest import Join
from tests.clients.group_admins import CALLS, GROUP_ADMINS, GroupAdmin
from tests.clients.members import Member

from barnabas.errors import ErrorCode

MEMBERS = "confluent-kafka"
ASSIGNORS = {"classic": "range", "consumer": "uniform"}


def libraries_with(call: str) -> list[str]:
    return [library for library, calls in CALLS.items() if call in calls]


@pytest.fixture
def admin_of(quick_bootstrap: str) -> Iterator[Callable[[str], GroupAdmin]]:
    opened: list[GroupAdmin] = []

    def admin_of(library: str) -> GroupAdmin:
        opened.append(GROUP_ADMINS[library](quick_bootstrap))
        return opened[-1]

    yield admin_of
    for admin in opened:
        admin.close()


@pytest.fixture
def shared(quick_bootstrap: str, topic_name: str) -> str:
    """A topic with two partitions and three records in each."""
    ConfluentAdmin(quick_bootstrap).create_topic(topic_name, partitions=2)
    messages = [Message(b"x", partition=number) for number in (0, 1) for _ in range(3)]
    ConfluentClient(quick_bootstrap).produce(topic_name, messages)
    return topic_name


@pytest.fixture
def group(topic_name: str) -> str:
    """The group that `join` joins."""
    return f"of-{topic_name}"


@pytest.fixture
def alone(join: Join, quick_bootstrap: str, shared: str) -> Callable[..., Member]:
    """A member that has all partitions and has committed their ends."""

    def alone(protocol: str, instance_id: str | None = None) -> Member:
        member = join(
            MEMBERS,
            quick_bootstrap,
            commits=True,
            topics=(shared,),
            protocol=protocol,
            assignor=ASSIGNORS[protocol],
            instance_id=instance_id,
        )
        admin = GROUP_ADMINS["barnabas"](quick_bootstrap)
        try:
            ends = {(shared, 0): 3, (shared, 1): 3}
            wait_until(lambda: admin.offsets(f"of-{shared}") == ends, "all is committed", 45)
        finally:
            admin.close()
        return member

    return alone


def refused(code: ErrorCode) -> "pytest.RaisesExc[BrokerError]":
    return pytest.raises(BrokerError, check=lambda error: error.code == code)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_listed_by_state_and_type(
    admin_of: Callable[[str], GroupAdmin], alone: Callable[..., Member], group: str, protocol: str
) -> None:
    member = alone(protocol)
    other = {"classic": "consumer", "consumer": "classic"}[protocol]
    admins = [admin_of(library) for library in libraries_with("filters")]
    for admin in admins:
        assert group in admin.groups()
        assert group in admin.groups(states=["Stable"])
        assert group in admin.groups(states=["Empty", "Stable"])
        assert group in admin.groups(types=[protocol])
        assert group in admin.groups(states=["Stable"], types=[protocol])
        assert group not in admin.groups(states=["Empty"])
        assert group not in admin.groups(types=[other])
        assert group not in admin.groups(states=["Stable"], types=[other])
    assert group in admin_of("aiokafka").groups()
    member.leave()
    for admin in admins:
        wait_until(lambda admin=admin: group in admin.groups(states=["Empty"]), "the group is empty")
        assert group not in admin.groups(states=["Stable"])
        assert group in admin.groups(types=[protocol])


@pytest.mark.parametrize("library", libraries_with("describe"))
def test_a_classic_group_is_described(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    shared: str,
    group: str,
    library: str,
) -> None:
    alone("classic", instance_id="one")
    admin = admin_of(library)
    described = admin.describe(group)
    assert (described.state, described.assignor) == ("stable", "range")
    if library == "aiokafka":
        assert list(described.members) == ["rdkafka"]
    else:
        assert described.members == {"one": {(shared, 0), (shared, 1)}}


@pytest.mark.parametrize("library", ["confluent-kafka", "barnabas"])
def test_a_group_of_the_new_protocol_is_described(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    shared: str,
    group: str,
    library: str,
) -> None:
    alone("consumer", instance_id="one")
    described = admin_of(library).describe(group)
    assert (described.state, described.assignor) == ("stable", "uniform")
    assert described.members == {"one": {(shared, 0), (shared, 1)}}


def test_a_library_without_the_new_protocol_finds_no_such_group(
    admin_of: Callable[[str], GroupAdmin], alone: Callable[..., Member], group: str
) -> None:
    alone("consumer")
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        admin_of("kafka-python").describe(group)
    # aiokafka asks in a version that knows no such error.
    described = admin_of("aiokafka").describe(group)
    assert (described.state, described.members) == ("dead", {})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("library", libraries_with("delete"))
def test_a_group_without_members_is_deleted(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    group: str,
    library: str,
    protocol: str,
) -> None:
    admin = admin_of(library)
    member = alone(protocol)
    with refused(ErrorCode.NON_EMPTY_GROUP):
        admin.delete(group)
    member.leave()
    wait_until(lambda: group in admin.groups(states=["Empty"]), "the group is empty")
    admin.delete(group)
    assert group not in admin.groups()
    assert admin.offsets(group) == {}
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        admin.delete(group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("library", libraries_with("alter offsets"))
def test_offsets_of_a_group_without_members_are_altered(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    shared: str,
    group: str,
    library: str,
    protocol: str,
) -> None:
    admin = admin_of(library)
    member = alone(protocol)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        admin.alter_offsets(group, {(shared, 0): 1})
    member.leave()
    wait_until(lambda: group in admin.groups(states=["Empty"]), "the group is empty")
    admin.alter_offsets(group, {(shared, 0): 1})
    assert admin.offsets(group) == {(shared, 0): 1, (shared, 1): 3}
    # The next consumer begins there.
    again = alone(protocol)
    assert [(seen.partition, seen.offset) for seen in again.received] == [(0, 1), (0, 2)]


@pytest.mark.parametrize("library", libraries_with("alter offsets"))
def test_altering_offsets_makes_a_group(
    admin_of: Callable[[str], GroupAdmin], shared: str, group: str, library: str
) -> None:
    admin = admin_of(library)
    admin.alter_offsets(group, {(shared, 1): 2})
    assert admin.offsets(group) == {(shared, 1): 2}
    assert group in admin.groups(states=["Empty"], types=["classic"])
    admin.delete(group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("library", libraries_with("delete offsets"))
def test_offsets_are_deleted_unless_a_member_reads_the_topic(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    shared: str,
    group: str,
    library: str,
    protocol: str,
) -> None:
    admin = admin_of(library)
    member = alone(protocol)
    with refused(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
        admin.delete_offsets(group, [(shared, 0)])
    member.leave()
    wait_until(lambda: group in admin.groups(states=["Empty"]), "the group is empty")
    admin.delete_offsets(group, [(shared, 0)])
    assert admin.offsets(group) == {(shared, 1): 3}
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        admin.delete_offsets(f"not-{group}", [(shared, 0)])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("library", libraries_with("remove members"))
def test_a_static_member_is_removed_by_its_name(
    admin_of: Callable[[str], GroupAdmin],
    alone: Callable[..., Member],
    group: str,
    library: str,
    protocol: str,
) -> None:
    admin = admin_of(library)
    member = alone(protocol, instance_id="one")
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        admin.remove_members(group, ["two"])
    # A static member that stops is still in.
    member.leave()
    assert group not in admin.groups(states=["Empty"])
    admin.remove_members(group, ["one"])
    assert group in admin.groups(states=["Empty"])
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        admin.remove_members(group, ["one"])
