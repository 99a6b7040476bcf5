r"""Error of attention to sets that partly differ from those of the data (Section 5).

Scores pre-trained on one partition are used after some sets have changed. If the signal set is
unchanged, the other patches are independent for every partition: the error is the one of attention
to the correct sets. If it has changed and its C patches are in C different sets of the attention,
each of these contains one patch of the signal and ``C - 1`` random ones. With a fraction ``k`` of
unchanged sets, the signal set is unchanged with probability ``k``, so for any fixed A and v

.. math:: P[yF\le 0] = k\,e_{\text{unchanged}} + (1-k)\,e_{\text{changed}}.

Both errors are computed exactly for uniform attention to one set per row (the limit of large
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


def unchanged_error(problem: Problem, alpha: float) -> LinearError:
    """Return ``P[y F < 0]`` and ``P[F = 0]`` of block attention for an unchanged signal set.

    Parameters
    ----------
    problem
        Constants.
    alpha
        Coefficient of the value vector, ``v = alpha w*``.
    """
    C = problem.C
    signal = Law(np.array([[C**problem.p, C]], dtype=np.int64), np.ones(1), 0.0)
    return _error(problem, alpha, signal, problem.L - 1)


def changed_error(problem: Problem, alpha: float) -> LinearError:
    """Return the errors of block attention if the signal set is in C different sets of it.

    Parameters
    ----------
    problem
        Constants.
    alpha
        Coefficient of the value vector, ``v = alpha w*``.

    Raises
    ------
    ParameterError
        If there are fewer than C sets.
    """
    C = problem.C
    require(problem.L >= C, "L", problem.L, f"at least C = {C}, the number of changed sets")
    n = np.arange(-C + 2, C + 1)
    statistics = np.stack([n**problem.p, n], axis=1)
    signal = joint_law(law_of_set(C - 1, problem.q), statistics, C)
    return _error(problem, alpha, signal, problem.L - C)


def _error(problem: Problem, alpha: float, signal: Law, others: int) -> LinearError:
    """Return the error for sums ``(n^p, n)`` over the sets of the signal and over random sets."""
    n = np.arange(-problem.C, problem.C + 1)
    law = joint_law(law_of_set(problem.C, problem.q), np.stack([n**problem.p, n], axis=1), others)
    x = problem.kappa * alpha / problem.C
    wrong = ties = 0.0
    for (power, total), probability in zip(signal.values, signal.probability):
        high = x**problem.p * (law.values[:, 0] + float(power))
        low = problem.nu * x * (law.values[:, 1] + float(total))
        F = high + low
        tied = np.abs(F) <= _ROUNDING * (np.abs(high) + np.abs(low))
        wrong += float(probability * law.probability[(F < 0.0) & ~tied].sum())
        ties += float(probability * law.probability[tied].sum())
    return LinearError(wrong, ties, law.dropped + signal.dropped + 1e-15 * problem.L)


def changed_order(problem: Problem, unchanged: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the patches (D,) of contiguous sets in the order of a partly changed partition.

    The data have contiguous sets. ``unchanged`` random ones are sets of the attention too. Each
    other set takes its C patches from C different sets. In the order of the data the scores are
    ``A[order][:, order]``.

    Parameters
    ----------
    problem
        Constants.
    unchanged
        Number of unchanged sets.
    rng
        Random generator.

    Raises
    ------
    ParameterError
        Unless ``unchanged`` is L or from 0 to L - C.
    """
    L, C = problem.L, problem.C
    unchanged = integer("unchanged", unchanged, 0)
    require(
        unchanged == L or unchanged <= L - C,
        "unchanged",
        unchanged,
        f"L = {L}, or at most L - C = {L - C}",
    )
    positions, sources = rng.permutation(L), rng.permutation(L)
    own = rng.permuted(np.arange(problem.D).reshape(L, C), axis=1)
    order = np.empty((L, C), dtype=np.intp)
    order[positions[:unchanged]] = own[sources[:unchanged]]
    m = L - unchanged
    if m:
        row = (np.arange(m)[:, None] + np.arange(C)) % m
        order[positions[unchanged:]] = own[sources[unchanged:]][row, np.arange(C)]
    return order.ravel()
