"""What the shallow transformer's flow conserves: found from the gradient, and nothing else."""

import numpy as np

from simulations.shallow.claims import conserved
from simulations.shallow.claims.conserved import balances, discovered
from tests.closeness import within

SHAPE = (2, 1, 2, 2)


def test_the_forms_are_the_entries_of_the_differences():
    m, p, d, b = 3, 2, 3, 2
    x = np.random.default_rng(0).normal(size=m * p + p * d + 2 * b * d)
    O, V, K, Q = (  # noqa: E741
        part.reshape(shape)
        for part, shape in zip(np.split(x, [6, 12, 18]), ((m, p), (p, d), (b, d), (b, d)))
    )
    found = np.einsum("i,kij,j->k", x, balances((m, p, d, b), -1.0), x)
    one, two = O.T @ O - V @ V.T, K @ K.T - Q @ Q.T
    within(found, [*one[np.tril_indices(2)], *two[np.tril_indices(2)]], absolute=1e-13)


def test_they_are_all_that_is_found():
    found = discovered(SHAPE, seed=5)
    assert (found.forms, found.expected) == (4, 4)


def test_a_gradient_that_is_off_fails(monkeypatch):
    honest = conserved._sample

    def altered(shape, rng):
        state, slope = honest(shape, rng)
        slope[-1] *= 1.001  # one entry of W_Q
        return state, slope

    monkeypatch.setattr(conserved, "_sample", altered)
    found = discovered(SHAPE, seed=5)
    assert found.forms < 4
