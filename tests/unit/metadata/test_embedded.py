"""The file of the embedded store: its format, its lock, and what happens when the disk fails."""

import asyncio
import errno
import json
import threading
from pathlib import Path

import pytest
from crc32c import crc32c

from barnabas.ids import uuid_from_string
from barnabas.metadata.embedded import DIRECTORY_NAME, EmbeddedStore
from barnabas.metadata.files import RealFiles
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BROKER_RESOURCE
from barnabas.metadata.records import ConfigRecord, FeatureRecord, ScramCredentialRecord
from barnabas.metadata.replaying import image_of
from barnabas.metadata.secret_values import PREFIX
from barnabas.metadata.store import RecordBatch, StoreError, StoreUnavailable


def feature(level):
    return [FeatureRecord("f", level)]


def frames(path: Path):
    data, position, payloads = path.read_bytes(), 0, []
    while position < len(data):
        length, checksum = (int.from_bytes(data[position + at : position + at + 4], "big") for at in (0, 4))
        payload = data[position + 8 : position + 8 + length]
        assert crc32c(payload) == checksum
        payloads.append(json.loads(payload))
        position += 8 + length
    return payloads


def test_the_format_is_pinned(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m", cluster_id="0123456789abcdefghijkA")
        epoch = (await store.campaign(1)).epoch
        await store.append(feature(1), 0, epoch)
        await store.append(feature(2), 1, epoch)
        log = tmp_path / "m" / "metadata.log"
        record = {"type": "feature", "version": 0, "name": "f"}
        header = {"format": 1, "cluster_id": "0123456789abcdefghijkA", "start_offset": 0, "epoch": 0}
        assert frames(log) == [
            header,
            {"offset": 0, "epoch": 1, "records": [{**record, "level": 1}]},
            {"offset": 1, "epoch": 1, "records": [{**record, "level": 2}]},
        ]
        await store.snapshot(MetadataImage().apply(feature(1)), epoch)
        assert frames(log) == [
            {**header, "start_offset": 1, "epoch": 1},
            {"snapshot": 1, "records": [{**record, "level": 1}]},
            {"offset": 1, "epoch": 1, "records": [{**record, "level": 2}]},
        ]
        assert sorted(path.name for path in log.parent.iterdir()) == ["metadata.lock", "metadata.log"]
        await store.close()

    asyncio.run(story())


def test_the_directory_does_not_look_like_a_partition():
    stem, _, number = DIRECTORY_NAME.rpartition("-")
    assert stem and not number.isdigit()


def test_only_the_owner_can_read_the_file(tmp_path):
    async def story():
        await (await EmbeddedStore.open(tmp_path / "m")).close()

    asyncio.run(story())
    assert (tmp_path / "m" / "metadata.log").stat().st_mode & 0o777 == 0o600


def test_a_cluster_id_is_made_once_and_another_is_refused(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        made = store.cluster_id
        assert len(uuid_from_string(made)) == 16
        await store.close()
        store = await EmbeddedStore.open(tmp_path / "m", cluster_id=made)
        assert store.cluster_id == made
        await store.close()
        with pytest.raises(StoreError, match=f"belongs to cluster {made}, not to another"):
            await EmbeddedStore.open(tmp_path / "m", cluster_id="another")
        # After the refusal the lock is free.
        await (await EmbeddedStore.open(tmp_path / "m")).close()

    asyncio.run(story())


def test_two_brokers_cannot_share_a_directory(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        with pytest.raises(StoreError, match="another broker is using the metadata in"):
            await EmbeddedStore.open(tmp_path / "m")
        await store.close()
        await (await EmbeddedStore.open(tmp_path / "m")).close()

    asyncio.run(story())


def test_a_snapshot_is_due_when_the_log_outgrows_the_last_one(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m", snapshot_bytes_min=300)
        epoch = (await store.campaign(1)).epoch
        image = MetadataImage()
        assert not store.snapshot_due
        while not store.snapshot_due:
            image = image.apply([FeatureRecord(f"feature-{image.offset}", 1)])
            await store.append([FeatureRecord(f"feature-{image.offset - 1}", 1)], image.offset - 1, epoch)
        before = (tmp_path / "m" / "metadata.log").stat().st_size
        await store.snapshot(image, epoch)
        assert not store.snapshot_due
        assert (tmp_path / "m" / "metadata.log").stat().st_size < before
        await store.close()

    asyncio.run(story())


def test_a_log_of_a_newer_version_is_refused_in_one_sentence(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        await store.append(feature(1), 0, (await store.campaign(1)).epoch)
        await store.close()
        log = tmp_path / "m" / "metadata.log"
        written = log.read_bytes()
        for old, new, sentence in (
            (b'"type":"feature"', b'"type":"quotas!"', "of unknown type 'quotas!'; it was written by"),
            (b'"format":1', b'"format":9', "has format 9; this version of Barnabas reads format 1"),
        ):
            log.write_bytes(reframed(written.replace(old, new)))
            with pytest.raises(StoreError, match=sentence):
                await EmbeddedStore.open(tmp_path / "m")

    asyncio.run(story())


def reframed(data):
    """The frames with new checksums."""
    position, result = 0, b""
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        payload = data[position + 8 : position + 8 + length]
        result += data[position : position + 4] + crc32c(payload).to_bytes(4, "big") + payload
        position += 8 + length
    return result


def test_a_directory_that_cannot_be_created_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot open the metadata in .*Not a directory"):
        asyncio.run(EmbeddedStore.open(tmp_path / "file" / "m"))


class BrokenFiles(RealFiles):
    """Real files; an operation fails while it is in `failing`."""

    def __init__(self):
        self.failing = ""

    def _fail(self, name):
        if name == self.failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    def create(self, path):
        self._fail("create")
        return super().create(path)

    def write(self, descriptor, data, position):
        if self.failing == "write":
            super().write(descriptor, data[:10], position)
        self._fail("write")
        super().write(descriptor, data, position)

    def sync(self, descriptor):
        self._fail("sync")
        super().sync(descriptor)

    def truncate(self, descriptor, size):
        self._fail("truncate")
        super().truncate(descriptor, size)

    def rename(self, source, target):
        self._fail("rename")
        super().rename(source, target)

    def sync_directory(self, path):
        self._fail("sync_directory")
        super().sync_directory(path)


class SlowFiles(RealFiles):
    """Real files whose writes wait until the test lets them continue."""

    def __init__(self):
        self.writing, self.go = threading.Event(), threading.Event()
        self.go.set()

    def write(self, descriptor, data, position):
        self.writing.set()
        assert self.go.wait(10)
        super().write(descriptor, data, position)


@pytest.mark.parametrize("after", ["append", "close"])
def test_a_write_whose_caller_was_cancelled_is_finished_before_the_next_step(tmp_path, after):
    async def story():
        files = SlowFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        files.go.clear()
        files.writing.clear()
        cancelled = asyncio.ensure_future(store.append(feature(1), 0, epoch))
        await asyncio.to_thread(files.writing.wait, 10)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        step = store.append(feature(2), 1, epoch) if after == "append" else store.close()
        following = asyncio.ensure_future(step)
        await asyncio.sleep(0.01)
        assert not following.done()
        files.go.set()
        await following
        await store.close()
        batches = [RecordBatch(0, tuple(feature(1))), RecordBatch(1, tuple(feature(2)))]
        assert await reopened(tmp_path / "m") == batches[: 2 if after == "append" else 1]

    asyncio.run(story())


async def reopened(directory):
    store = await EmbeddedStore.open(directory)
    updates = list(await store.read(0))
    await store.close()
    return updates


def test_a_full_disk_refuses_the_append_and_works_again_when_there_is_room(tmp_path):
    async def story():
        files = BrokenFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        await store.append(feature(1), 0, epoch)
        files.failing = "write"
        with pytest.raises(StoreUnavailable, match="No space left"):
            await store.append(feature(2), 1, epoch)
        files.failing = ""
        assert await store.append(feature(3), 1, epoch) == 2
        await store.close()
        assert await reopened(tmp_path / "m") == [
            RecordBatch(0, tuple(feature(1))),
            RecordBatch(1, tuple(feature(3))),
        ]

    asyncio.run(story())


def test_after_a_failed_fsync_nothing_is_acknowledged_until_restart(tmp_path):
    async def story():
        files = BrokenFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        files.failing = "sync"
        with pytest.raises(StoreUnavailable, match="no changes until the broker restarts"):
            await store.append(feature(1), 0, epoch)
        files.failing = ""
        with pytest.raises(StoreUnavailable, match="no changes until the broker restarts"):
            await store.append(feature(2), 0, epoch)
        assert list(await store.read(0)) == []
        await store.close()
        store = await EmbeddedStore.open(tmp_path / "m")
        end = store.end_offset
        assert await store.append(feature(3), end, (await store.campaign(1)).epoch) == end + 1
        await store.close()

    asyncio.run(story())


def test_an_incomplete_write_that_cannot_be_undone_closes_the_log(tmp_path):
    async def story():
        files = BrokenFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        await store.append(feature(1), 0, epoch)
        write, files.failing = files.write, "truncate"

        def torn(descriptor, data, position):
            write(descriptor, data[:10], position)
            raise OSError(errno.EIO, "Input/output error")

        files.write = torn
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            await store.append(feature(2), 1, epoch)
        files.write, files.failing = write, ""
        with pytest.raises(StoreUnavailable, match="until the broker restarts"):
            await store.append(feature(2), 1, epoch)
        await store.close()
        assert await reopened(tmp_path / "m") == [RecordBatch(0, tuple(feature(1)))]

    asyncio.run(story())


@pytest.mark.parametrize("step", ["create", "write", "sync", "rename"])
def test_a_snapshot_that_fails_leaves_the_log_in_use(tmp_path, step):
    async def story():
        files = BrokenFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        await store.append(feature(1), 0, epoch)
        files.failing = step
        with pytest.raises(StoreUnavailable, match="cannot write the metadata snapshot"):
            await store.snapshot(MetadataImage().apply(feature(1)), epoch)
        files.failing = ""
        assert await store.append(feature(2), 1, epoch) == 2
        assert not (tmp_path / "m" / "metadata.log.new").exists()
        await store.close()
        assert await reopened(tmp_path / "m") == [
            RecordBatch(0, tuple(feature(1))),
            RecordBatch(1, tuple(feature(2))),
        ]

    asyncio.run(story())


def test_a_snapshot_whose_name_is_not_durable_closes_the_log(tmp_path):
    async def story():
        files = BrokenFiles()
        store = await EmbeddedStore.open(tmp_path / "m", files=files)
        epoch = (await store.campaign(1)).epoch
        await store.append(feature(1), 0, epoch)
        files.failing = "sync_directory"
        with pytest.raises(StoreUnavailable):
            await store.snapshot(MetadataImage().apply(feature(1)), epoch)
        files.failing = ""
        with pytest.raises(StoreUnavailable, match="until the broker restarts"):
            await store.append(feature(2), 1, epoch)
        await store.close()
        assert [update.end_offset for update in await reopened(tmp_path / "m")] == [1]

    asyncio.run(story())


SECRETS = [
    ConfigRecord(BROKER_RESOURCE, "1", "listener.name.internal.ssl.keystore.password", "open-sesame"),
    ScramCredentialRecord("alice", 1, "4096,c2FsdA==,c3RvcmVk,c2VydmVy"),
]


async def stored_records(directory: Path, secrets=()):
    store = await EmbeddedStore.open(directory, secrets=secrets)
    try:
        return [record for update in await store.read(0) for record in update.records]
    finally:
        await store.close()


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_secrets_are_encrypted_in_the_file_if_there_is_a_key(tmp_path, with_snapshot):
    async def run():
        store = await EmbeddedStore.open(tmp_path / "m", secrets=("key", None))
        epoch = (await store.campaign(1)).epoch
        end = await store.append(SECRETS, 0, epoch)
        if with_snapshot:
            image = image_of(store.cluster_id, await store.read(0))
            assert image.offset == end
            await store.snapshot(image, epoch)
        await store.close()
        (log,) = (tmp_path / "m").glob("*.log")
        text = log.read_text("latin-1")
        assert text.count(PREFIX) == 2
        assert "open-sesame" not in text and "c2VydmVy" not in text
        # With the key, also after it has changed; without it they stay as they are.
        assert await stored_records(tmp_path / "m", ("key",)) == SECRETS
        assert await stored_records(tmp_path / "m", ("new", "key")) == SECRETS
        for given in ((), ("new",)):
            hidden = await stored_records(tmp_path / "m", given)
            assert hidden[0].value.startswith(PREFIX) and hidden[1].credential.startswith(PREFIX)

    asyncio.run(run())


def test_secrets_that_were_stored_without_a_key_are_encrypted_by_the_next_snapshot(tmp_path):
    async def run():
        store = await EmbeddedStore.open(tmp_path / "m")
        await store.append(SECRETS, 0, (await store.campaign(1)).epoch)
        await store.close()
        store = await EmbeddedStore.open(tmp_path / "m", secrets=("key",))
        image = image_of(store.cluster_id, await store.read(0))
        await store.snapshot(image, (await store.campaign(1)).epoch)
        await store.close()
        (log,) = (tmp_path / "m").glob("*.log")
        assert "open-sesame" not in log.read_text("latin-1")
        assert await stored_records(tmp_path / "m", ("key",)) == SECRETS

    asyncio.run(run())
