"""Derived kernels compared with full models and with handwritten kernels.

Trusts: the full-matrix oracle of the positional theory and central differences, for the full model;
40-digit arithmetic, for the digits of an emitted kernel.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

import symbolic
from dynamics import Population, Problem, State, ToleranceError
from dynamics.core.errors import ParameterError
from dynamics.full import population_gradient
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.theory.data import orbits
from dynamics.theory.kernel import compiled, mean, mean_function
from simulations.stated.full import FullModel
from simulations.stated.law import law
from symbolic.theory import load_theory
from symbolic.theory.source import source
from tests.closeness import close, within
from tests.dynamics.theory.high_precision import high_precision_mean
from tests.symbolic.theory import statements

PACKAGE = Path(symbolic.__file__).parent
FILES = {name: PACKAGE / name / "stated.py" for name in ("positional", "masked")}
#: Small sizes, and constants without accidental symmetry.
SMALL = {
    "positional": {
        "D": 6,
        "C": 2,
        "q": 0.3,
        "nu": 0.01,
        "beta": 1.0,
        "p": 3,
        "kappa": 6,
        "tau": 1.3,
    },
    "masked": {"G": 3, "C": 2, "N": 2, "M": 3, "z": 1.3},
    "flips": {"d": 3, "t": 0.7},
    "colours": {"n": 2, "m": 3, "p": 0.7},
}


@cache
def theory_and_source(name, folder=[]):  # noqa: B006 (a folder for all texts)
    """Return a theory and its emitted source."""
    if name in FILES:
        theory = load_theory(FILES[name])
    else:
        path = Path(folder[0]) / f"{name}.py"
        path.write_text(getattr(statements, name.upper()))
        theory = load_theory(path)
    return theory, source(theory)


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory):
    theory_and_source.__wrapped__.__defaults__[0][:] = [tmp_path_factory.mktemp("theories")]


def derived(name, values, state):
    """Return loss and gradient per entry; kernels of the papers are compiled."""
    theory, text = theory_and_source(name)
    checked = theory.checked(values)
    vector = [state[order.name] for order in theory.orders]
    data, function = orbits(law(theory, checked)), compiled if name in FILES else mean_function
    loss, gradient = mean(function(text, name), data, vector, list(checked.values()))
    return loss, dict(zip(state, gradient))


def random_state(theory, seed=1):
    rng = np.random.default_rng(seed)
    return {order.name: x for order, x in zip(theory.orders, rng.normal(size=len(theory.orders)))}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow if x in ("masked", "colours") else ()) for x in SMALL],
)
def test_reduction_agrees_with_the_full_model(name):
    """Compare loss, gradient and numbers of entries; entries of an orbit are equal."""
    theory, _ = theory_and_source(name)
    state = random_state(theory)
    full = FullModel(theory, theory.checked(SMALL[name]))
    loss, gradient = full.dense.evaluate(full.embed(state))
    result, per_entry = derived(name, SMALL[name], state)
    close(result, loss, rel=1e-14)
    entries = full.mean(gradient)
    largest = max(abs(value) for value, _, _ in entries.values())
    for order in theory.orders:
        value, spread, number = entries[order.name]
        assert number == full.numbers.whole(order.count), order.name
        within(per_entry[order.name], value, absolute=1e-14 * largest)
        within(spread, 0.0, absolute=1e-14 * largest)
    names = [order.name for order in theory.orders if entries[order.name][2]]
    assert any(abs(per_entry[name]) > 0.01 * largest for name in names)


def test_gradient_of_the_full_model():
    """Compare with central differences at random entries."""
    theory, _ = theory_and_source("colours")
    full = FullModel(theory, theory.checked({"n": 2, "m": 2, "p": 0.7}))
    rng = np.random.default_rng(0)
    at = {name: rng.normal(size=full.dense.shape(name)) for name in full.dense.tensors}
    _, gradient = full.dense.evaluate(at)
    for name, array in at.items():
        for index in list(np.ndindex(array.shape))[::5]:
            sides = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[index] += step
                sides.append(full.dense.evaluate(at | {name: moved})[0])
            within(gradient[name][index], (sides[0] - sides[1]) / 2e-5, absolute=1e-9)


def test_full_model_of_the_positional_theory_agrees_with_the_oracle():
    """The attention matrix has no symmetry, and the two share no code."""
    values = SMALL["positional"]
    theory, _ = theory_and_source("positional")
    full = FullModel(theory, theory.checked(values))
    A = np.random.default_rng(3).normal(size=(6, 6))
    w = np.eye(6)[0]
    problem = Problem(D=6, C=2, q=0.3, nu=0.01, beta=1.0, temperature=1.3)
    loss, dA, dv = population_gradient(problem, A, 0.4 * w, w)
    result, gradient = full.dense.evaluate({"A": A, "v": np.array(0.4)})
    close(result, loss, rel=1e-14)
    np.fill_diagonal(gradient["A"], 0.0)
    within(gradient["A"], dA, absolute=1e-14 * np.abs(dA).max())
    close(gradient["v"], dv[0], rel=1e-13)
    assert full.mean(gradient)["gamma"][1] > 1e-3  # without symmetry the entries differ


#: No shrinking, because failures are slow to shrink.
PHASES = (Phase.explicit, Phase.generate)

problems = st.builds(
    lambda shape, **others: Problem(D=shape[0], C=shape[1], **others),
    shape=st.sampled_from([(8, 2), (9, 3), (8, 4), (6, 2), (10, 5), (12, 2)]),
    q=st.floats(0.01, 1.0),
    p=st.sampled_from([3, 5, 7]),
    nu=st.floats(1e-3, 1.0),
    beta=st.floats(-2.0, 3.0),
    temperature=st.floats(0.3, 3.0),
    output_scale=st.sampled_from([None, 1.0, 2.5]),
)
states = st.builds(State, st.floats(0.02, 0.6), st.floats(-2.0, 3.0), st.floats(-3.0, 2.0))


def positional_values(problem):
    own = {"D": problem.D, "C": problem.C, "q": problem.q, "nu": problem.nu, "beta": problem.beta}
    return own | {"p": problem.p, "kappa": problem.kappa, "tau": problem.tau}


@settings(max_examples=15, phases=PHASES)
@given(problem=problems, state=states)
@example(
    problem=Problem(D=10, C=5, q=0.96339, p=7, nu=0.30709, beta=-0.28059, temperature=1.5),
    state=State(0.39027, 1.6827, -0.24792),
)
def test_positional_kernel_agrees_with_the_handwritten_one(problem, state):
    """The tolerance is 1e-12 of the largest slope along an order parameter.

    Opposite outputs cancel exactly in the handwritten kernel, up to rounding in the derived one.
    """
    _, gradient = derived("positional", positional_values(problem), state._asdict())
    try:
        value = Population(problem, "enumeration", tolerance=1e-13).evaluate(state)
    except ToleranceError:
        assume(False)
    slopes = np.array(problem.multiplicity) * np.array(value.gradient)
    result = np.array(problem.multiplicity) * np.array(list(gradient.values()))
    largest = max(1.0, problem.kappa * state.alpha)
    tied = value.ties * 2e-16 * problem.kappa * problem.p * largest ** (problem.p - 1)
    within(result, slopes, absolute=1e-12 * np.abs(slopes).max() + 1e-13 + tied)


@example(
    problem=Problem(D=8, C=2, q=0.1, p=5, nu=0.354, beta=-1.281e-212, temperature=0.3),
    state=State(0.171, 1.141e-161, -1.73e-163),
)
@settings(max_examples=5, phases=PHASES)
@given(problem=problems, state=states)
def test_relative_error_of_each_entry(problem, state):
    """Compare 40 digits of the derived expression with entries certified to 1e-12 of themselves."""
    assume(problem.D <= 9)
    theory, text = theory_and_source("positional")
    values = theory.checked(positional_values(problem))
    try:
        value = Population(problem, "enumeration", tolerance=1e-12, relative=True).evaluate(state)
    except ToleranceError:
        assume(False)
    # for nearly equal logits, an entry is of the order of their differences
    apart = [abs(x) for x in np.diff([problem.beta, state.gamma, state.rho]) if x != 0.0]
    digits = 40 + math.ceil(max(0.0, -math.log10(min(apart, default=1.0))))
    result = high_precision_mean(text, values.values(), state, orbits(law(theory, values)), digits)[
        1
    ]
    for x, by_hand in zip(result, value.gradient):
        if by_hand == 0.0:  # at beta = gamma = rho
            within(x, 0.0, absolute=1e-30)
        else:
            close(x, by_hand, rel=2e-12)


def masked_name(name, query, own):
    """Return the derived name of an order parameter of a global or local query in area ``own``."""
    letter, area = name.split("_")
    target = "global" if area == "1" else "local"
    if area == "self":
        return f"Upsilon[{query} to {query}, diagonal]"
    same = "own" if letter == "Phi" else "same"
    near = same if area == own else "other"
    relation = f", {near} local area" if query == target == "local" else ""
    key = f"{target} area" if letter == "Phi" else target
    return f"{letter}[{query} to {key}{relation}]"


@settings(max_examples=10, phases=PHASES)
@given(
    shape=st.sampled_from([(2, 2, 2), (4, 2, 3), (3, 3, 2), (5, 2, 4), (4, 4, 3)]),
    masked=st.integers(1, 6),
    z=st.floats(0.3, 2.0),
    seed=st.integers(0, 10**6),
    is_global=st.booleans(),
)
def test_masked_kernel_agrees_with_the_handwritten_one(shape, masked, z, seed, is_global):
    G, C, N = shape
    P = G + C * N
    assume(masked < P)
    theory, _ = theory_and_source("masked")
    state = random_state(theory, seed)
    _, gradient = derived("masked", {"G": G, "C": C, "N": N, "M": masked, "z": z}, state)
    query, index = ("global", 0) if is_global else ("local", G)
    problem = MaskedProblem.from_sizes((G,) + (C,) * N, query=index, mask_ratio=masked / P, z_low=z)
    assert problem.masked == masked
    names = [
        masked_name(name, query, "1" if is_global else "2") for name in problem.order_parameters
    ]
    by_hand = MaskedPopulation(problem, "enumeration").gradient(np.array([state[x] for x in names]))
    result = np.array([gradient[name] for name in names])
    within(result, np.array(by_hand), absolute=1e-12 * np.abs(by_hand).max())
    assert np.abs(by_hand).max() > 1e-8


def test_too_large_sizes_are_rejected():
    theory, _ = theory_and_source("positional")
    with pytest.raises(ParameterError, match=r"e\+07 data orbits are too many \(most 1e\+06\)"):
        orbits(law(theory, theory.checked(SMALL["positional"] | {"D": 64, "C": 4})))
    crowded = law(theory, theory.checked(SMALL["positional"] | {"D": 4096, "C": 64}))
    with pytest.raises(
        ParameterError, match=r"64 larger elements of 4\.29e\+03 types are too many"
    ):
        orbits(crowded)  # counting them would take long
    with pytest.raises(
        ParameterError, match="configurations of the data are too many for the full"
    ):
        FullModel(theory, theory.checked(SMALL["positional"] | {"D": 20}))
