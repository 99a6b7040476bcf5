"""What holds for every masked problem and every state, by Hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.core.errors import ParameterError
from dynamics.masked import MaskedPopulation, MaskedProblem


@st.composite
def problems(draw: st.DrawFn) -> MaskedProblem:
    """Exponents up to P = 10^12, or small areas with their cells."""
    mask_ratio = draw(st.floats(0.1, 0.9))
    z_low = draw(st.floats(0.5, 2.0))
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
        P = sum(sizes)
        clusters = [sizes, sizes[::-1]][: draw(st.integers(1, 2))]
        return MaskedProblem.from_sizes(
            *clusters,
            query=draw(st.integers(0, P - 1)),
            seed=draw(st.integers(0, 9)),
            mask_ratio=min(max(mask_ratio, 1 / P), 1 - 1 / P),
            z_low=z_low,
        )
    return MaskedProblem(
        P=draw(st.integers(20, 10**12)),
        K=draw(st.integers(1, 2)),
        z_low=z_low,
        kappa_c=draw(st.floats(0.3, 0.95)),
        kappa_s=draw(st.floats(0.05, 0.6)),
        mask_ratio=mask_ratio,
        query=draw(st.sampled_from(["local", "global"])),
    )


@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 10**6), size=st.floats(0.0, 20.0))
def test_signs_sums_floor_and_symmetry(data: st.DataObject, seed: int, size: float) -> None:
    try:
        problem = data.draw(problems())
    except ParameterError:  # areas too large for P, or no patch left to mask
        return
    population = MaskedPopulation(problem)
    n = len(problem.order_parameters)
    state = size * np.random.default_rng(seed).normal(size=n)
    value = population.evaluate(state)
    assert value.loss >= value.floor * (1.0 - 1e-12)
    layout, entries = problem.layout, problem.multiplicity
    total = value.gradient * entries
    assert all(value.gradient[areas.own_slot] <= 0.0 for areas in layout.clusters)
    positions = total[layout.phi_slots :]
    assert abs(positions.sum()) <= 1e-12 * max(np.abs(positions).sum(), value.loss)
    hessian = population.jacobian(state) * entries[:, None]
    assert np.abs(hessian - hessian.T).max() <= 1e-12 * max(np.abs(hessian).max(), value.loss)
    assert np.all((value.attention >= 0.0) & (value.attention <= problem.K * (1.0 + 1e-12)))
    assert np.isfinite(value.bound)
