"""Factual recall (arXiv 2412.06538): reference values, separate equations, every entry, claim."""

import numpy as np
import pytest

from simulations.reproduction.predicates import Verdict
from simulations.stated import recall
from simulations.stated.claims import factual_recall
from simulations.stated.full import FullModel
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from tests.closeness import close, within
from tests.simulations.quick import result

SIZES = {"S": 16, "D": 8, "R": 4, "N": 1, "L": 1}
#: V_own, V_other, U_same, U_other, W, v, u, w.
STATE = [0.5, -0.2, 0.7, 0.1, 0.3, 0.9, 1.1, 0.4]


@pytest.fixture(scope="module")
def theory():
    return load_theory(factual_recall.FILE)


def test_reference_values(theory):
    """Compare with the printed digits of an independent implementation."""
    population = risk(theory, alpha=1e-5, **SIZES)
    assert list(population.order_parameters)[:4] == ["V_own", "V_other", "U_same", "U_other"]
    close(population.evaluate(STATE).loss, 2.489843033723, rel=1e-12)
    gradient = dict(zip(population.order_parameters, population.gradient(STATE)))
    close(gradient["v"], -0.034496895, rel=2e-9)
    close(gradient["V_own"], -0.011088287678, rel=1e-10)


def test_reference_values_of_half_loss_times(theory):
    flow = recall.reduced_flow(theory, (16, 8, 4), 1e-5)
    close(flow.relation, 168.3626, rel=3e-7)
    close(flow.subject, 437.5266, rel=1e-7)
    between = np.interp((flow.relation * flow.subject) ** 0.5, flow.time, flow.loss)
    close(between, 2.0910, rel=3e-5)


@pytest.mark.parametrize("sizes", [(16, 8, 4), (6, 3, 5), (2, 2, 2)])
def test_the_loss_is_the_sum_of_two_logarithms(theory, sizes):
    assert factual_recall.difference(theory, sizes, seed=4) <= factual_recall.SAME
    S, D, R = sizes
    several = risk(theory, S=S, D=D, R=R, N=3, L=2, alpha=1.0)
    close(several.evaluate(STATE).loss, sum(recall.losses(STATE, D, R).values()), rel=1e-13)


@pytest.mark.parametrize("name", [pytest.param("relation", marks=pytest.mark.slow), "subject"])
def test_growth_rates_are_eigenvalues_of_the_derived_jacobian(theory, name):
    """They are the two largest eigenvalues of the linearization at 0."""
    S, D, R = 12, 4, 3
    jacobian = np.array(risk(theory, S=S, D=D, R=R, N=1, L=1, alpha=1.0).jacobian(np.zeros(8)))
    growing = np.sort(np.linalg.eigvals(-jacobian).real)[-2:]
    rates = recall.parts(S, D, R)
    assert rates["relation"].rate > rates["subject"].rate
    close(rates[name].rate, growing[1 if name == "relation" else 0], rel=1e-10)


def test_every_entry_agrees_with_the_full_model(theory):
    """Compare the gradient by hand with the full model of the theory, which has noise tokens."""
    model = recall.AllEntries(4, 2, 3)
    full = FullModel(theory, theory.checked({"S": 4, "D": 2, "R": 3, "N": 1, "L": 1, "alpha": 1.0}))
    state = np.random.default_rng(1).normal(size=24 + 18 + 4 + 3)
    arrays = model.split(state)
    names = [order.name for order in theory.orders]
    shape = {name: x.shape for name, x in full.embed(dict.fromkeys(names, 0.0)).items()}
    noise = {"W": np.full(shape["W"], 0.7), "w": np.full(shape["w"], 0.3)}
    tensors = noise | {name: x.reshape(shape[name]) for name, x in arrays.items()}
    loss, gradient = full.dense.evaluate(tensors)
    close(sum(model.losses(state).values()), loss, rel=1e-13)
    slopes = model.split(-model.slope(state))
    for name in "VUvu":
        within(slopes[name], gradient[name].reshape(slopes[name].shape), absolute=1e-15)
    assert np.abs(model.slope(state)).max() > 1e-2


def test_plateau_is_where_the_loss_decreases_slowest():
    time = np.geomspace(1.0, 1e4, 2000)
    loss = 3.0 - np.tanh(np.log(time / 10.0)) - 0.5 * np.tanh(np.log(time / 1e3))
    close(recall.rest(time, loss, (10.0, 1e3)), 2.5, rel=5e-3)
    assert recall.rest(time, loss, (1e3, 10.0)) == recall.rest(time, loss, (10.0, 1e3))


@pytest.mark.slow
def test_claim_in_short():
    outcome = result("theory-factual-recall")
    assert outcome.verdict is Verdict.HOLDS
    (figure,) = outcome.measurement.figures
    assert all(np.isfinite(figure.data[name]).all() for name in figure.data)
