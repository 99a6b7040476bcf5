"""The folder of a report: finished claims, their figures and data, and what is still missing.

Layout: ``report.html``, ``report.json``, ``figures/NAME.png``, ``data/NAME.nc``, one sealed record
per claim in ``claims/ID.json``, which holds the digests of its figures and data, and
``patchdyn.json`` saying who wrote it and how far it got. Claims that are under way keep their
checkpoints in ``checkpoints/ID``.

A folder may come from anywhere. Paths are made here, of claims' ids and figures' names that look
like ids and names; none is taken out of a file. What lies outside, or is no regular file, is never
read, replaced or removed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from dynamics.core.files import remove_partial
from simulations.files.stamped_folder import Kind, difference, sealed
from simulations.files.store import (
    StoreError,
    digest_of,
    explain,
    obstacle,
    read_sealed_json,
    remove,
    remove_sealed,
    write_bytes,
    write_dataset,
    write_json,
    write_sealed_json,
)
from simulations.reproduction.record import is_record
from simulations.reproduction.tables import as_csv, csv_name

_WORD = re.compile(r"[A-Za-z0-9]+(?:[-._][A-Za-z0-9]+)*")
_CHECKPOINTS = (".npz", ".json")


def _fits(found: Mapping[str, Any]) -> bool:
    """Tell whether a manifest's claims are named like claims."""
    stamp, claims = found.get("stamp"), found.get("claims")
    if not isinstance(stamp, dict) or not isinstance(claims, list):
        return False
    words = all(isinstance(c, str) and len(c) <= 100 and _WORD.fullmatch(c) for c in claims)
    return words and all(isinstance(value, str) for value in stamp.values())


KIND = Kind("report", "patchdyn.json", 3, _fits, ("claims", "figures", "data", "checkpoints"))


class StoredReport:
    """The records of a report as they lie in a folder: read, not written.

    Parameters
    ----------
    path
        The folder.
    stamp, claims
        What its results depend on, and the claims that it is about.
    """

    def __init__(self, path: Path, stamp: dict[str, str], claims: Iterable[str]) -> None:
        self.path, self.stamp, self.claims = path, stamp, list(claims)

    @classmethod
    def read(cls, path: Path) -> StoredReport:
        """Return the report in a folder.

        Raises
        ------
        StoreError
            If there is none of this layout.
        """
        if not path.is_dir():
            raise StoreError(f"{path} is not a report of patchdyn: there is no such folder")
        try:
            manifest = KIND.look(path)
        except StoreError:
            manifest = None
        if manifest is None:
            raise StoreError(
                f"{path} is not a report of patchdyn as it was written (layout {KIND.layout})"
            )
        return cls(path, manifest["stamp"], manifest["claims"])

    def image_path(self, figure: str) -> Path:
        """Return where the picture of a figure stands."""
        return self.path / "figures" / f"{_word(figure)}.png"

    def data_path(self, figure: str) -> Path:
        """Return where the data of a figure stand."""
        return self.path / "data" / f"{_word(figure)}.nc"

    def table_path(self, claim: str, table: str) -> Path:
        """Return the path of a table's CSV file."""
        return self.path / "data" / csv_name(_word(claim), table)

    def record(self, claim: str) -> dict[str, Any] | None:
        """Return the stored record of a claim.

        ``None`` unless it and its figures are complete and are, to the bit, what was written.
        """
        try:
            record = read_sealed_json(self._record_path(claim))
            if not is_record(record) or record["claim"] != claim:
                return None
            for figure in record["figures"]:
                for path, kind in (
                    (self.image_path(figure["name"]), "image"),
                    (self.data_path(figure["name"]), "data"),
                ):
                    if digest_of(self.bytes_of(path)) != figure[f"{kind} sha256"]:
                        return None
        except StoreError:
            return None
        return dict(record)

    def bytes_of(self, path: Path) -> bytes:
        """Return the content of one of the folder's files.

        Raises
        ------
        StoreError
            If it cannot be read, or is not a regular file.
        """
        if (what := obstacle(path)) is not None:
            raise StoreError(f"cannot read {path}: it is {what}")
        try:
            return path.read_bytes()
        except OSError as failure:
            raise explain("read", path, failure) from failure

    def records(self) -> dict[str, dict[str, Any]]:
        """Return all complete records, claims that failed to run included, in order."""
        found = {claim: self.record(claim) for claim in self.claims}
        return {claim: record for claim, record in found.items() if record is not None}

    def _record_path(self, claim: str) -> Path:
        return self.path / "claims" / f"{_word(claim)}.json"


class ReportFolder(StoredReport):
    """Records of claims on disk, all measured under one stamp, and one writer at a time.

    A context manager: the folder is locked until the end of the block (or of the object).

    Parameters
    ----------
    path
        The folder; created if it does not exist.
    stamp
        What the results depend on (:func:`simulations.files.stamp.stamp`).
    claims
        Ids of the claims that the report is about, added to those it is already about.
    force
        Replace results of another stamp. Only files that patchdyn wrote are removed.

    Raises
    ------
    StoreError
        If the folder cannot be written, is in use, holds something else, or holds results of
        another stamp.
    """

    def __init__(
        self, path: Path, stamp: dict[str, str], claims: Iterable[str], *, force: bool = False
    ) -> None:
        super().__init__(path, stamp, ())

        def refuse(manifest: dict[str, Any]) -> None:
            if manifest["stamp"] != stamp and not force:
                raise StoreError(_refusal(path, manifest["stamp"], stamp))

        self._lock, manifest = KIND.take(path, refuse)
        try:
            known: list[str] = []
            if manifest is not None:
                known = manifest["claims"]
                if manifest["stamp"] != stamp:
                    self._remove_everything(known)
                    known = []
            self.claims = list(dict.fromkeys([*known, *claims]))
            self.write_manifest()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ReportFolder:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the lock."""
        self._lock.close()

    def write_manifest(self) -> None:
        """Write which claims are finished, failed to run, or are missing."""
        records = self.records()
        failed = {key: record["error"] for key, record in records.items() if "error" in record}
        content = {
            "format": KIND.layout,
            "stamp": self.stamp,
            "claims": self.claims,
            "finished": [key for key in records if key not in failed],
            "failed": failed,
            "missing": [key for key in self.claims if key not in records],
        }
        write_json(self.path / KIND.manifest, sealed(content))

    def save(self, record: dict[str, Any], figures: Sequence[tuple[str, bytes, Any]] = ()) -> None:
        """Store one claim: pictures and data first, the record that vouches for them last.

        ``figures`` are triples (name, PNG, dataset), in the order of ``record["figures"]``. Each
        table of the record is stored as CSV, too.
        """
        taken = {
            figure["name"]: claim
            for claim, other in self.records().items()
            if claim != record["claim"]
            for figure in other["figures"]
        }
        vouched = []
        for (name, image, data), figure in zip(figures, record["figures"], strict=True):
            if name in taken:
                raise StoreError(
                    f"figure {name} of {record['claim']} would overwrite that of {taken[name]}: "
                    "figures need names of their own"
                )
            write_bytes(self.image_path(name), image)
            write_dataset(self.data_path(name), data)
            stored = digest_of(self.bytes_of(self.data_path(name)))
            vouched.append(figure | {"image sha256": digest_of(image), "data sha256": stored})
        for table in record.get("tables", ()):
            path = self.table_path(record["claim"], table["name"])
            write_bytes(path, as_csv(table).encode())
        write_sealed_json(self._record_path(record["claim"]), record | {"figures": vouched})
        self._clear_scratch(record["claim"])
        self.write_manifest()

    def scratch(self, claim: str) -> Path:
        """Return the folder in which a claim under way may keep checkpoints (not made here)."""
        return self.path / "checkpoints" / _word(claim)

    def _clear_scratch(self, claim: str) -> None:
        folder = self.scratch(claim)
        if obstacle(folder) == "a folder":
            remove_partial(folder)
            for file in folder.iterdir():
                if file.suffix in _CHECKPOINTS and obstacle(file) is None:
                    remove(file)
        with contextlib.suppress(OSError):  # absent, or holds files that are not ours
            folder.rmdir()
        with contextlib.suppress(OSError):  # absent, or another claim is under way
            folder.parent.rmdir()

    def forget(self, claim: str) -> None:
        """Remove the record of a claim and its figures."""
        record = self.record(claim)
        remove_sealed(self._record_path(claim))
        for table in record.get("tables", ()) if record else ():
            remove(self.table_path(claim, table["name"]))
        for figure in record["figures"] if record else ():
            remove(self.image_path(figure["name"]))
            remove(self.data_path(figure["name"]))
        self._clear_scratch(claim)
        for name in KIND.folders[:3]:
            with contextlib.suppress(OSError):  # absent, or holds files that are not ours
                (self.path / name).rmdir()

    def _remove_everything(self, claims: Iterable[str]) -> None:
        for claim in claims:
            self.forget(claim)
        for name in ("report.html", "report.json", KIND.manifest):
            remove(self.path / name)


def _word(name: str) -> str:
    """Return a claim's id or a figure's name, from which a file's name may be made."""
    if not isinstance(name, str) or len(name) > 100 or not _WORD.fullmatch(name):
        raise StoreError(f"{str(name)[:100]!r} is no name of a claim or of a figure")
    return name


def _refusal(path: Path, old: dict[str, str], new: dict[str, str]) -> str:
    what = f"results of {difference(old, new)}"
    if old.get("mode") != new.get("mode"):
        what = f"a {old.get('mode')} run while this one is {new['mode']}"
    return f"{path} holds {what}: choose another --out, or replace it with --force"
