"""The follower's side of a fetch session: the leader remembers what is fetched, and requests name only what
has changed (KIP-227).

After any error the next request names everything and begins a new session, so that both sides agree again."""

from collections.abc import Iterable

from barnabas.ids import Uuid
from barnabas.replication.following.followed import Followed, PartitionKey
from barnabas.wire.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
EPOCH_INITIAL = 0
EPOCH_MAX = 2**31 - 1


class FollowerSession:
    """`epoch`: of the next request. `partitions`: the keys that the leader has in this session."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = EPOCH_INITIAL
        self.partitions: set[PartitionKey] = set()

    @property
    def is_new(self) -> bool:
        """Whether the next request has to name all partitions."""
        return self.epoch == EPOCH_INITIAL

    def write_to(
        self,
        request: FetchRequest,
        changed: Iterable[Followed],
        forgotten: Iterable[PartitionKey],
        bytes_max: int,
    ) -> None:
        """Put the session and its changes into a request. `changed` are all partitions if the session is
        new."""
        request.session_id, request.session_epoch = self.id, self.epoch
        topics: dict[Uuid, FetchTopic] = {}
        for followed in changed:
            topic = topics.get(followed.key[0])
            if topic is None:
                name = followed.partition.topic_partition.topic
                topic = topics[followed.key[0]] = FetchTopic(topic_id=followed.key[0], topic=name)
            topic.partitions.append(followed.request(bytes_max))
            followed.is_requested = True
            self.partitions.add(followed.key)
        request.topics = list(topics.values())
        left: dict[Uuid, list[int]] = {}
        for key in forgotten:
            self.partitions.discard(key)
            left.setdefault(key[0], []).append(key[1])
        request.forgotten_topics_data = [
            ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in left.items()
        ]

    def sent(self) -> None:
        """A request is sent with this epoch; the next one has the next epoch. After the first request of a
        session that is not known before its answer."""
        if not self.is_new:
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def take(self, session_id: int) -> None:
        """The leader has answered a request without an error and named the session."""
        if session_id == NO_SESSION:
            # It has no room for a session.
            self.restart()
        elif self.is_new:
            self.id, self.epoch = session_id, EPOCH_INITIAL + 1

    def restart(self) -> None:
        """Name everything in the next request. It also ends the old session, if the leader has it."""
        self.epoch = EPOCH_INITIAL
        self.partitions.clear()

    def forget(self) -> None:
        """The leader does not have the session."""
        self.id = NO_SESSION
        self.restart()
