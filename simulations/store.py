"""What a run leaves on disk: every file is either absent or complete (see `dynamics.files`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.files import FileError, explain, replacing
from simulations.as_json import to_json

if TYPE_CHECKING:
    import xarray

#: A file or folder cannot be written or read; the message is one sentence for a person.
StoreError = FileError


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file at once."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that any parser reads (see `simulations.as_json`)."""
    write_bytes(path, (to_json(value) + "\n").encode())


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
