"""The folder of a report: finished claims, their figures and data, and what is still missing.

Layout: ``report.html``, ``report.json``, ``figures/NAME.png``, ``data/NAME.nc``, one record per
claim in ``claims/ID.json``, and ``patchdyn.json`` saying who wrote it and how far it got. Claims
that are under way keep their checkpoints in ``checkpoints/ID``.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simulations.store import StoreError, explain, read_json, write_bytes, write_dataset, write_json

_MANIFEST = "patchdyn.json"
_FORMAT = 1


class ReportFolder:
    """Records of claims on disk, all measured under one stamp.

    Parameters
    ----------
    path
        The folder; created if it does not exist.
    stamp
        What the results depend on (:func:`simulations.stamp.stamp`).
    claims
        Ids of the claims that the report is about, added to those it is already about.
    force
        Replace results of another stamp. Only files that patchdyn wrote are removed.

    Raises
    ------
    StoreError
        If the folder cannot be written, holds something else, or holds results of another stamp.
    """

    def __init__(
        self, path: Path, stamp: dict[str, str], claims: Iterable[str], *, force: bool = False
    ) -> None:
        self.path = path
        self.stamp = stamp
        manifest = self._manifest()
        if manifest is not None and manifest.get("stamp") != stamp:
            if not force:
                raise StoreError(_refusal(path, manifest.get("stamp", {}), stamp))
            self._remove_everything(manifest)
            manifest = None
        known = [] if manifest is None else list(manifest["claims"])
        self.claims: list[str] = list(dict.fromkeys([*known, *claims]))
        self.write_manifest()

    def _manifest(self) -> dict[str, Any] | None:
        try:
            occupied = self.path.exists() and any(self.path.iterdir())
        except OSError as failure:
            raise explain("use", self.path, failure) from failure
        if not occupied:
            return None
        manifest = read_json(self.path / _MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
            raise StoreError(
                f"{self.path} is not empty and is not a report of patchdyn {_this_format()}: "
                "choose another --out"
            )
        return manifest

    def write_manifest(self) -> None:
        """Write which claims are finished, failed to run, or are missing."""
        records = self.records()
        failed = {key: record["error"] for key, record in records.items() if "error" in record}
        content = {
            "format": _FORMAT,
            "stamp": self.stamp,
            "claims": self.claims,
            "finished": [key for key in records if key not in failed],
            "failed": failed,
            "missing": [key for key in self.claims if key not in records],
        }
        write_json(self.path / _MANIFEST, content)

    def record(self, claim: str) -> dict[str, Any] | None:
        """Return the stored record of a claim, ``None`` unless it and its figures are complete."""
        try:
            record = read_json(self._record_path(claim))
        except StoreError:
            return None
        if not isinstance(record, dict):
            return None
        files = [file for figure in record["figures"] for file in (figure["image"], figure["data"])]
        return record if all((self.path / file).is_file() for file in files) else None

    def records(self) -> dict[str, dict[str, Any]]:
        """Return all complete records, claims that failed to run included, in order."""
        found = {claim: self.record(claim) for claim in self.claims}
        return {claim: record for claim, record in found.items() if record is not None}

    def save(self, record: dict[str, Any], figures: Sequence[tuple[str, bytes, Any]] = ()) -> None:
        """Store one claim: pictures and data first, the record that vouches for them last.

        ``figures`` are triples (name, PNG, dataset), in the order of ``record["figures"]``.
        """
        taken = {
            figure["name"]: claim
            for claim, other in self.records().items()
            if claim != record["claim"]
            for figure in other["figures"]
        }
        for name, image, data in figures:
            if name in taken:
                raise StoreError(
                    f"figure {name} of {record['claim']} would overwrite that of {taken[name]}: "
                    "figures need names of their own"
                )
            write_bytes(self.path / "figures" / f"{name}.png", image)
            write_dataset(self.path / "data" / f"{name}.nc", data)
        write_json(self._record_path(record["claim"]), record)
        self._clear_scratch(record["claim"])
        self.write_manifest()

    def scratch(self, claim: str) -> Path:
        """Return the folder in which a claim under way may keep checkpoints (not made here)."""
        return self.path / "checkpoints" / claim

    def _clear_scratch(self, claim: str) -> None:
        shutil.rmtree(self.scratch(claim), ignore_errors=True)
        with contextlib.suppress(OSError):  # absent, or another claim is under way
            (self.path / "checkpoints").rmdir()

    def forget(self, claim: str) -> None:
        """Remove the record of a claim and its figures."""
        record = self.record(claim)
        files = [self._record_path(claim)]
        for figure in record["figures"] if record else ():
            files += [self.path / figure["image"], self.path / figure["data"]]
        self._remove(files)
        self._clear_scratch(claim)

    def _record_path(self, claim: str) -> Path:
        return self.path / "claims" / f"{claim}.json"

    def _remove_everything(self, manifest: dict[str, Any]) -> None:
        for claim in manifest["claims"]:
            self.forget(claim)
        self._remove([self.path / name for name in ("report.html", "report.json", _MANIFEST)])

    def _remove(self, files: Iterable[Path]) -> None:
        for file in files:
            try:
                file.unlink(missing_ok=True)
            except OSError as failure:
                raise explain("remove", file, failure) from failure
        for folder in ("claims", "figures", "data"):
            with contextlib.suppress(OSError):  # absent, or holds files that are not ours
                (self.path / folder).rmdir()


def _this_format() -> str:
    return f"(layout {_FORMAT})"


def _refusal(path: Path, old: dict[str, str], new: dict[str, str]) -> str:
    changed = [key for key in (*new, *old) if old.get(key) != new.get(key)]
    if "mode" in changed:
        what = f"a {old.get('mode')} run while this one is {new['mode']}"
    else:
        key = changed[0]
        name = {"patchdyn": "version", "code": "source"}.get(key, key)
        what = f"results of another {name} ({old.get(key)}, now {new.get(key)})"
    return f"{path} holds {what}: choose another --out, or replace it with --force"
