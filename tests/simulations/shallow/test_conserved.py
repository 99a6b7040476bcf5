"""Conserved quadratic forms of the shallow transformer, from its gradient alone."""

import numpy as np

from simulations.shallow.claims import conserved
from simulations.shallow.claims.conserved import find_forms, gram_differences
from tests.closeness import within

SHAPE = (2, 1, 2, 2)


def test_forms_are_the_entries_of_the_gram_differences():
    m, p, d, b = 3, 2, 3, 2
    x = np.random.default_rng(0).normal(size=m * p + p * d + 2 * b * d)
    O, V, K, Q = (  # noqa: E741
        part.reshape(shape)
        for part, shape in zip(np.split(x, [6, 12, 18]), ((m, p), (p, d), (b, d), (b, d)))
    )
    values = np.einsum("i,kij,j->k", x, gram_differences((m, p, d, b), -1.0), x)
    first, second = O.T @ O - V @ V.T, K @ K.T - Q @ Q.T
    within(values, [*first[np.tril_indices(2)], *second[np.tril_indices(2)]], absolute=1e-13)


def test_there_are_no_other_forms():
    result = find_forms(SHAPE, seed=5)
    assert (result.forms, result.expected) == (4, 4)


def test_wrong_gradient_has_fewer_forms(monkeypatch):
    original = conserved._sample

    def altered(shape, rng):
        state, slope = original(shape, rng)
        slope[-1] *= 1.001  # one entry of W_Q
        return state, slope

    monkeypatch.setattr(conserved, "_sample", altered)
    result = find_forms(SHAPE, seed=5)
    assert result.forms < 4
