"""Folder of a report: records of finished claims, their figures and data.

Layout: ``report.html``, ``report.json``, ``figures/NAME.png``, ``data/NAME.nc``, one record per
claim in ``claims/ID.json`` with the digests of its figures and data, and the manifest
``patchdyn.json``. Claims in progress have their checkpoints in ``checkpoints/ID``.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.core.files import remove_partial
from simulations.files import (
    ResultFolder,
    StoreError,
    difference,
    digest_of,
    read_bytes,
    read_record,
    remove,
    write_bytes,
    write_dataset,
    write_record,
)

if TYPE_CHECKING:
    import xarray

_CHECKPOINT = ".npz"
#: Name, PNG image and data of a figure.
StoredFigure = tuple[str, bytes, "xarray.Dataset"]


class StoredReport(ResultFolder):
    """Records of a report, to read.

    Parameters
    ----------
    path
        Folder.
    stamp
        Versions, mode and seed of the results.
    claims
        Ids of the claims.
    """

    KIND, MANIFEST, LAYOUT = "report", "patchdyn.json", 4
    FOLDERS = ("claims", "figures", "data", "checkpoints")

    def __init__(self, path: Path, stamp: dict[str, str], claims: Iterable[str]) -> None:
        super().__init__(path)
        self.stamp, self.claims = stamp, list(claims)

    @classmethod
    def read(cls, path: Path) -> StoredReport:
        """Return the report in a folder.

        Raises
        ------
        StoreError
            If the folder contains no report of this layout.
        """
        if not path.is_dir():
            raise StoreError(f"{path} is not a report of patchdyn: there is no such folder")
        try:
            manifest = cls(path, {}, ()).read_manifest()
        except StoreError:
            manifest = None
        if manifest is None:
            raise StoreError(
                f"{path} is not a report of patchdyn as it was written (layout {cls.LAYOUT})"
            )
        return cls(path, manifest["stamp"], manifest["claims"])

    def image_path(self, figure: str) -> Path:
        """Return the path of the image of a figure."""
        return self.path / "figures" / f"{figure}.png"

    def data_path(self, figure: str) -> Path:
        """Return the path of the data of a figure."""
        return self.path / "data" / f"{figure}.nc"

    def table_path(self, claim: str, table: str) -> Path:
        """Return the path of the CSV file of a table."""
        return self.path / "data" / csv_name(claim, table)

    def record(self, claim: str) -> dict[str, Any] | None:
        """Return the record of a claim; ``None`` if it or a figure is missing or damaged."""
        try:
            record = read_record(self._record_path(claim))
            if record is None or record["claim"] != claim:
                return None
            for figure in record["figures"]:
                image, data = self.image_path(figure["name"]), self.data_path(figure["name"])
                for path, digest in ((image, "image sha256"), (data, "data sha256")):
                    if digest_of(self.bytes_of(path)) != figure[digest]:
                        return None
        except StoreError:
            return None
        return record

    def bytes_of(self, path: Path) -> bytes:
        """Return the content of a file of the folder.

        Raises
        ------
        StoreError
            If the file is missing or cannot be read.
        """
        content = read_bytes(path)
        if content is None:
            raise StoreError(f"cannot read {path}: No such file or directory")
        return content

    def records(self) -> dict[str, dict[str, Any]]:
        """Return all complete records in order, including those of claims that failed to run."""
        records = {claim: self.record(claim) for claim in self.claims}
        return {claim: record for claim, record in records.items() if record is not None}

    def _record_path(self, claim: str) -> Path:
        return self.path / "claims" / f"{claim}.json"


class ReportFolder(StoredReport):
    """Records of a report, to write; all have the same stamp.

    The folder is locked until `close` or the end of the ``with`` block.

    Parameters
    ----------
    path
        Folder; created if it does not exist.
    stamp
        Versions, mode and seed of the results (:func:`simulations.files.stamp`).
    claims
        Ids of the claims of this run; they are added to those of the folder.
    force
        Replace results of another stamp. Only files that patchdyn wrote are removed.

    Raises
    ------
    StoreError
        If the folder cannot be written, is in use, has other content, or results of another stamp.
    """

    def __init__(
        self, path: Path, stamp: dict[str, str], claims: Iterable[str], *, force: bool = False
    ) -> None:
        super().__init__(path, stamp, ())
        manifest = self.open()
        try:
            if manifest is not None and manifest["stamp"] == stamp:
                self.claims = manifest["claims"]
            elif manifest is not None:
                if not force:
                    raise StoreError(_rejection(path, manifest["stamp"], stamp))
                self._remove_everything(manifest["claims"])
            self.claims = list(dict.fromkeys([*self.claims, *claims]))
            self.update_manifest()
        except BaseException:
            self.close()
            raise

    def update_manifest(self) -> None:
        """Write the lists of claims that are finished, could not be run, or are missing."""
        records = self.records()
        failed = {key: record["error"] for key, record in records.items() if "error" in record}
        self.write_manifest(
            {
                "stamp": self.stamp,
                "claims": self.claims,
                "finished": [key for key in records if key not in failed],
                "failed": failed,
                "missing": [key for key in self.claims if key not in records],
            }
        )

    def save(self, record: dict[str, Any], figures: Sequence[StoredFigure] = ()) -> None:
        """Store a claim: images, data and tables (CSV), then the record with their digests.

        Parameters
        ----------
        record
            Record of the claim.
        figures
            Figures in the order of ``record["figures"]``.

        Raises
        ------
        StoreError
            If a file cannot be written, or another claim has a figure of the same name.
        """
        owners = {
            figure["name"]: claim
            for claim, other in self.records().items()
            if claim != record["claim"]
            for figure in other["figures"]
        }
        stored = []
        for (name, image, data), figure in zip(figures, record["figures"], strict=True):
            if name in owners:
                raise StoreError(
                    f"figure {name} of {record['claim']} would overwrite that of {owners[name]}: "
                    "figures need names of their own"
                )
            write_bytes(self.image_path(name), image)
            digest = write_dataset(self.data_path(name), data)
            stored.append(figure | {"image sha256": digest_of(image), "data sha256": digest})
        for table in record.get("tables", ()):
            path = self.table_path(record["claim"], table["name"])
            write_bytes(path, as_csv(table).encode())
        write_record(self._record_path(record["claim"]), record | {"figures": stored})
        self._clear_scratch(record["claim"])
        self.update_manifest()

    def scratch(self, claim: str) -> Path:
        """Return the folder for checkpoints of a claim; it may not exist."""
        return self.path / "checkpoints" / claim

    def _clear_scratch(self, claim: str) -> None:
        folder = self.scratch(claim)
        remove_partial(folder)
        for file in folder.glob("*"):
            if file.suffix == _CHECKPOINT and file.is_file():
                remove(file)
        self._remove_if_empty(folder, folder.parent)

    def forget(self, claim: str) -> None:
        """Remove the record of a claim and its figures."""
        record = self.record(claim)
        remove(self._record_path(claim))
        for table in record.get("tables", ()) if record else ():
            remove(self.table_path(claim, table["name"]))
        for figure in record["figures"] if record else ():
            remove(self.image_path(figure["name"]))
            remove(self.data_path(figure["name"]))
        self._clear_scratch(claim)
        self._remove_if_empty(*(self.path / name for name in self.FOLDERS[:3]))

    def _remove_everything(self, claims: Iterable[str]) -> None:
        for claim in claims:
            self.forget(claim)
        for name in ("report.html", "report.json", self.MANIFEST):
            remove(self.path / name)

    def _remove_if_empty(self, *folders: Path) -> None:
        for folder in folders:
            with contextlib.suppress(OSError):  # absent, or with other files
                folder.rmdir()


def _rejection(path: Path, old: dict[str, str], new: dict[str, str]) -> str:
    """Return the message for a folder with results of another stamp."""
    what = f"results of {difference(old, new)}"
    if old.get("mode") != new.get("mode"):
        what = f"a {old.get('mode')} run while this one is {new['mode']}"
    return f"{path} contains {what}: choose another --out, or replace it with --force"


def csv_name(claim: str, table: str) -> str:
    """Return the name of the CSV file of a table."""
    return f"{claim}-{re.sub('[^A-Za-z0-9]+', '-', table)}.csv"


def as_csv(table: Mapping[str, Any]) -> str:
    """Return a table of a record as CSV; missing numbers are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table["index"], *(column["name"] for column in table["columns"])])
    writer.writerows([*row["at"].values(), *row["values"]] for row in table["rows"])
    return text.getvalue()
