"""Checkpoints: arrays are restored exactly; damaged files and files of other runs are rejected."""

import numpy as np
import pytest

from dynamics import ParameterError
from dynamics.core.checkpoint import Checkpoint, computed_once, fingerprint


def test_value_is_computed_once_and_restored_exactly(tmp_path):
    values, calls = np.array([[0.1, np.nan], [np.inf, -0.0]]), []

    def compute():
        calls.append(1)
        return values.tolist()

    for path in (tmp_path / "new" / "a.npz", tmp_path / "new" / "a.npz", None):
        np.testing.assert_array_equal(computed_once(path, "a", compute), values)
    assert len(calls) == 2


@pytest.mark.parametrize("content", [b"", b"PK but no archive"])
def test_damaged_file_is_rejected(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"checkpoint = .*a\.npz is not allowed: .* damaged"):
        computed_once(path, "a", pytest.fail)


def test_changed_array_or_name_is_rejected(tmp_path):
    checkpoint = Checkpoint(tmp_path / "a.npz", "a")
    checkpoint.write({"x": 1.0, "y": np.arange(3)})
    assert sorted(checkpoint.read()) == ["x", "y"]
    with np.load(checkpoint.path) as stored:
        content = dict(stored)
    for change in ({"x": np.array(2.0)}, {"names": np.array(["x"])}, {"format": np.array(0)}):
        np.savez(checkpoint.path, **(content | change))
        with pytest.raises(ParameterError, match="damaged"):
            checkpoint.read()


def test_file_of_another_run_is_rejected(tmp_path):
    Checkpoint(tmp_path / "a.npz", "a").write({"x": 1.0})
    with pytest.raises(ParameterError, match="of another run"):
        Checkpoint(tmp_path / "a.npz", "b").read()


def test_fingerprint_depends_on_settings_dtypes_and_shapes():
    x = np.arange(4.0)
    marks = [fingerprint(*run) for run in (("a", x), ("b", x), ("a", x.astype(np.float32)),
             ("a", x.reshape(2, 2)), ("a", x + 1.0), ("a",), ({"a": 1}, x))]  # fmt: skip
    assert len(set(marks)) == len(marks)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
