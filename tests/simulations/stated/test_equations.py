"""Values of the printed equations, compared with the kernel."""

import math

import numpy as np
import pytest
import sympy as sp

from dynamics.theory.data import orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.stated.law import law
from symbolic.theory import load_theory
from symbolic.theory.export.equations import equations
from symbolic.theory.lifted import SAME
from symbolic.theory.source import source
from tests.closeness import close, within
from tests.simulations.stated.test_export import PAPERS
from tests.symbolic.theory.random_theories import random_theory

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
}


class Values:
    """Values of equations for one configuration of the data."""

    def __init__(self, reduced, known, arrays, families):
        self.definitions = {
            x.name.func if x.name.args else x.name: (x.name.args, x.value)
            for x in reduced.definitions
        }
        self.known, self.arrays, self.families = known, arrays, families

    def of(self, x, elements=()):
        elements = dict(elements)
        if x.is_number:
            return float(x)
        if x in elements:
            return elements[x]
        if isinstance(x, sp.Symbol):
            return self.known[x.name] if x.name in self.known else self._defined(x, (), ())
        if isinstance(x, sp.Indexed):
            family, *types = (int(self.of(index, elements)) for index in x.indices)
            return float(self.arrays[str(x.base)][(family, *types)])
        if isinstance(x, sp.Sum):
            bound, _, last = x.limits[0]
            number = self.families[str(last + 1)]
            return sum(self.of(x.function, elements | {bound: i}) for i in range(number))
        values = [self.of(argument, elements) for argument in x.args]
        if x.func is SAME:
            return float(values[0] == values[1])
        if x.func in self.definitions:
            return self._defined(x.func, self.definitions[x.func][0], values)
        if x.is_Add:
            return math.fsum(values)
        if x.is_Mul:
            return math.prod(values)
        return values[0] ** values[1] if x.is_Pow else FUNCTIONS[x.func.__name__](*values)

    def _defined(self, name, parameters, values):
        return self.of(self.definitions[name][1], zip(parameters, values))


def printed(theory, values, state):
    """Return loss and gradient from the printed equations."""
    data, reduced = orbits(law(theory, values)), equations(theory)
    known = {**values, **dict(zip(theory.order_parameters, state))}
    outer_sets = [x for x in theory.outer_sets if x.has_data]
    total = np.zeros(1 + len(theory.orders))
    for number, weight in enumerate(data.weight):
        arrays, families = {}, {}
        for outer_set, first, columns in zip(outer_sets, data.first, data.arrays):
            own = slice(first[number], first[number + 1])
            arrays |= {name: x[own] for name, x in zip(outer_set.arrays, columns)}
            families[str(outer_set.families)] = first[number + 1] - first[number]
        reader = Values(reduced, known, arrays, families)
        printed_values = [reader.of(x) for x in (reduced.loss, *reduced.gradient.values())]
        total += weight * np.array(printed_values)
    return total[0], total[1:]


def assert_same(theory, values, state):
    checked = theory.checked(values)
    function = mean_function(source(theory), theory.name)
    expected, slopes = mean(function, orbits(law(theory, checked)), state, list(checked.values()))
    loss, gradient = printed(theory, checked, state)
    close(loss, expected, rel=1e-11)
    within(gradient, slopes, absolute=1e-11 * max([1e-300, *np.abs(slopes)]))


@pytest.mark.slow
@pytest.mark.parametrize("path", PAPERS)
def test_equations_of_the_papers(path):
    theory, values = load_theory(path), dict(PAPERS[path])
    values |= {"D": 6, "C": 3} if "positional" in path else {}
    state = 0.5 * np.random.default_rng(2).normal(size=len(theory.orders))
    assert_same(theory, values, state)


@pytest.mark.parametrize("seed", range(20))
def test_equations_of_random_theories(tmp_path, seed):
    path = tmp_path / "mine.py"
    path.write_text(random_theory(seed))
    theory = load_theory(path)
    state = 0.6 * np.random.default_rng(seed).normal(size=len(theory.orders))
    n = next(n for n in (2, 3, 4) if all(
        count.subs({"n": n, "m": n}) > 0 for count in theory.order_parameters.values()
    ))  # fmt: skip
    assert_same(theory, {"n": n, "m": n} | dict.fromkeys(theory.free_constants, 0.3), state)
