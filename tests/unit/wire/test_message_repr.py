"""Messages can be printed, shared defaults too."""

from barnabas.wire.messages.fetch import FetchRequest, FetchTopic, ReplicaState


def test_only_what_differs_from_the_default_is_shown() -> None:
    request = FetchRequest(max_wait_ms=5, topics=[FetchTopic(topic="orders")])
    assert repr(request) == "FetchRequest(max_wait_ms=5, topics=[FetchTopic(topic='orders')])"


def test_a_shared_default_can_be_printed() -> None:
    assert repr(FetchRequest().replica_state) == repr(ReplicaState()) == "ReplicaState()"
