"""The population expectation by Fourier integrals.

The method is implemented in :mod:`dynamics.positional.population.fourier.method` and derived in the
notebook ``fourier_method``.

Modules, in the order of a computation: ``set_law`` (distribution of the random sets), ``tables``
(contribution of a set to F), ``tilts`` (saddle points and Chernoff bounds), ``goals`` (totals that
matter), ``windows`` and ``lines`` (contours of integration), ``four_angles`` and ``node_sums``
(integrals), ``errors`` (rounding), ``assemble`` (sum over R and its bounds). ``signs`` computes the
test error, ``curvature`` the second derivatives. ``operation_count`` and ``predicted_sums`` predict
the cost and the errors.

Notation
--------
set, type
    ``C`` patches; a set of type (a, b) has a patches +1, b patches -1, ``n = a - b``. The *signal
    set* has the type (C, 0), the ``L - 1`` other sets are random. A set is *empty* without patches
    +-1, it has a *lone* patch if there is one, and is *crowded* if there are more.
R, r, T
    ``R``: the *total*, the sum of n over the random sets; r: its value; ``T = C + R``.
kappa, nu, p
    ``F = sum (O^p + nu O)`` over all patches, ``O = kappa alpha c``, ``c`` the attention's output.
x, y, base
    Contributions of a set to F and to its derivatives given R, minus those of an empty set; F of
    the signal set with empty sets.
tilt, lam, u
    Weights ``exp(-lam x + u n)`` of the sets; the ``share`` of a type is its tilted probability,
    the ``level`` of n the sum of the shares with that n. At the *saddle point* u the tilted mean
    of R is r.
bound, goal
    ``logs``: Chernoff bounds of ``E[e^{-lam F} |dF| 1{R=r}]``; ``best``: the smallest bound of
    ``E[s(-F) |dF| 1{R=r}]``. The goal is the allowed error.
line, eta, node
    The integral for s(-F) runs along ``w = eta + i t``; nodes are the ``t = (k + 1/2) step``.
window, Omega, alias
    The trapezoidal rule with ``step = 2 pi / Omega`` is exact except for aliases. These are small
    if F is inside the window ``|F| < Omega``. Aliases in R come from the discrete Fourier transform
    over angles.
angle
    Of ``z = e^{u + i theta}``, whose powers count n; half-shifted, in groups of four.
lane
    An entry of a vector instruction: a node in ``node_sums``, a total in ``tilts``.
excess
    ``f - 1`` for ``f`` near 1, so that rounding does not grow with the number of sets.
rounding, drift
    Effects of the rounding of exponents and of tables on a result.
"""

from dynamics.positional.population.fourier.method import (
    FourierExpectation,
    FourierValue,
    predicted_cost,
)

__all__ = ["FourierExpectation", "FourierValue", "predicted_cost"]
