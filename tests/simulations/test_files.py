"""Files: atomic writes, datasets, records, JSON, and stamps of the code."""

import enum
import errno
import json
import math
import os
import shutil

import numpy as np
import pytest
import xarray

from dynamics import State
from dynamics.core import provenance
from simulations import files
from simulations.reproduction.claim import Context
from simulations.reproduction.predicates import Verdict
from simulations.sweep.cells import sweep_stamp


class TestReplacing:
    def test_writes_and_overwrites(self, tmp_path):
        path = tmp_path / "new folder" / "file.txt"
        files.write_bytes(path, b"one")
        files.write_bytes(path, b"two")
        assert path.read_bytes() == b"two"
        assert os.listdir(path.parent) == ["file.txt"]

    def test_exception_while_writing_preserves_the_old_file(self, tmp_path):
        path = tmp_path / "file.txt"
        path.write_bytes(b"old")

        def interrupted() -> None:
            with files.replacing(path) as temporary:
                temporary.write_bytes(b"half of the ne")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file.txt"]

    @pytest.mark.parametrize("call", ["fsync", "replace"])
    def test_full_disk_preserves_the_old_file(self, tmp_path, monkeypatch, call):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        path = tmp_path / "file.json"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, call, full)
        with pytest.raises(files.StoreError, match=r"cannot write .*file\.json: No space left"):
            files.write_json(path, {})
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file.json"]

    def test_folder_that_cannot_exist(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(files.StoreError, match="cannot write"):
            files.write_bytes(tmp_path / "file" / "below", b"")

    def test_permissions_are_those_of_new_files(self, tmp_path):
        files.write_bytes(tmp_path / "ours", b"")
        (tmp_path / "plain").write_bytes(b"")
        assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


class TestDataset:
    def test_round_trip(self, tmp_path):
        data = xarray.Dataset({"y": ("x", [1.0, 2.0])}, attrs={"title": "t"})
        files.write_dataset(tmp_path / "a.nc", data)
        with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as back:
            xarray.testing.assert_identical(back.load(), data)

    def test_flipped_bits_are_detected_before_parsing(self, tmp_path, monkeypatch):
        path = tmp_path / "a.nc"
        digest = files.write_dataset(path, xarray.Dataset({"y": ("x", np.arange(5.0))}))
        assert files.read_dataset(path, digest).y.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        content = path.read_bytes()

        def parsed(*_, **__):
            raise AssertionError("a damaged file was parsed")

        monkeypatch.setattr(xarray, "open_dataset", parsed)
        for position in np.linspace(0, len(content) - 1, 97).astype(int):
            damaged = bytearray(content)
            damaged[position] ^= 1 << int(position) % 8
            path.write_bytes(damaged)
            with pytest.raises(files.StoreError, match="does not match its digest"):
                files.read_dataset(path, digest)
        path.unlink()
        with pytest.raises(files.StoreError, match="does not match its digest"):
            files.read_dataset(path, digest)


RECORD = {"claim": "one", "value": [0.1, 1e300, None], "text": "\u0393 and more", "n": {"D": 8}}


class TestRecord:
    def test_round_trip(self, tmp_path):
        path = tmp_path / "a.json"
        assert files.read_record(path) is None
        files.write_record(path, RECORD | {"value": (np.float64(0.1), 1e300, math.nan)})
        assert files.read_record(path) == RECORD

    def test_changed_bytes_are_detected(self, tmp_path):
        path, noticed = tmp_path / "a.json", 0
        files.write_record(path, RECORD)
        content = path.read_bytes()
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            try:
                assert files.read_record(path) == RECORD  # such as another white space
            except files.StoreError:
                noticed += 1
        assert noticed > 0.7 * len(content)

    @pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"7", b'{"claim": "one"}', b"[" * 9999])
    def test_other_json_is_not_a_record(self, tmp_path, content):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(files.StoreError, match="cannot read"):
            files.read_record(tmp_path / "a.json")

    def test_a_folder_is_not_a_record(self, tmp_path):
        with pytest.raises(files.StoreError, match=r"cannot read .*: Is a directory"):
            files.read_record(tmp_path)


class TestPlain:
    def test_numpy_enums_and_named_tuples(self):
        class Colour(enum.Enum):
            RED = 1.5

        value = {
            "float": np.float64(0.25),
            "int": np.int64(3),
            "flag": np.bool_(True),
            "array": np.array([[1.0, np.nan]]),
            "infinite": float("inf"),
            "verdict": Verdict.FAILS,
            "enum": Colour.RED,
            "state": State(1.0, 2.0, 3.0),
            "tuple": (1, None),
            "text": "Γ",
            4: "key",
        }
        assert json.loads(files.to_json(value)) == {
            "float": 0.25,
            "int": 3,
            "flag": True,
            "array": [[1.0, None]],
            "infinite": None,
            "verdict": "fails",
            "enum": 1.5,
            "state": {"alpha": 1.0, "gamma": 2.0, "rho": 3.0},
            "tuple": [1, None],
            "text": "Γ",
            "4": "key",
        }

    def test_dataclasses_and_other_objects(self, tmp_path):
        assert files.plain(tmp_path) == str(tmp_path)
        assert files.plain(Context(quick=True, progress=lambda _: None))["quick"] is True


class TestReadJson:
    def test_absent_is_none(self, tmp_path):
        assert files.read_json(tmp_path / "absent.json") is None

    def test_damaged_file_is_reported(self, tmp_path):
        (tmp_path / "a.json").write_text("{half")
        with pytest.raises(files.StoreError, match=r"cannot read .*a\.json"):
            files.read_json(tmp_path / "a.json")


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the source that a test may change."""
    for package in ("symbolic", "dynamics", "simulations"):
        shutil.copytree(
            provenance.ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    monkeypatch.setattr(files, "ROOT", tmp_path)
    files.code_fingerprint.cache_clear()
    yield tmp_path
    files.code_fingerprint.cache_clear()


def changed(file, digest):
    """Return whether a line added to a file changes the digest returned by ``digest``."""
    before = digest()
    file.write_text(file.read_text() + "# changed\n")
    files.code_fingerprint.cache_clear()
    return digest() != before


@pytest.mark.parametrize(
    "file", ["symbolic/emit.py", "dynamics/core/flow.py", "simulations/masked/system.py"]
)
def test_stamp_of_a_report_depends_on_every_line(copy, file):
    assert changed(copy / file, files.code_fingerprint)


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("dynamics/core/flow.py", True),
        ("dynamics/masked/problem.py", True),
        ("simulations/case.py", True),
        ("simulations/solver_options.py", True),
        ("simulations/system.py", True),
        ("simulations/positional/system.py", True),
        ("simulations/reproduction/report.py", False),
        ("symbolic/emit.py", False),
    ],
)
def test_stamp_of_a_sweep_depends_on_numerical_code(copy, file, counts):
    assert changed(copy / file, lambda: sweep_stamp()["code"]) is counts


def test_digest_of_a_missing_part_raises():
    with pytest.raises(FileNotFoundError, match="dynamics/elsewhere is not part"):
        files.code_fingerprint(("dynamics/elsewhere",))


def test_commit_of_a_checkout():
    if not (provenance.ROOT / ".git").exists():
        pytest.skip("not a checkout")
    assert len(provenance.provenance()["commit"].removesuffix("-dirty")) == 12
