"""A folder of results made under one stamp: known by its manifest, one writer at a time."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dynamics.core.files import remove_partial
from simulations.files.as_json import to_json
from simulations.files.lock import is_fresh, locked
from simulations.files.store import StoreError, digest_of, obstacle, read_json

_SEAL = "sha256"
_NAMES = {"patchdyn": "version", "code": "source"}


class Kind(NamedTuple):
    """What such a folder holds.

    Attributes
    ----------
    name
        Of the whole, such as ``"report"``.
    manifest
        File that tells what the folder holds; written first.
    layout
        Number that the manifest carries as ``format``; folders of another one are refused.
    fits
        Whether a manifest of this layout has the shape that is relied on; it may hold anything.
    folders
        Names of the folders inside; files below them that no run finished are removed.
    """

    name: str
    manifest: str
    layout: int
    fits: Callable[[Mapping[str, Any]], bool]
    folders: tuple[str, ...]

    def look(self, path: Path) -> dict[str, Any] | None:
        """Return the manifest, ``None`` for a fresh folder; refuse what is not ours to write.

        Raises
        ------
        StoreError
            If the folder holds something else, cannot be read, or its manifest was changed.
        """
        if is_fresh(path):
            return None
        found = read_json(path / self.manifest)
        if isinstance(found, dict) and found.get("format") == self.layout and self.fits(found):
            if found != sealed(found):
                raise StoreError(
                    f"{path / self.manifest} is not what was written: choose another --out"
                )
            return found
        raise StoreError(
            f"{path} is not empty and is not a {self.name} of patchdyn (layout {self.layout}): "
            "choose another --out"
        )

    def take(
        self, path: Path, refuse: Callable[[dict[str, Any]], None]
    ) -> tuple[contextlib.ExitStack, dict[str, Any] | None]:
        """Lock a folder; return the lock, to be closed, and the manifest, ``None`` if fresh.

        ``refuse`` raises for a manifest whose results cannot be gone on with: before anything is
        written, the lock's file included.

        Raises
        ------
        StoreError
            If the folder holds something else, is in use, or leads elsewhere.
        """
        found = self.look(path)
        if found is not None:
            refuse(found)
        with contextlib.ExitStack() as lock:
            lock.enter_context(locked(path))
            found = self.look(path)
            if found is not None:
                refuse(found)
            for name in self.folders:
                what = obstacle(path / name)
                if what not in (None, "a folder") or (path / name).is_file():
                    raise StoreError(
                        f"cannot use {path / name}: it is {what or 'a file'}, not a folder"
                    )
            for name in ("", *self.folders):
                remove_partial(path / name)
            return lock.pop_all(), found


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the digest of everything else in it, as it is to be written."""
    rest = {key: value for key, value in content.items() if key != _SEAL}
    return rest | {_SEAL: digest_of(to_json(rest).encode())}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return in words what differs first between two stamps, "" if nothing of the new one."""
    for key, now in new.items():
        if old.get(key) != now:
            return f"another {_NAMES.get(key, key)} ({old.get(key)}, now {now})"
    return ""
