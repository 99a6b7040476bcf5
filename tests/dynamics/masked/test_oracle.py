"""The d x d model: comparison with the reduced dynamics, and entries that must not change."""

import numpy as np
import pytest

from dynamics import gradient_descent, gradient_flow
from dynamics.core.errors import ParameterError
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked import oracle as full
from tests.closeness import close

CASES = {
    "two clusters, P = 10": ([5, 3, 2], [4, 4, 2], 6, 0.5, 1.3),
    "two clusters, P = 8": ([4, 2, 2], [2, 3, 3], 2, 0.25, 1.0),
    "one cluster, P = 9": ([5, 2, 2], None, 5, 0.66, 0.8),
}


def problem_of(case: str) -> MaskedProblem:
    first, second, query, mask_ratio, z = CASES[case]
    sizes = [first] if second is None else [first, second]
    return MaskedProblem.from_sizes(*sizes, seed=1, query=query, mask_ratio=mask_ratio, z_low=z)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_500_steps_agree(case: str) -> None:
    problem = problem_of(case)
    oracle = full.gradient_descent(problem, learning_rate=3.0, steps=500, record_every=50)
    run = gradient_descent(
        MaskedPopulation(problem), learning_rate=3.0, steps=500, record="linear", records=11
    )
    correlations = oracle.correlations()
    assert set(correlations) == set(problem.order_parameters)
    for name, values in correlations.items():
        assert run.column(name) == pytest.approx(values, abs=1e-12)
    assert run.loss == pytest.approx(oracle.losses[:, problem.patch], abs=1e-13)
    assert np.abs(run.final).max() > 1.0  # the run moves away from the start
    violations = oracle.violations()
    assert violations["feature rows fixed"] == 0.0
    assert violations["one Upsilon per cell"] < 1e-14
    assert run.violations() == dict.fromkeys(run.violations(), 0.0)
    assert run.excess[-1] < 0.1 * run.excess[0]
    close(oracle.time, run.time, rel=1e-12)


def test_rows_are_independent() -> None:
    """The gradient of the query's row depends on this row only; rows of features have none."""
    problem = problem_of("two clusters, P = 8")
    model = full.FullMaskedModel(problem)
    rng = np.random.default_rng(0)
    Q, other = (rng.normal(size=(model.dimension,) * 2) for _ in range(2))
    other[problem.patch] = Q[problem.patch]
    (losses, dQ), (other_losses, dother) = model.evaluate(Q), model.evaluate(other)
    assert dQ[problem.patch] == pytest.approx(dother[problem.patch], abs=1e-16)
    close(losses[problem.patch], other_losses[problem.patch], rel=1e-14)
    assert np.all(dQ[problem.P :] == 0.0)
    assert np.all(dother[problem.P :] == 0.0)
    assert model.spread(Q) > 0.1  # a random row varies within cells


def test_gradient_is_slope_of_loss() -> None:
    model = full.FullMaskedModel(MaskedProblem.rows_and_columns(2, mask_ratio=0.5))
    rng = np.random.default_rng(1)
    Q = rng.normal(size=(model.dimension,) * 2)
    _, dQ = model.evaluate(Q)
    for _ in range(5):
        step = 1e-5 * rng.normal(size=Q.shape)
        slope = (model.evaluate(Q + step)[0].sum() - model.evaluate(Q - step)[0].sum()) / 2
        close(np.sum(dQ * step), slope, rel=1e-6)


def test_descent_converges_to_flow() -> None:
    """The distance to the flow is proportional to the learning rate."""
    problem = problem_of("one cluster, P = 9")
    population = MaskedPopulation(problem)
    flow = gradient_flow(population, horizon=100.0, rtol=1e-10).final
    errors = []
    for steps in (100, 200, 400):
        run = gradient_descent(population, learning_rate=100.0 / steps, steps=steps)
        errors.append(np.abs(run.final - flow).max())
    close(errors[0] / errors[1], 2.0, rel=0.1)
    close(errors[1] / errors[2], 2.0, rel=0.1)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (MaskedProblem.two_phases(1000), "explicit partitions"),
        (MaskedProblem.rows_and_columns(2, z_high=2.0), "fixed z"),
        (MaskedProblem.rows_and_columns(5), "enumerate all masks"),
    ],
)
def test_rejects_problem(problem: MaskedProblem, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        full.FullMaskedModel(problem)


def test_rejects_bad_arguments() -> None:
    problem = MaskedProblem.rows_and_columns(2)
    with pytest.raises(ParameterError, match=r"matrix of shape \(8, 8\)"):
        full.FullMaskedModel(problem).evaluate(np.zeros((3, 3)))
    for name, value in (("learning_rate", -1.0), ("steps", 0), ("record_every", True)):
        arguments = {"learning_rate": 1.0, "steps": 1, "record_every": 1} | {name: value}
        with pytest.raises(ParameterError, match=name):
            full.gradient_descent(problem, **arguments)
