"""Files of results: JSON, records and datasets, folders with a manifest and a lock, stamps.

Every file is either absent or complete (see `dynamics.core.files`). A *record* is a JSON object
with the digest of its content, so that a damaged file is noticed. A *stamp* contains the versions
of code and libraries that a result depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from filelock import FileLock, Timeout

from dynamics.core.files import FileError, explain, obstacle, remove_partial, replacing
from dynamics.core.provenance import ROOT, provenance

if TYPE_CHECKING:
    import xarray

#: A file or folder cannot be written or read; the message is one sentence.
StoreError = FileError

_DIGEST = "sha256"
#: The file of the lock, and an incomplete manifest: a folder with nothing else is new.
_BEGINNING = re.compile(r"\.lock|\.(patchdyn|sweep)\.json\.\d+\.partial")
_NAMES = {"patchdyn": "version", "code": "source"}
_PACKAGES = ("symbolic", "dynamics", "simulations")


def to_json(value: Any) -> str:
    """Return indented JSON; numbers that are not finite become null."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value as JSON-safe data.

    Enums, dataclasses, NumPy arrays and other containers are converted; numbers that are not finite
    become ``None``.
    """
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


def digest_of(content: bytes) -> str:
    """Return the SHA-256 digest of bytes."""
    return hashlib.sha256(content).hexdigest()


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If the file exists but cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as failure:
        raise explain("read", path, failure) from failure


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that any parser reads (see `to_json`)."""
    write_bytes(path, f"{to_json(value)}\n".encode())


def read_json(path: Path) -> Any:
    """Return the value in a JSON file, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If the file exists but cannot be read.
    """
    content = read_bytes(path)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError) as failure:
        raise explain("read", path, failure) from failure


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON object and its digest."""
    write_json(path, {**record, _DIGEST: digest_of(to_json(record).encode())})


def read_record(path: Path) -> dict[str, Any] | None:
    """Return a stored record, ``None`` if there is no such file.

    Raises
    ------
    StoreError
        If the file cannot be read or does not match its digest.
    """
    record = read_json(path)
    if record is None:
        return None
    if isinstance(record, dict):
        digest = record.pop(_DIGEST, None)
        with contextlib.suppress(RecursionError):
            if digest == digest_of(to_json(record).encode()):
                return record
    raise StoreError(f"cannot read {path}: its content does not match its digest")


def write_dataset(path: Path, data: xarray.Dataset) -> str:
    """Write a dataset as NetCDF and return the digest of the file."""
    content = io.BytesIO()  # HDF5 does not survive a full disk
    data.to_netcdf(content, engine="h5netcdf")
    write_bytes(path, content.getvalue())
    return digest_of(content.getvalue())


def read_dataset(path: Path, digest: str) -> xarray.Dataset:
    """Return a stored dataset, in memory.

    Raises
    ------
    StoreError
        If the file is missing, cannot be read or does not match its digest.
    """
    import xarray

    content = read_bytes(path)
    if content is None or digest_of(content) != digest:
        raise StoreError(f"cannot read {path}: its content does not match its digest")
    with xarray.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
        return data.load()


def remove(path: Path) -> None:
    """Remove a regular file, if it is there."""
    if (what := obstacle(path)) is not None:
        raise StoreError(f"cannot remove {path}: it is {what}")
    try:
        path.unlink(missing_ok=True)
    except OSError as failure:
        raise explain("remove", path, failure) from failure


class ResultFolder:
    """A folder of results with a manifest, written by one process at a time.

    Attributes
    ----------
    KIND
        Name of its content in messages, such as ``"report"``.
    MANIFEST
        Name of the manifest, a record.
    LAYOUT
        The ``format`` of the manifest; folders of another format are rejected.
    FOLDERS
        Names of the folders inside.
    """

    KIND: ClassVar[str]
    MANIFEST: ClassVar[str]
    LAYOUT: ClassVar[int]
    FOLDERS: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def open(self) -> dict[str, Any] | None:
        """Lock the folder and return its manifest, ``None`` if the folder is new.

        Raises
        ------
        StoreError
            If the folder has other content, is in use, or cannot be written.
        """
        self.read_manifest()  # before the file of the lock is written
        with contextlib.ExitStack() as lock:
            lock.enter_context(locked(self.path))
            manifest = self.read_manifest()
            for name in ("", *self.FOLDERS):
                remove_partial(self.path / name)
            self._lock = lock.pop_all()
        return manifest

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the manifest, ``None`` if the folder is new.

        Raises
        ------
        StoreError
            If the folder has other content, or the manifest is damaged.
        """
        if _is_new(self.path):
            return None
        manifest = read_json(self.path / self.MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != self.LAYOUT:
            raise StoreError(
                f"{self.path} is not empty and is not a {self.KIND} of patchdyn "
                f"(layout {self.LAYOUT}): choose another --out"
            )
        return read_record(self.path / self.MANIFEST)

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest."""
        write_record(self.path / self.MANIFEST, {"format": self.LAYOUT, **content})


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a description of the first difference between two stamps, "" if they are equal."""
    for key, value in new.items():
        if old.get(key) != value:
            return f"another {_NAMES.get(key, key)} ({old.get(key)}, now {value})"
    return ""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is made if it does not exist; the lock ends with the process.

    Raises
    ------
    StoreError
        If another process has locked it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
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


def _is_new(folder: Path) -> bool:
    """Return whether a folder is absent, or empty but for a lock and an incomplete manifest."""
    try:
        if not folder.exists() and obstacle(folder) is None:
            return True
        return all(_BEGINNING.fullmatch(entry.name) for entry in folder.iterdir())
    except (OSError, ValueError) as failure:
        raise explain("use", folder, failure) from failure


def stamp(mode: str, seed: int = 0) -> dict[str, str]:
    """Return the versions that a report depends on; reports with equal stamps have equal results.

    Parameters
    ----------
    mode
        ``"quick"``, ``"full"`` or ``"thorough"``.
    seed
        Root seed.
    """
    libraries = {name: version(name) for name in ("sympy", "xarray", "matplotlib")}
    return {
        **provenance(),
        **libraries,
        "python": platform.python_version(),
        "code": code_fingerprint(),
        "mode": mode,
        "seed": str(seed),
    }


@cache
def code_fingerprint(parts: tuple[str, ...] = _PACKAGES) -> str:
    """Return a hash of the installed source, 12 characters.

    Parameters
    ----------
    parts
        Folders or files, relative to the folder of the packages.
    """
    digest = hashlib.sha256()
    for part in parts:
        whole = ROOT / part
        files = [whole] if whole.is_file() else sorted(whole.rglob("*.py"))
        if not files:
            raise FileNotFoundError(f"{part} is not part of the source")
        for path in files:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
