"""Files in which tasks hand large results to the driver. They only carry data from one to the other: a batch
that is tried again is encoded again, so every file that is left over may be removed.

<root>/streams/<transactional.id>/<batch>-<random>.records
    for a stream; removed when that batch, or a later one, is committed
<root>/jobs/<random>/<random>.records
    for df.write; removed when the job ends

The root belongs to one user and has mode 0700. Others may write to the directory above it, such as /tmp, so
a root that is a symbolic link or belongs to another user is never used."""

import logging
import os
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, urlparse

from barnabas.spark.options import OptionError
from barnabas.spark.sink.settings import WriteSettings

_log = logging.getLogger(__name__)
SUFFIX = ".records"
# A driver that was killed leaves the directory of its job behind. No job takes longer than this.
JOB_SECONDS_MAX = 7 * 86_400
PRIVATE_MODE = 0o700
_JOBS, _STREAMS = "jobs", "streams"


def staging_root(settings: WriteSettings) -> Path:
    """The directory of the files; OptionError if there is none that tasks and driver share."""
    checkpoint = settings["checkpointLocation"]
    if settings["stagingDir"] is not None or checkpoint is None:
        # Users may share this directory, so each has a root in it.
        shared = Path(settings["stagingDir"] or tempfile.gettempdir())
        return shared / f"barnabas-staging-{os.getuid()}"
    address = urlparse(checkpoint)
    if address.scheme not in ("", "file"):
        raise OptionError(
            f"A task has more than stagingBytes ({settings['stagingBytes']}) bytes for the driver, and the"
            f" checkpoint {checkpoint} is not in a local directory: set stagingDir to a directory that tasks"
            " and driver share."
        )
    path = checkpoint if not address.scheme else unquote(address.path)
    return Path(path.rstrip("/") + ".staging")


def batch_file(settings: WriteSettings, batch: int) -> Path:
    """The path of a new file for a task of a stream."""
    return _stream_directory(settings) / f"{batch:020d}-{uuid.uuid4().hex}{SUFFIX}"


def job_directory(settings: WriteSettings) -> Path:
    """The path of a new directory for a job; the first file makes it."""
    return staging_root(settings) / _JOBS / uuid.uuid4().hex


def job_file(directory: Path) -> Path:
    """The path of a new file for a task of a job."""
    return directory / f"{uuid.uuid4().hex}{SUFFIX}"


def create_file(path: Path) -> BinaryIO:
    """Create a file at a path from batch_file or job_file, and the directories above it."""
    root = path.parents[2]
    root.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        root.mkdir(PRIVATE_MODE)
    _make_private(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb")


def sweep_batches(settings: WriteSettings, committed: int) -> None:
    """Remove the files of a stream up to a batch that is committed."""
    try:
        directory = _stream_directory(settings)
    except OptionError:
        # There is no directory, so nothing was staged.
        return
    if not _may_sweep(directory.parents[1]):
        return
    for path in directory.glob(f"*{SUFFIX}"):
        number = path.name.partition("-")[0]
        if number.isdecimal() and int(number) <= committed:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        # This fails if the directory holds files of a later batch.
        directory.rmdir()


def sweep_jobs(ended: Path) -> None:
    """Remove the directory of a job that has ended, and directories that old jobs left behind."""
    if not _may_sweep(ended.parents[1]):
        return
    shutil.rmtree(ended, ignore_errors=True)
    if not ended.parent.is_dir():
        return
    for path in ended.parent.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - JOB_SECONDS_MAX:
                _log.info("removing %s, which an old job left behind", path)
                shutil.rmtree(path, ignore_errors=True)


def _stream_directory(settings: WriteSettings) -> Path:
    return staging_root(settings) / _STREAMS / quote(settings.transactional_id, safe="")


def _may_sweep(root: Path) -> bool:
    try:
        _make_private(root)
    except FileNotFoundError:
        return False
    except OptionError as error:
        _log.warning("staged files are not removed: %s", error)
        return False
    return True


def _make_private(root: Path) -> None:
    """Give an existing root mode 0700; OptionError if it is a link, or no directory, or another user's."""
    try:
        # The checks are made on the open directory, so nobody can put another in its place meanwhile.
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(root, f"cannot be opened as a directory ({error.strerror})") from None
    try:
        status = os.fstat(fd)
        if status.st_uid != os.getuid():
            raise _unusable(root, f"belongs to the user with id {status.st_uid}")
        if status.st_mode & 0o777 != PRIVATE_MODE:
            os.fchmod(fd, PRIVATE_MODE)
    finally:
        os.close(fd)


def _unusable(root: Path, reason: str) -> OptionError:
    return OptionError(
        f"The staging directory {root} {reason}; it must be a directory of the user who runs the query (id"
        f" {os.getuid()}), and not a link. Remove it, or set stagingDir to another directory."
    )
