"""What a run leaves on disk: every file is either absent or complete (see `dynamics.core.files`).

A *sealed* file has a digest of its bytes beside it (``NAME.sha256``, as ``sha256sum --check`` reads
it). It is compared before anything looks into the file: a changed bit is a sentence, and no parser
ever sees it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.core.files import FileError, explain, obstacle, replacing
from simulations.files.as_json import to_json

if TYPE_CHECKING:
    import xarray

#: A file or folder cannot be written or read; the message is one sentence for a person.
StoreError = FileError


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file at once."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that any parser reads (see `simulations.files.as_json`)."""
    write_bytes(path, _json_bytes(value))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If the file exists but cannot be read.
    """
    try:
        return _parsed(path, path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise explain("read", path, failure) from failure


def _json_bytes(value: Any) -> bytes:
    return (to_json(value) + "\n").encode()


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as failure:
        raise explain("read", path, failure) from failure


def write_dataset(path: Path, data: xarray.Dataset) -> None:
    """Write a dataset as NetCDF."""
    with replacing(path) as temporary:
        _save(path, temporary, data)


def _save(path: Path, temporary: Path, data: xarray.Dataset) -> None:
    """Make the file in memory: HDF5 does not survive a full disk."""
    content = io.BytesIO()
    try:
        data.to_netcdf(content, engine="h5netcdf")
        temporary.write_bytes(content.getvalue())
    except OSError as failure:
        raise StoreError(f"cannot write {path}: {_reason(failure)}") from failure
    except RuntimeError as failure:  # how HDF5 tells of a full disk when it closes a file
        raise StoreError(f"cannot write {path}: {_reason(failure)}") from failure


def _reason(failure: Exception) -> str:
    """Return the reason in words; HDF5 buries it among its own."""
    text = getattr(failure, "strerror", None) or str(failure)
    for known in ("No space left on device", "File too large", "Disk quota exceeded",
                  "Input/output error", "Permission denied"):  # fmt: skip
        if known.casefold() in text.casefold():
            return known
    return text.splitlines()[0] if text and len(text) < 100 else "the file could not be completed"


def digest_of(content: bytes) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def seal_path(path: Path) -> Path:
    """Return where the digest of a sealed file stands."""
    return path.with_name(f"{path.name}.sha256")


def seal(path: Path, content: bytes) -> None:
    """Write the digest of a file; first, so that a file which is there has its digest."""
    write_bytes(seal_path(path), f"{digest_of(content)}  {path.name}\n".encode())


def write_sealed_json(path: Path, value: Any) -> None:
    """Write JSON and its digest."""
    content = _json_bytes(value)
    seal(path, content)
    write_bytes(path, content)


def write_sealed_dataset(path: Path, data: xarray.Dataset) -> None:
    """Write a dataset as NetCDF, and its digest."""
    with replacing(path) as temporary:
        _save(path, temporary, data)
        seal(path, temporary.read_bytes())


def read_sealed(path: Path) -> bytes | None:
    """Return the bytes of a sealed file, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If it cannot be read, is not a regular file, or does not have its digest.
    """
    for file in (path, seal_path(path)):
        if (what := obstacle(file)) is not None:
            raise StoreError(f"cannot read {file}: it is {what}")
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        raise explain("read", path, failure) from failure
    with contextlib.suppress(OSError):
        if seal_path(path).read_bytes()[:64] == digest_of(content).encode():
            return content
    raise StoreError(f"cannot read {path}: its content does not match its digest")


def read_sealed_json(path: Path) -> Any:
    """Return the content of a sealed JSON file, ``None`` if there is no such file."""
    content = read_sealed(path)
    return None if content is None else _parsed(path, content)


def read_sealed_dataset(path: Path) -> xarray.Dataset | None:
    """Return a sealed dataset, in memory, ``None`` if there is no such file."""
    import xarray

    content = read_sealed(path)
    if content is None:
        return None
    try:
        with xarray.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
            return data.load()
    except Exception as failure:  # what is no NetCDF file fails in as many ways as HDF5 has
        raise StoreError(f"cannot read {path}: {type(failure).__name__}") from failure


def remove_sealed(path: Path) -> None:
    """Remove a sealed file and its digest; what is not a regular file is refused."""
    for file in (path, seal_path(path)):
        remove(file)


def remove(path: Path) -> None:
    """Remove a regular file, if it is there."""
    if (what := obstacle(path)) is not None:
        raise StoreError(f"cannot remove {path}: it is {what}")
    try:
        path.unlink(missing_ok=True)
    except OSError as failure:
        raise explain("remove", path, failure) from failure
