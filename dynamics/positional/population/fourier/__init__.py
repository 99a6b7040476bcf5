r"""The population expectation by Fourier integrals.

See :mod:`dynamics.positional.population.fourier.method`, and the notebook ``fourier_method``, which
derives it.

On the way from a state to its gradient: ``set_law`` (the law of the random sets, without a state),
``tables`` (what a set adds to F), ``tilts`` (saddle points and Chernoff bounds), ``goals`` (which
totals matter), ``windows`` and ``lines`` (where to integrate), ``four_angles`` and ``node_sums``
(the integrals), ``errors`` (of rounding), ``assemble`` (the sum over R and its bounds). ``signs``
gives the test error, ``curvature`` the second derivatives; ``operation_count`` and ``foreseen`` say
beforehand what the work and the errors will be.

Words
-----
set, type
    ``C`` patches; a set of type (a, b) has a patches +1, b patches -1, ``n = a - b``. The *signal
    set* is of type (C, 0), the ``L - 1`` others are random. Without a patch +-1 a set is *empty*,
    with one it holds a *lone* patch, with more it is *crowded*.
R, r, T
    ``R``: sum of n over the random sets, a *total*; r: its value; ``T = C + R``.
kappa, nu, p
    ``F = sum (O^p + nu O)`` over all patches, ``O = kappa alpha c``, ``c`` the attention's output.
x, y, base
    What a set adds to F and to its derivatives given R, beyond an empty set; F of the signal set
    with empty sets.
tilt, lam, u
    To weight sets by ``exp(-lam x + u n)``; the ``share`` of a type is its tilted probability,
    the ``level`` of n the sum of the shares with that n. At the *saddle point* u the tilted mean
    of R is r.
bound, goal
    ``logs``: Chernoff bounds of ``E[e^{-lam F} |dF| 1{R=r}]``; ``sure``: the smallest for
    ``E[s(-F) |dF| 1{R=r}]``. The goal is the error allowed.
line, eta, node
    The integral for s(-F) runs along ``w = eta + i t``; nodes are the ``t = (k + 1/2) step``.
window, Omega, alias
    The trapezoid rule with ``step = 2 pi / Omega`` is exact but for aliases, small where F stays
    inside the window ``|F| < Omega``. Aliases in R: of the Fourier transform over angles.
angle
    Of ``z = e^{u + i theta}``, whose powers count n; half-shifted, in fours.
lane
    A place in a vector instruction: a node in ``node_sums``, a total in ``tilts``.
excess
    ``f - 1`` for ``f`` near 1, so that rounding does not grow with the number of sets.
moved, drift
    What the rounding of exponents and of the tables does to a result.
"""

from dynamics.positional.population.fourier.method import (
    FourierExpectation,
    FourierValue,
    predicted_cost,
)

__all__ = ["FourierExpectation", "FourierValue", "predicted_cost"]
