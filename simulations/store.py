"""Files that are either absent or complete: written beside their place, then moved into it."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray

_PARTIAL = ".partial"


class StoreError(Exception):
    """A file or folder cannot be written or read; the message is one sentence for a person."""


def explain(action: str, path: Path, cause: Exception) -> StoreError:
    """Return the error to raise for an operating-system error, with its reason in words."""
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return StoreError(f"cannot {action} {path}: {reason}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder that takes the place of ``path`` on success.

    The content reaches the disk before the name does (fsync, then rename), so that a crash, a full
    disk or Ctrl-C leaves either the old file or the new one, never half of one.

    Raises
    ------
    StoreError
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


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file at once."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that any parser reads (see :func:`plain`)."""
    write_bytes(path, (to_json(value) + "\n").encode())


def to_json(value: Any) -> str:
    """Return indented JSON; numbers that are not finite become null."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If the file exists but cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as failure:
        raise explain("read", path, failure) from failure


def write_dataset(path: Path, data: xarray.Dataset) -> None:
    """Write a dataset as NetCDF."""
    with replacing(path) as temporary:
        try:
            data.to_netcdf(temporary, engine="h5netcdf")
        except RuntimeError as failure:  # how HDF5 tells of a full disk when it closes a file
            raise explain("write", path, failure) from failure


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows: NumPy, enums, dataclasses and nan included."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    return str(value)
