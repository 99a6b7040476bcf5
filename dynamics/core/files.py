"""Files that are either absent or complete: written beside their place, then moved into it.

Nothing that is not a regular file is ever replaced, and of what killed runs left behind only files
with the name that is made here are removed.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

_PARTIAL = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)\.partial", re.DOTALL)


class FileError(Exception):
    """A file or folder cannot be written or read; the message is one sentence for a person."""


def explain(action: str, path: Path, cause: Exception) -> FileError:
    """Return the error to raise for an operating-system error, with its reason in words."""
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    shown = str(path) if len(str(path)) <= 300 else f"{str(path)[:297]}..."
    return FileError(f"cannot {action} {shown}: {reason}")


def obstacle(path: Path) -> str | None:
    """Return what stands at a path, in words, unless it is a regular file or nothing.

    A symbolic link is one too, whatever it points to. Raises FileError where nothing can stand.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as failure:  # ValueError: a name that no system takes
        raise explain("use", path, failure) from failure
    if stat.S_ISREG(mode):
        return None
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder that takes the place of ``path`` on success.

    The content reaches the disk before the name does (fsync, then rename), so that a crash, a full
    disk or Ctrl-C leaves either the old file or the new one, never half of one. What a killed run
    left of the same file is removed.

    Raises
    ------
    FileError
        If the file cannot be written, or something that is not a regular file is in its place.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if (what := obstacle(path)) is not None:
            raise FileError(
                f"cannot write {path}: it is {what}, and only regular files are replaced"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partial(path.parent, only=path.name)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except (OSError, ValueError) as failure:  # ValueError: a name that no system takes
        raise explain("write", path, failure) from failure
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def remove_partial(folder: Path, *, only: str | None = None) -> None:
    """Remove half-written files of processes that are no more; ``only``: of this file."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            left = _PARTIAL.fullmatch(entry.name)
            if left is None or not entry.is_file(follow_symlinks=False):
                continue
            if only in (None, left["name"]) and not _alive(int(left["process"])):
                os.unlink(entry.path)


def _alive(process: int) -> bool:
    """Tell whether a process may still be running; where that cannot be asked, it may."""
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
    """Make a rename durable where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
