"""Files that are either absent or complete: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_PARTIAL = ".partial"


class FileError(Exception):
    """A file or folder cannot be written or read; the message is one sentence for a person."""


def explain(action: str, path: Path, cause: Exception) -> FileError:
    """Return the error to raise for an operating-system error, with its reason in words."""
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return FileError(f"cannot {action} {path}: {reason}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder that takes the place of ``path`` on success.

    The content reaches the disk before the name does (fsync, then rename), so that a crash, a full
    disk or Ctrl-C leaves either the old file or the new one, never half of one.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as failure:
        raise explain("write", path, failure) from failure
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
