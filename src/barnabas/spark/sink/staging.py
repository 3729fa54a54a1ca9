"""Files in which tasks hand large results to the driver. They are nothing but a way: a batch that is tried
again is encoded again, so whatever is left over may be removed.

<stagingDir>/streams/<transactional.id>/<batch>-<random>.records
    gone when that batch, or a later one, is committed
<stagingDir>/jobs/<random>/<random>.records
    of df.write; gone when the job ends"""

import logging
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

from barnabas.spark.options import OptionError
from barnabas.spark.sink.settings import WriteSettings

_log = logging.getLogger(__name__)
SUFFIX = ".records"
# A job whose driver died leaves its directory behind; no job takes so long.
JOB_SECONDS_MAX = 7 * 86_400
_JOBS, _STREAMS = "jobs", "streams"


def staging_root(settings: WriteSettings) -> Path:
    """Where the files are; OptionError where nobody said a directory that could be used."""
    if settings["stagingDir"] is not None:
        return Path(settings["stagingDir"])
    checkpoint = settings["checkpointLocation"]
    if checkpoint is None:
        return Path(tempfile.gettempdir()) / "barnabas-staging"
    address = urlparse(checkpoint)
    if address.scheme not in ("", "file"):
        raise OptionError(
            f"A task has more than stagingBytes ({settings['stagingBytes']}) to hand over, and the checkpoint"
            f" {checkpoint} is in no directory: give stagingDir, a directory that tasks and driver share."
        )
    path = checkpoint if not address.scheme else unquote(address.path)
    return Path(path.rstrip("/") + ".staging")


def batch_file(settings: WriteSettings, batch: int) -> Path:
    """A new file of a task of a stream."""
    return _stream_directory(settings) / f"{batch:020d}-{uuid.uuid4().hex}{SUFFIX}"


def job_directory(settings: WriteSettings) -> Path:
    """A new directory of a job; it is made when a task needs it."""
    return staging_root(settings) / _JOBS / uuid.uuid4().hex


def sweep_batches(settings: WriteSettings, committed: int) -> None:
    """Remove the files of a stream up to a batch that is committed."""
    try:
        directory = _stream_directory(settings)
    except OptionError:
        # There is no directory, so nothing was staged.
        return
    for path in directory.glob(f"*{SUFFIX}"):
        number = path.name.partition("-")[0]
        if number.isdecimal() and int(number) <= committed:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        # It stays where a later batch is in it already.
        directory.rmdir()


def sweep_jobs(ended: Path) -> None:
    """Remove the directory of a job that has ended, and of those that were left behind."""
    shutil.rmtree(ended, ignore_errors=True)
    if not ended.parent.is_dir():
        return
    for path in ended.parent.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - JOB_SECONDS_MAX:
                _log.info("removing %s, which a job has left behind", path)
                shutil.rmtree(path, ignore_errors=True)


def _stream_directory(settings: WriteSettings) -> Path:
    return staging_root(settings) / _STREAMS / quote(settings.transactional_id, safe="")
