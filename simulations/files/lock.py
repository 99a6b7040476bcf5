"""One writer at a time: the lock of a folder, let go when its process ends, however it ends."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from simulations.files.store import StoreError, explain, obstacle

#: The lock's file, and what a run killed at its first file leaves: they make no folder foreign.
LOCK = ".lock"
_BEGINNING = re.compile(r"\.lock|\.(patchdyn|sweep)\.json\.\d+\.partial")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, made if it does not exist.

    Raises
    ------
    StoreError
        If another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise StoreError(
            f"{folder} is in use by another patchdyn: wait for its end, or choose another --out"
        ) from None
    except (OSError, ValueError, NotImplementedError) as failure:
        raise explain("use", folder, failure) from failure
    try:
        yield
    finally:
        lock.release()


def is_fresh(folder: Path) -> bool:
    """Tell whether a folder is absent, or empty but for a lock and the beginning of a first file.

    Raises
    ------
    StoreError
        If it is no folder, or cannot be read.
    """
    try:
        if not folder.exists() and obstacle(folder) is None:
            return True
        return all(_BEGINNING.fullmatch(entry.name) for entry in folder.iterdir())
    except (OSError, ValueError) as failure:
        raise explain("use", folder, failure) from failure
