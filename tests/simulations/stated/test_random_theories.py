"""Random theories: the reduction derived for all sizes agrees with the full model at small ones.

Trusts: the full model, which shares no code with the derivation.
"""

import numpy as np
import pytest

from dynamics.core.errors import ParameterError
from simulations.stated.full import FullModel
from symbolic.theory import load_theory
from tests.simulations.stated.agreement import assert_lifted_is_dense
from tests.symbolic.theory.random_theories import random_theory

#: Sizes n, m, and largest number of configurations; larger models are not compared.
SIZES = ((2, 2), (3, 1), (1, 3), (3, 2), (1, 1))
CONFIGURATIONS = 300


@pytest.mark.parametrize("seed", range(40))
def test_reduction_agrees_with_the_full_model(tmp_path, seed):
    path = tmp_path / "mine.py"
    path.write_text(random_theory(seed))
    theory = load_theory(path)
    state = 0.6 * np.random.default_rng(seed).normal(size=len(theory.orders))
    compared = 0
    for n, m in SIZES:
        values = {"n": n, "m": m} | dict.fromkeys(theory.free_constants, 0.3)
        try:
            full = FullModel(theory, theory.checked(values))
        except ParameterError:
            continue
        if len(full.dense.weight) <= CONFIGURATIONS:
            assert_lifted_is_dense(theory, values, state)
            compared += 1
    assert compared >= 2
