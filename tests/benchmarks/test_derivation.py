"""How long it takes to derive the stated theories, and to compile each for the first time.

Processor time, so that what else runs on the machine hardly counts; what is timed is read from no
cache.
"""

from pathlib import Path
from time import process_time

import numba
import numpy as np
import pytest

import symbolic
from dynamics.core.jit import REORDER
from dynamics.theory.data import orbits
from dynamics.theory.kernel import compiled as compiled_once
from dynamics.theory.kernel import mean, mean_function
from simulations.stated.law import law
from simulations.stated.system import UserTheorySystem
from symbolic.theory import load_theory
from symbolic.theory.source import source
from tests.example_files import enumerated

ROOM = Path(symbolic.__file__).parent
FILES = [
    *(ROOM / name / "stated.py" for name in ("positional", "masked")),
    *enumerated(),
]
#: Seconds at most.
DERIVED, COMPILED = 5.0, 10.0


@pytest.mark.benchmark(group="derive a theory and compile it")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_derived_and_compiled(benchmark, path, timed):
    began = process_time()
    text = benchmark.pedantic(lambda: source(load_theory(path)), rounds=1)
    derived = process_time() - began
    theory = UserTheorySystem(path)
    problem = theory.build({}).problem
    data, constants = orbits(law(theory.theory, problem.values)), list(problem.values.values())
    plain = mean_function(text, "it")
    wanted = mean(plain, data, problem.initial_state, constants)
    anew = numba.njit(error_model="numpy", nogil=True, fastmath=set(REORDER))
    kernel = anew(plain) if timed else compiled_once(text, path.stem)
    began = process_time()
    result = mean(kernel, data, problem.initial_state, constants)
    compiled = process_time() - began
    benchmark.extra_info.update(derived=derived, compiled=compiled)
    assert np.abs(result[1] - wanted[1]).max() <= 1e-12 * np.abs(wanted[1]).max()
    if benchmark.enabled:
        assert derived <= DERIVED
        assert compiled <= COMPILED
