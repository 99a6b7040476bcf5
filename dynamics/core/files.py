"""Atomic writes: a file is written under a temporary name in its folder, then renamed.

Only regular files are replaced. Temporary files of processes that were killed are removed.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

_PARTIAL = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)\.partial", re.DOTALL)


class FileError(Exception):
    """A file or folder cannot be written or read; the message is one sentence."""


def explain(action: str, path: Path, cause: Exception) -> FileError:
    """Return a FileError for an operating-system error: action, path and reason."""
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    name = str(path) if len(str(path)) <= 300 else f"{str(path)[:297]}..."
    return FileError(f"cannot {action} {name}: {reason}")


def obstacle(path: Path) -> str | None:
    """Return a description of what exists at a path; ``None`` for a regular file or nothing.

    Symbolic links are not followed: they are obstacles.

    Raises
    ------
    FileError
        If the path cannot be examined, for example because of its name.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as failure:  # ValueError: an invalid name
        raise explain("use", path, failure) from failure
    if stat.S_ISREG(mode):
        return None
    descriptions = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return descriptions.get(stat.S_IFMT(mode), "a device")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder that is renamed to ``path`` on success.

    The content is flushed to disk before the renaming, so that a crash, a full disk or Ctrl-C
    leaves either the old or the new file complete. Temporary files that killed processes left for
    the same path are removed.

    Raises
    ------
    FileError
        If the file cannot be written, or the path exists and is not a regular file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if (existing := obstacle(path)) is not None:
            raise FileError(
                f"cannot write {path}: it is {existing}, and only regular files are replaced"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partial(path.parent, only=path.name)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except (OSError, ValueError) as failure:  # ValueError: an invalid name
        raise explain("write", path, failure) from failure
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def remove_partial(folder: Path, *, only: str | None = None) -> None:
    """Remove temporary files of processes that no longer run; ``only``: of this file name."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _PARTIAL.fullmatch(entry.name)
            if match is None or not entry.is_file(follow_symlinks=False):
                continue
            if only in (None, match["name"]) and not _alive(int(match["process"])):
                os.unlink(entry.path)


def _alive(process: int) -> bool:
    """Return whether a process may still be running; True where this cannot be determined."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk after a rename, where the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
