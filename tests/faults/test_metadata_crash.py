"""The embedded metadata store after a crash: all that was acknowledged is there, and nothing is half there.

The file system here is a model that knows what is synced. A run is stopped at each of its file operations,
also in the middle of a write. Then the store is opened on the files as they are after a killed process
(everything that was written is there) and after several kinds of power loss."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.files import RealFiles
from barnabas.metadata.follower import Follower
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from barnabas.metadata.store import RecordBatch, StoreError

DIRECTORY = Path("/data/barnabas-metadata")
LOG = DIRECTORY / "metadata.log"


class Crash(Exception):
    """The process ends here. It is not an OSError, so no code of ours handles it."""


@dataclass(eq=False)
class Inode:
    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


class ModelFiles:
    """Files in memory that stop at operation `crash_at`; a write gets `part` of its bytes done first."""

    def __init__(self, crash_at: int = 1 << 30, part: float = 0.0) -> None:
        self.names: dict[Path, Inode] = {}
        self.durable_names: dict[Path, Inode] = {}
        self.operations = 0
        self.crash_at = crash_at
        self.part = part
        self._open: dict[int, Inode] = {}

    def _step(self) -> None:
        self.operations += 1
        if self.operations > self.crash_at:
            raise Crash

    def _descriptor(self, inode: Inode) -> int:
        descriptor = len(self._open) + 3
        self._open[descriptor] = inode
        return descriptor

    def make_directory(self, path: Path) -> None:
        self._step()
        self.names.setdefault(path, Inode())

    def exists(self, path: Path) -> bool:
        return path in self.names

    def read(self, path: Path) -> bytes:
        return bytes(self.names[path].content)

    def create(self, path: Path) -> int:
        self._step()
        self.names[path] = Inode()
        return self._descriptor(self.names[path])

    def open(self, path: Path) -> int:
        return self._descriptor(self.names[path])

    def write(self, descriptor: int, data: bytes, position: int) -> None:
        content = self._open[descriptor].content
        try:
            self._step()
        except Crash:
            if self.operations == self.crash_at + 1:
                done = data[: int(len(data) * self.part)]
                content[position : position + len(done)] = done
            raise
        content[position : position + len(data)] = data

    def truncate(self, descriptor: int, size: int) -> None:
        self._step()
        del self._open[descriptor].content[size:]

    def sync(self, descriptor: int) -> None:
        self._step()
        inode = self._open[descriptor]
        inode.durable = bytes(inode.content)

    def sync_directory(self, path: Path) -> None:
        self._step()
        for name in [name for name in self.durable_names if name.parent == path]:
            del self.durable_names[name]
        self.durable_names.update({name: inode for name, inode in self.names.items() if name.parent == path})

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        self.names[target] = self.names.pop(source)

    def remove(self, path: Path) -> None:
        self._step()
        self.names.pop(path, None)

    def close(self, descriptor: int) -> None:
        pass

    def lock(self, path: Path) -> int | None:
        return -1

    def survivor(self, names: dict[Path, Inode], contents: dict[Inode, bytes]) -> "ModelFiles":
        survivor = ModelFiles()
        for name, inode in names.items():
            if name != DIRECTORY and DIRECTORY not in names:
                # A file is lost if its directory was never synced to the parent.
                continue
            content = contents.get(inode, inode.durable)
            survivor.names[name] = survivor.durable_names[name] = Inode(bytearray(content), content)
        return survivor

    def after_crash(self) -> "dict[str, ModelFiles]":
        """The files that the next start may find, by the kind of crash."""
        inodes = {*self.names.values(), *self.durable_names.values()}
        written = {inode: bytes(inode.content) for inode in inodes}
        half = {i: bytes(i.content[: (len(i.durable) + len(i.content)) // 2]) for i in inodes}
        # The size was written to the disk, but the data was not.
        zeros = {i: i.durable + bytes(max(0, len(i.content) - len(i.durable))) for i in inodes}
        # A name may be on the disk before its directory is synced.
        return {
            "killed": self.survivor(self.names, written),
            "power lost, names old": self.survivor(self.durable_names, {}),
            "power lost, names new": self.survivor(self.names, {}),
            "power lost, half of the tail": self.survivor(self.durable_names, half),
            "power lost, zeros for a tail": self.survivor(self.durable_names, zeros),
        }


def topic(number: int):
    """One append: a topic with its partitions and a config, which must be visible completely or not at
    all."""
    uuid = number.to_bytes(16, "big")
    return [
        TopicRecord(f"topic-{number}", uuid),
        PartitionRecord(uuid, 0, (1,), (1,), 1),
        PartitionRecord(uuid, 1, (1,), (1,), 1),
        ConfigRecord(2, f"topic-{number}", "retention.ms", str(number)),
    ]


APPENDS = 7
IMAGES = [MetadataImage()]
for number in range(1, APPENDS + 1):
    IMAGES.append(IMAGES[-1].apply(topic(number)))
# {number of appends: number of appends in the snapshot}; the second and third leave a batch in the log.
SNAPSHOTS = {2: 2, 4: 3, 6: 5}


@dataclass
class Progress:
    opened: bool = False
    cluster_id: str = ""
    acknowledged: int = 0


async def scenario(files: ModelFiles, progress: Progress) -> None:
    store = await EmbeddedStore.open(DIRECTORY, files=files)
    progress.opened, progress.cluster_id = True, store.cluster_id
    epoch = (await store.campaign(1)).epoch
    for number in range(1, APPENDS + 1):
        await store.append(topic(number), IMAGES[number - 1].offset, epoch)
        progress.acknowledged = number
        if number in SNAPSHOTS:
            await store.snapshot(IMAGES[SNAPSHOTS[number]], epoch)


async def loaded(files) -> tuple[EmbeddedStore, MetadataImage]:
    store = await EmbeddedStore.open(DIRECTORY, files=files)
    follower = Follower(store)
    await follower.start()
    return store, follower.image


def same(image: MetadataImage, expected: MetadataImage) -> bool:
    return (image.offset, image.topics, image.configs, image.topic_names) == (
        expected.offset,
        expected.topics,
        expected.configs,
        expected.topic_names,
    )


async def check_survivor(files: ModelFiles, progress: Progress, where: str) -> None:
    store, image = await loaded(files)
    if progress.opened:
        assert store.cluster_id == progress.cluster_id, where
    candidates = IMAGES[progress.acknowledged : progress.acknowledged + 2]
    assert any(same(image, expected) for expected in candidates), where
    # The next append is written at the end of the log and is there after another restart.
    epoch = (await store.campaign(1)).epoch
    await store.append(topic(99), image.offset, epoch)
    again, after = await loaded(files)
    assert again.cluster_id == store.cluster_id, where
    assert same(after, image.apply(topic(99))), where


def test_a_crash_at_any_file_operation_loses_nothing_acknowledged():
    async def run() -> int:
        whole = ModelFiles()
        await scenario(whole, Progress())
        for crash_at in range(whole.operations):
            for part in (0.0, 0.3, 0.7, 0.99, 1.0):
                files, progress = ModelFiles(crash_at, part), Progress()
                with pytest.raises(Crash):
                    await scenario(files, progress)
                for kind, survivor in files.after_crash().items():
                    await check_survivor(survivor, progress, f"operation {crash_at}, part {part}, {kind}")
        return whole.operations

    operations = asyncio.run(run())
    # Seven appends of two steps and three snapshots of five: the crash went through every one of them.
    assert operations >= 2 * APPENDS + 5 * len(SNAPSHOTS)


def test_a_crash_during_recovery_loses_nothing_either():
    async def run() -> None:
        files = ModelFiles()
        await scenario(files, Progress())
        torn = bytes(files.names[LOG].content[:-5])
        for crash_at in range(10):
            survivor = files.survivor(files.names, {files.names[LOG]: torn})
            survivor.crash_at = crash_at
            with suppress(Crash):
                await EmbeddedStore.open(DIRECTORY, files=survivor)
            progress = Progress(acknowledged=APPENDS - 1)
            for kind, after in survivor.after_crash().items():
                await check_survivor(after, progress, f"operation {crash_at}, {kind}")

    asyncio.run(run())


async def finished(with_snapshot: bool) -> bytes:
    files = ModelFiles()
    store = await EmbeddedStore.open(DIRECTORY, files=files)
    epoch = (await store.campaign(1)).epoch
    for number in range(1, 4):
        await store.append(topic(number), IMAGES[number - 1].offset, epoch)
    if with_snapshot:
        await store.snapshot(IMAGES[1], epoch)
    return files.read(LOG)


def on_disk(content: bytes) -> ModelFiles:
    files = ModelFiles()
    inode = Inode()
    return files.survivor({DIRECTORY: Inode(), LOG: inode}, {inode: content})


def frame_ends(data: bytes) -> list[int]:
    ends, position = [], 0
    while position < len(data):
        position += 8 + int.from_bytes(data[position : position + 4], "big")
        ends.append(position)
    return ends


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_log_cut_at_any_byte_loads_every_whole_append(with_snapshot):
    async def run() -> None:
        data = await finished(with_snapshot)
        ends = frame_ends(data)
        base = ends[1 if with_snapshot else 0]
        first = 1 if with_snapshot else 0
        for cut in range(len(data) + 1):
            files = on_disk(data[:cut])
            if cut < base:
                # Header and snapshot are renamed when complete: a crash cannot leave a short one.
                with pytest.raises(StoreError, match="is damaged at byte"):
                    await EmbeddedStore.open(DIRECTORY, files=files)
                continue
            _, image = await loaded(files)
            whole = first + sum(base < end <= cut for end in ends)
            assert same(image, IMAGES[whole]), cut
            assert len(files.read(LOG)) == max(end for end in ends if end <= cut)

    asyncio.run(run())


@pytest.mark.parametrize("mask", [0x01, 0x80])
@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_flipped_bit_is_refused_or_cuts_only_the_last_append(with_snapshot, mask):
    async def run() -> None:
        data = await finished(with_snapshot)
        last = frame_ends(data)[-2]
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= mask
            files = on_disk(bytes(damaged))
            if position < last:
                with pytest.raises(StoreError, match=r"damaged at byte .*restore it from a backup"):
                    await EmbeddedStore.open(DIRECTORY, files=files)
                assert files.read(LOG) == bytes(damaged)
            else:
                _, image = await loaded(files)
                assert same(image, IMAGES[2]), position

    asyncio.run(run())


@pytest.mark.parametrize(
    "tail", [b"\0", bytes(7), bytes(8), bytes(4096), b"garbage", b'{"', random.Random(7).randbytes(3000)]
)
def test_bytes_after_the_last_append_that_are_no_append_are_cut(tail):
    async def run() -> None:
        data = await finished(with_snapshot=False)
        files = on_disk(data + tail)
        _, image = await loaded(files)
        assert same(image, IMAGES[3])
        assert files.read(LOG) == data

    asyncio.run(run())


def test_a_missing_batch_in_the_middle_is_refused():
    async def run() -> None:
        data = await finished(with_snapshot=False)
        ends = frame_ends(data)
        with pytest.raises(StoreError, match="expected offset 4, got 8"):
            await EmbeddedStore.open(DIRECTORY, files=on_disk(data[: ends[1]] + data[ends[2] :]))

    asyncio.run(run())


def test_a_config_value_that_looks_like_a_frame_does_not_make_a_torn_tail_look_like_damage():
    async def run() -> None:
        files = ModelFiles()
        store = await EmbeddedStore.open(DIRECTORY, files=files)
        epoch = (await store.campaign(1)).epoch
        inner = files.read(LOG).decode("latin-1")
        await store.append(topic(1), 0, epoch)
        acknowledged = len(files.read(LOG))
        await store.append([ConfigRecord(2, "topic-1", "k", inner)], 4, epoch)
        data = files.read(LOG)
        for cut in range(acknowledged, len(data)):
            _, image = await loaded(on_disk(data[:cut]))
            assert same(image, IMAGES[1]), cut

    asyncio.run(run())


def test_the_model_agrees_with_a_real_disk(tmp_path):
    """The same log, on real files, cut at its last byte."""

    async def run() -> None:
        store = await EmbeddedStore.open(tmp_path / "m", files=RealFiles())
        epoch = (await store.campaign(1)).epoch
        await store.append(topic(1), 0, epoch)
        await store.append(topic(2), 4, epoch)
        await store.close()
        log = tmp_path / "m" / "metadata.log"
        os.truncate(log, log.stat().st_size - 1)
        store = await EmbeddedStore.open(tmp_path / "m")
        assert list(await store.read(0)) == [RecordBatch(0, tuple(topic(1)))]
        await store.append(topic(3), 4, (await store.campaign(1)).epoch)
        await store.close()
        store = await EmbeddedStore.open(tmp_path / "m")
        assert [update.end_offset for update in await store.read(0)] == [4, 8]
        await store.close()

    asyncio.run(run())


WRITER = """
import asyncio, sys
from pathlib import Path
from barnabas.config.values import BrokerConfig
from barnabas.ids import random_uuid
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration
from barnabas.metadata.topics import NewTopic

async def main(directory, prefix):
    store = await EmbeddedStore.open(Path(directory), snapshot_bytes_min=2000)
    registration = BrokerRegistration(1, random_uuid(), (Listener("PLAINTEXT", "h", 1),))
    config = BrokerConfig({"node.id": "1"})
    node = await MetadataNode.start(store, registration, ConfigRules(lambda: config))
    await node.controller.heartbeat(Heartbeat(1, node.broker_epoch, node.image.offset))
    for number in range(100_000):
        name = f"{prefix}-{number}"
        await node.controller.create_topics([NewTopic(name, 2, configs={"retention.ms": "5"})])
        block = await node.controller.allocate_producer_ids(1, node.broker_epoch)
        print(name, block.first_id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_kill_minus_nine_loses_no_topic_and_repeats_no_producer_id(tmp_path):
    directory = tmp_path / "m"
    acknowledged: list[str] = []
    first_ids: list[int] = []
    for life in range(4):
        command = [sys.executable, "-c", WRITER, str(directory), f"life{life}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(15 + 7 * life):
                name, first_id = process.stdout.readline().split()
                acknowledged.append(name)
                first_ids.append(int(first_id))
            process.send_signal(signal.SIGKILL)
            for line in process.stdout.read().splitlines(keepends=True):
                if line.endswith("\n"):
                    acknowledged.append(line.split()[0])
                    first_ids.append(int(line.split()[1]))
    assert len(set(first_ids)) == len(first_ids)

    async def check() -> None:
        store = await EmbeddedStore.open(directory)
        follower = Follower(store)
        await follower.start()
        image = follower.image
        assert set(acknowledged) <= set(image.topics)
        assert all(len(topic.partitions) == 2 for topic in image.topics.values())
        assert all(image.topic_config(name) == {"retention.ms": "5"} for name in image.topics)
        assert image.next_producer_id > max(first_ids)
        await store.close()

    asyncio.run(check())
