"""In-context regression (arXiv 2501.16265): equations of the paper, and the count of drops."""

import numpy as np
import pytest
import sympy as sp

from simulations.stated.claims import in_context
from simulations.stated.claims.in_context import Drops, drops, off
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from tests.closeness import close, within

FILES = [in_context.FILES / f"in_context_{name}.py" for name in ("regression", "heads")]


@pytest.mark.parametrize(("m", "n", "N"), [(1, 3, 5), (40, 2, 31), (1000, 10**5, 10**6)])
def test_risk_is_the_formula_at_any_size(m, n, N):
    lam, mu = 0.4, 0.1
    population = risk(
        load_theory(FILES[0]), m=m, n=n, N=N, lam=lam, mu=mu, v_start=0.1, u_start=0.2
    )
    number, variance = np.array([m, n]), np.array([lam, mu])
    a = variance + (variance + number @ variance) / N
    for v, *u in np.random.default_rng(0).normal(size=(5, 3)):
        u = np.array(u)
        error = variance - 2 * variance**2 * v * u + a * variance**2 * v**2 * u**2
        close(population.evaluate([v, *u]).loss, 0.5 * number @ error, rel=1e-12)
        slopes = [
            -number * variance**2 @ (u * (1 - a * v * u)),
            *-(variance**2) * v * (1 - a * v * u),
        ]
        result = population.gradient([v, *u])
        within(result, np.array(slopes), absolute=1e-12 * np.abs(slopes).max())


@pytest.mark.slow
def test_head_with_equal_factors():
    """For v = k = q, dv/dt = lambda^2 v^2 - lambda^3 (1 + (1 + tr / lambda) / N) v^5."""
    theory = load_theory(FILES[1])
    N, lam, v = sp.symbols("N b v")
    total = sp.Add(*sp.symbols("a b c d"))
    others = {x.symbol: sp.Symbol(f"head_{x.name[2:]}") for x in theory.orders}
    mine = {x.symbol: v for x in theory.orders if x.name.endswith("_second")}
    paper = lam**2 * v**2 - lam**3 * (1 + (1 + total / lam) / N) * v**5
    for letter in "vkq":
        slope = theory.reduced.expanded(theory.reduced.gradient[f"{letter}_second"])
        assert sp.expand(-slope.xreplace(others | mine) - paper) == 0


def test_drops_and_plateaus():
    time = np.geomspace(1.0, 1e6, 500)
    step = np.tanh(5 * np.log(time / 1e2)) + 2 * np.tanh(5 * np.log(time / 1e4))
    result = drops(time, 5.0 - step)
    assert result.number == 2
    within(np.array(result.rests), [6.0, 2.0], absolute=1e-6)
    assert drops(time, 5.0 - step + 1e-3 * np.sin(np.log(time))).number == 2


def test_levels_agree_with_the_paper():
    """By hand for variances .4, .3, .2, .1 and N = 31: .4 / (1 + (1 + 1/.4) / 31) and so on."""
    within(2 * in_context.levels(), [1.0, 0.640580, 0.377372, 0.209805, 0.135995], absolute=1e-6)
    assert off(Drops(3, [0.1] * 3)) > in_context.LEVEL
    assert off(Drops(3, list(in_context.levels()[1:4]))) > in_context.LEVEL
    within(off(Drops(3, list(in_context.levels()[2:]))), 0.0, absolute=1e-15)
    within(off(Drops(4, list(in_context.levels()[1:]))), 0.0, absolute=1e-15)


def test_sigmoid_of_another_rate_fails(monkeypatch):
    """At d = 4, a flow with variances 1.001 does not follow the sigmoid."""
    theory = load_theory(FILES[0])
    assert in_context.white_flow(theory, 2, 2, 31) <= in_context.SIGMOID
    flow = in_context._flow
    monkeypatch.setattr(
        in_context, "_flow", lambda *a, **k: flow(*a, **(k | {"lam": 1.001, "mu": 1.001}))
    )
    assert in_context.white_flow(theory, 2, 2, 31) > in_context.SIGMOID
