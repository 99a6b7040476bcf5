"""Runs of theory files, compared with runs of full models and of handwritten kernels.

Trusts: the full model and the positional enumeration, which `test_kernels` checks.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics import Population, Problem, Status, gradient_descent, gradient_flow
from dynamics.core.compiled_gradients import compiled_gradient
from dynamics.core.jit import emitted_kernel
from dynamics.theory import functions
from dynamics.theory.data import orbits
from dynamics.theory.kernel import compiled, mean, mean_function
from simulations.stated import examples
from simulations.stated.full import FullModel
from simulations.stated.law import law
from simulations.stated.runs import risk, risk_of
from simulations.stated.system import UserTheorySystem
from symbolic.theory import TheoryError, load_theory
from symbolic.theory.source import source
from tests.closeness import close, within

EXAMPLES = Path(examples.__file__).parent
POSITIONAL = Path(symbolic.__file__).parent / "positional" / "stated.py"
VALUES = {"D": 6, "C": 2, "q": 0.3, "nu": 0.01, "beta": 1.0, "p": 3, "kappa": 6, "tau": 1.0}
#: A loss in closed form, two theories with data, and one with several sets of data.
FILES = [POSITIONAL, *(EXAMPLES / name for name in ("teacher.py", "look_up.py", "induction.py"))]


@cache
def positional():
    return load_theory(POSITIONAL)


@cache
def some_risk(path):
    """Return the risk of a file at its default values, and a state."""
    population = risk_of(load_theory(path), UserTheorySystem(path).build({}).problem)
    rng = np.random.default_rng(5)
    return population, population.problem.initial_state + 0.5 * rng.normal(
        size=len(population.order_parameters)
    )


def test_compiled_function_agrees_with_plain_python():
    theory = positional()
    values, text = theory.checked(VALUES), source(theory)
    data, state = orbits(law(theory, values)), [0.4, 0.7, -0.3]
    plain = mean(mean_function(text, "theory"), data, state, list(values.values()))
    fast = mean(compiled(text, "theory"), data, state, list(values.values()))
    close(fast[0], plain[0], rel=1e-14)
    close(fast[1], plain[1], rel=1e-12)


def test_machine_code_is_cached_on_disk():
    """A kernel with the same source is loaded; one with another source is compiled."""
    text = "def mean(x):\n    return 2.0 * x\n"
    sources = [text, text, text.replace("2.0", "3.0")]
    kernels = [
        emitted_kernel(mean_function(x, "theory"), x, callee=functions.softplus) for x in sources
    ]
    assert [kernel(1.5) for kernel in kernels] == [3.0, 3.0, 4.5]
    assert kernels[1].stats.cache_hits
    assert not kernels[1].stats.cache_misses


def test_descent_agrees_with_the_full_model():
    """Compare 50 steps in every entry of A and v that is not fixed."""
    theory, rate = positional(), 0.02
    run = gradient_descent(risk(theory, **VALUES), learning_rate=rate, steps=50, record="linear")
    full = FullModel(theory, theory.checked(VALUES))
    state = full.embed(dict(zip(run.order_parameters, run.states[0].tolist())))
    for _ in range(50):
        _, gradient = full.dense.evaluate(state)
        state = {
            name: array - rate * np.where(full.free(name), gradient[name], 0.0)
            for name, array in state.items()
        }
    result = full.mean(state)
    for name, value in zip(run.order_parameters, run.states[-1]):
        close(value, result[name][0], rel=1e-12)
        within(result[name][1], 0.0, absolute=1e-15)
    assert abs(run.states[-1][1]) > 1e-6
    assert run.status is Status.COMPLETED
    close(run.loss[-1], full.dense.evaluate(state)[0], rel=1e-13)


def test_flow_agrees_with_the_handwritten_kernel():
    problem = Problem(D=6, C=2, q=0.3, nu=0.01, beta=1.0)
    derived = gradient_flow(risk(positional(), **VALUES), horizon=1e4, rtol=1e-10, atol=1e-13)
    by_hand = gradient_flow(
        Population(problem, "enumeration", tolerance=1e-13), horizon=1e4, rtol=1e-10, atol=1e-13
    )
    close(derived.states[-1], by_hand.states[-1], rel=1e-6)
    close(derived.loss[-1], by_hand.loss[-1], rel=1e-9)
    assert derived.violations() == {"loss non-increasing": 0.0}
    assert list(derived.to_dataset().data_vars) == [
        "alpha",
        "gamma",
        "rho",
        "loss",
        "bound",
        "gradient_bound",
    ]


def test_jacobian_agrees_with_the_handwritten_kernel():
    problem, at = Problem(D=6, C=2, q=0.3, nu=0.01, beta=1.0), np.array([0.4, 0.7, -0.3])
    by_hand = Population(problem, "enumeration", tolerance=1e-13)
    wanted = by_hand.jacobian(by_hand.state(at))
    result = risk(positional(), **VALUES).jacobian(at)
    within(result, wanted, absolute=1e-13 * np.abs(wanted).max())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + "/" + path.stem)
def test_jacobian_agrees_with_differences_of_the_gradient(path):
    population, state = some_risk(path)
    columns = []
    for direction in np.eye(state.size):
        ahead, behind = (population.gradient(state + h * direction) for h in (1e-5, -1e-5))
        columns.append((ahead - behind) / 2e-5)
    jacobian = population.jacobian(state)
    within(jacobian.T, np.array(columns), absolute=1e-8 * np.abs(jacobian).max())
    counts = np.array([
        float(order.count.subs(dict(population.problem.values)))
        for order in load_theory(path).orders
    ])  # fmt: skip
    hessian = counts[:, None] * jacobian
    within(hessian, hessian.T, absolute=1e-13 * np.abs(hessian).max())


@pytest.mark.parametrize(
    "path",
    [pytest.param(x, marks=pytest.mark.slow if x.stem == "look_up" else ()) for x in FILES],
    ids=lambda path: path.parent.name + "/" + path.stem,
)
def test_compiled_descent_takes_the_steps_of_the_gradient(path):
    population, state = some_risk(path)
    run = gradient_descent(population, learning_rate=1e-2, steps=20, initial=state)
    for _ in range(20):
        state = state - 1e-2 * population.gradient(state)
    assert np.array_equal(run.states[-1], state)
    assert run.stats["evaluations"] == 20
    assert compiled_gradient(type(population.gradient_plan(state))) is not None


def test_overflow_is_reported():
    population = risk(positional(), **VALUES)
    run = gradient_flow(population, horizon=1.0, initial=[1e200, 0.0, 0.0])
    assert run.status is Status.OVERFLOW
    with pytest.raises(OverflowError, match="the risk is"):
        population.evaluate([1e200, 0.0, 0.0])


def test_missing_values_are_reported():
    with pytest.raises(TheoryError, match="beta is missing: give D, C, beta, kappa"):
        risk(positional(), D=6, C=2)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("_out[1] += _w *", "_out[1] +="),  # probability of a configuration
        ("_loss += _w *", "_loss +="),
        ("_n = D*(C - 1)", "_n = D*C"),  # number of entries of an order parameter
        ("_x6 = C*_x4*(-1 + D/C)", "_x6 = C*_x4*(D/C)"),  # number of keys of a softmax
        ("_power(_x17*alpha*kappa, p)", "_power(_x17*alpha*kappa, p - 1)"),
        ("range(_begin_set, _end_set)", "range(_begin_set, _end_set - 1)"),  # families
        ("_begin_set = _first_set[_b]", "_begin_set = _first_set[0]"),
        ("_row1[_f0]", "_row1[_begin_set]"),  # row of a family
        ("_d3 = _rows1[_r, 3]", "_d3 = _rows1[_r, 1]"),
        (" - n_patch[:, 2])*count_set", ")*count_set"),  # total over all families
    ],
)
def test_wrong_kernel_differs_from_the_full_model(right, wrong):
    theory = positional()
    values, text = theory.checked(VALUES), source(theory)
    assert right in text
    full, state = FullModel(theory, values), {"alpha": 0.4, "gamma": 0.7, "rho": -0.3}
    loss, gradient = full.dense.evaluate(full.embed(state))
    wanted = [loss, *(full.mean(gradient)[name][0] for name in state)]

    def off(source_text):
        function, data = mean_function(source_text, "theory"), orbits(law(theory, values))
        result = mean(function, data, list(state.values()), list(values.values()))
        return max(abs(x / y - 1.0) for x, y in zip([result[0], *result[1]], wanted))

    assert off(text) <= 1e-12
    assert off(text.replace(right, wrong)) > 1e-3
