"""What a run leaves on disk: every file is either absent or complete (see `dynamics.files`)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.files import FileError, explain, replacing

if TYPE_CHECKING:
    import xarray

#: A file or folder cannot be written or read; the message is one sentence for a person.
StoreError = FileError


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
