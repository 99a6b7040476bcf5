r"""Attention to sets of which some are not those of the data: what its error must be (Section 5).

Scores pre-trained on one partition are used where some sets have changed. If the signal set is one
of those kept, the other patches are independent whatever their sets: the error is that of attention
to the right sets. If it has changed and its C patches lie in C different sets of the attention,
each of these holds one patch of the signal and ``C - 1`` random ones. With a share ``k`` of sets
kept, the signal set is kept with probability ``k``, so for any fixed A and v

.. math:: P[yF\le 0] = k\,e_{\text{kept}} + (1-k)\,e_{\text{changed}}.

Here both errors are computed exactly for uniform attention to one set per row (the limit of large
scores) and ``v = alpha w*``: :math:`F = C\sum_u\mathrm{act}(\kappa\alpha n_u/C)`.
"""

import numpy as np
from numpy.typing import NDArray

from dynamics.core.checks import integer, require
from dynamics.positional.baselines.linear_models import LinearError
from dynamics.positional.baselines.set_sums import Law, joint_law
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import law_of_set

_ROUNDING = 1e-13


def kept_error(problem: Problem, alpha: float) -> LinearError:
    """Return ``P[y F < 0]`` and ``P[F = 0]`` of block attention where the signal set is kept."""
    C = problem.C
    signal = Law(np.array([[C**problem.p, C]], dtype=np.int64), np.ones(1), 0.0)
    return _error(problem, alpha, signal, problem.L - 1)


def changed_error(problem: Problem, alpha: float) -> LinearError:
    """Return the same where the signal set has one patch in each of C sets of the attention.

    Raises
    ------
    ParameterError
        Unless there are C sets.
    """
    C = problem.C
    require(problem.L >= C, "L", problem.L, f"at least C = {C}, to spread the signal set")
    n = np.arange(-C + 2, C + 1)
    statistics = np.stack([n**problem.p, n], axis=1)
    signal = joint_law(law_of_set(C - 1, problem.q), statistics, C)
    return _error(problem, alpha, signal, problem.L - C)


def _error(problem: Problem, alpha: float, signal: Law, others: int) -> LinearError:
    """Return the error where sums ``(n^p, n)`` of the signal's sets are joined by random sets."""
    n = np.arange(-problem.C, problem.C + 1)
    law = joint_law(law_of_set(problem.C, problem.q), np.stack([n**problem.p, n], axis=1), others)
    x = problem.kappa * alpha / problem.C
    wrong = ties = 0.0
    for (power, total), chance in zip(signal.values, signal.probability):
        high = x**problem.p * (law.values[:, 0] + float(power))
        low = problem.nu * x * (law.values[:, 1] + float(total))
        F = high + low
        tied = np.abs(F) <= _ROUNDING * (np.abs(high) + np.abs(low))
        wrong += float(chance * law.probability[(F < 0.0) & ~tied].sum())
        ties += float(chance * law.probability[tied].sum())
    return LinearError(wrong, ties, law.dropped + signal.dropped + 1e-15 * problem.L)


def changed_order(problem: Problem, kept: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return which patch of contiguous sets stands at each place (D,) of a changed partition.

    The data have contiguous sets, of which ``kept`` random ones are sets of the attention; each of
    the others takes its C patches from C different sets. Scores of the attention, in the order of
    the data, are ``A[order][:, order]``.

    Raises
    ------
    ParameterError
        Unless ``kept`` is L or from 0 to L - C.
    """
    L, C = problem.L, problem.C
    kept = integer("kept", kept, 0)
    require(kept == L or kept <= L - C, "kept", kept, f"L = {L}, or at most L - C = {L - C}")
    places, sources = rng.permutation(L), rng.permutation(L)
    own = rng.permuted(np.arange(problem.D).reshape(L, C), axis=1)
    order = np.empty((L, C), dtype=np.intp)
    order[places[:kept]] = own[sources[:kept]]
    m = L - kept
    if m:
        row = (np.arange(m)[:, None] + np.arange(C)) % m
        order[places[kept:]] = own[sources[kept:]][row, np.arange(C)]
    return order.ravel()
