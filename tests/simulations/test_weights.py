"""Files of weights in the safetensors format."""

import numpy as np
import pytest

from dynamics.core.files import FileError
from simulations.weights import WeightFile
from tests.weights import write_weights


@pytest.mark.parametrize("lost", [1, 8, 47])
def test_a_file_cut_within_its_last_tensor(tmp_path, lost):
    """The header counts too: a loss that is shorter than it is noticed."""
    path = write_weights(tmp_path / "run.safetensors", {"A": np.ones(2), "v": np.arange(12.0)})
    path.write_bytes(path.read_bytes()[:-lost])
    with WeightFile(path) as file:
        assert file.read("A").tolist() == [1.0, 1.0]
        with pytest.raises(FileError, match="it is cut short"):
            file.read("v")
