"""Why a broker cannot start, in one sentence that says what to do.

Most problems of a start are those of files. The errors of the system say what failed, but not what an
operator should do, and some do not name the file."""

import errno
import getpass
from collections.abc import Iterator, Sequence

from barnabas.cli.failures import sentence_of

CHOOSE = "or choose another directory with --data-dir or log.dirs"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_DIRECTORY = (errno.ENOTDIR, errno.EEXIST)


def why_not_started(error: Exception, log_dirs: Sequence[str]) -> str:
    for cause in _chain(error):
        if isinstance(cause, OSError):
            return _about_files(cause, log_dirs) or sentence_of(cause)
    return str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _about_files(error: OSError, log_dirs: Sequence[str]) -> str | None:
    """None if it is not about the data directories."""
    name = None if error.filename is None else str(error.filename)
    where = next((each for each in log_dirs if name is not None and name.startswith(each)), None)
    if name is not None and where is None and not any(each.startswith(name) for each in log_dirs):
        return None
    directory = where or log_dirs[0]
    if error.errno in _FULL:
        return f"The disk of {directory} is full: make space there, {CHOOSE}."
    if error.errno == errno.EMFILE:
        return "There are too few file descriptors: raise the limit (`ulimit -n`) to 10,000 or more."
    if name is None:
        return None
    if error.errno in _FORBIDDEN:
        return (
            f"Cannot write to {directory} ({error.strerror}): give the user {_user()} the right to do so, "
            f"{CHOOSE}."
        )
    if error.errno in _NO_DIRECTORY:
        return f"The data directory {directory} is a file, or is below one: remove the file, {CHOOSE}."
    # Only the name of something else says more.
    reason = error.strerror if name == directory else f"{name}: {error.strerror}"
    return f"Cannot use {directory}: {reason}. Create the directory, {CHOOSE}."


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In containers a user may have a number only.
        return "of this process"
