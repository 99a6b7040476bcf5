"""A sweep, computed once for all test files."""

import pytest

from simulations import theories
from simulations.sweep.cells import measure_cells
from simulations.sweep.config import parse
from simulations.sweep.storage import labelled, write_result

SWEEP = """\
system = "positional"
[fixed]
D = 16
tolerance = 1e-6
[grid]
beta = [0.5, 1.0]
"qD/C^2" = { from = 0.05, to = 0.5, number = 3, scale = "log" }
nu = [0.01, 0.1]
[run]
horizon = 1e4
rtol = 1e-6
"""


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("sweep"), parse(SWEEP)
    rows = measure_cells(theories.load("positional"), list(config))
    write_result(folder, labelled(config, rows, {"code": "0"}))
    return folder
