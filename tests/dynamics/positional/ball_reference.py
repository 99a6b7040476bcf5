"""Reference values of a small problem at one state in Arb balls, from all multisets of set types.

It is written from the model alone (F, the law of the types, ell) and shares no code with
``dynamics``. Parameters are the exact binary values of the given floats. The precision is increased
until every result is tight and the sign of F is known for every multiset.

``F = x [nu T + x^(p-1) P]``, ``x = kappa alpha``, ``P = sum_i c_i^p``, ``c = X s + Y n + Xi T``,
``X = Lambda - Gamma``, ``Y = Gamma - Xi``. The ball of F excludes zero if F is not zero. For F that
may be zero the sign follows from integers: at T = 0, ``P = sum_k binom(p, k) M_k X^k Y^(p-k)`` with
``M_k = sum_i s_i^k n_i^(p-k)``. The weights are exponentials of rationals, so Y / X is
transcendental (Lindemann-Weierstrass) unless two of beta, gamma, rho are equal; hence P = 0 if and
only if all M_k vanish, or beta = gamma and ``sum n_i^p = 0``, or beta = rho and
``sum (n_i - s_i)^p = 0``, or gamma = rho. Signs unknown at the highest precision are undecided.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import NamedTuple

from flint import arb, ctx, fmpq

_PRECISIONS = (256, 512, 1024, 4096, 16384, 65536)
_TIGHT = 110  # bits of relative accuracy of every result, about 1e-33
_UNDERFLOW = arb(2) ** -5000  # smaller values need no relative accuracy


class Reference(NamedTuple):
    """Balls that contain the exact values; ``undecided`` is the probability of an unknown sign."""

    loss: arb
    gradient: tuple[arb, arb, arb]  # entrywise: d ell / d theta divided by the multiplicity
    derivatives: tuple[arb, arb, arb]  # of ell in alpha, gamma, rho
    mean_sigmoid: arb
    test_error: arb  # P[F <= 0]; the undecided mass is inside the ball
    ties: arb  # P[F = 0]; likewise
    undecided: float


def reference(problem, state, most: int = 200_000) -> Reference:
    """Return the exact values of a small problem at a state.

    ``most`` limits the number of multisets; ValueError beyond it.
    """
    types = [(a, b) for a in range(problem.C + 1) for b in range(problem.C + 1 - a)]
    others = problem.L - 1
    if problem.q == 1.0:
        types = [(a, problem.C - a) for a in range(problem.C + 1)]
    if math.comb(len(types) + others - 1, others) > most:
        raise ValueError(f"more than {most} multisets")
    multisets = [_counted(chosen) for chosen in combinations_with_replacement(types, others)]
    before = ctx.prec
    try:
        for bits in _PRECISIONS:
            ctx.prec = bits
            result = _at_this_precision(problem, state, multisets, last=bits == _PRECISIONS[-1])
            if result is not None:
                return result
    finally:
        ctx.prec = before
    raise ArithmeticError("the reference does not converge")


def contains(ball: arb, value: float, bound: float) -> bool:
    """Return whether ``|value - exact| <= bound`` is possible for the exact number in a ball."""
    if not (math.isfinite(value) and bound >= 0.0):
        return False
    if math.isinf(bound):
        return True
    before, ctx.prec = ctx.prec, 4096
    try:
        return not bool(abs(exact(value) - ball) > exact(bound))
    finally:
        ctx.prec = before


def exact(value: float) -> arb:
    """Return the exact binary value of a float as a ball (exact where it fits the precision)."""
    top, bottom = float(value).as_integer_ratio()
    return arb(fmpq(top, bottom))


def _power(x: arb, n: int) -> arb:
    """Return x^n by multiplication, which is valid for balls that contain 0."""
    result = arb(1)
    for bit in bin(n)[2:]:
        result = result * result * x if bit == "1" else result * result
    return result


class _Model(NamedTuple):
    Lambda: arb
    Gamma: arb
    Xi: arb
    X: arb
    Y: arb
    x: arb


def _counted(chosen):
    counts = {}
    for set_type in chosen:
        counts[set_type] = counts.get(set_type, 0) + 1
    return tuple(counts.items())


def _model(problem, state) -> _Model:
    alpha, gamma, rho = (exact(v) for v in state)
    beta, tau = exact(problem.beta), exact(problem.tau)
    C, D = problem.C, problem.D
    top = max(problem.beta, float(state[1]), float(state[2]))
    e_beta, e_gamma, e_rho = (((v - exact(top)) / tau).exp() for v in (beta, gamma, rho))
    Z = e_beta + (C - 1) * e_gamma + (D - C) * e_rho

    def difference(a, b, e_a, e_b):
        big = e_a if bool(a >= b) else e_b
        small = -(-abs(a - b) / tau).expm1()
        return (big * small if bool(a >= b) else -big * small) / Z

    return _Model(
        e_beta / Z,
        e_gamma / Z,
        e_rho / Z,
        difference(beta, gamma, e_beta, e_gamma),
        difference(gamma, rho, e_gamma, e_rho),
        exact(problem.kappa) * alpha,
    )


def _at_this_precision(problem, state, multisets, last):
    C, D, p, tau = problem.C, problem.D, problem.p, exact(problem.tau)
    kappa, nu, q = exact(problem.kappa), exact(problem.nu), exact(problem.q)
    model = _model(problem, state)
    Lambda, Gamma, Xi, X, Y, x = model
    probability = {
        (a, b): arb(math.comb(C, a + b) * math.comb(a + b, a))
        * (q / 2) ** (a + b)
        * (1 - q) ** (C - a - b)
        for a in range(C + 1)
        for b in range(C + 1 - a)
    }
    # the derivatives of Lambda s + Gamma (n - s) + Xi (T - n) by those of the softmax
    same, apart = (C - 1) * Gamma, (D - C) * Xi
    by_gamma = [-Lambda * same, Gamma * (Lambda + apart), -same * Xi]
    by_rho = [-Lambda * apart, -apart * Gamma, Xi * (Lambda + same)]
    rows_of = {}

    def set_part(a, b, T):
        """P, dF/d alpha / kappa without nu, dF/d gamma, dF/d rho of the rows of one set."""
        if (a, b, T) not in rows_of:
            n, total = a - b, [arb(0)] * 4
            for s, rows in ((1, a), (-1, b), (0, C - a - b)):
                if rows:
                    c = X * s + Y * n + Xi * T
                    excess = x * p * (_power(x * c, p - 1) - _power(x * Xi * T, p - 1)) / tau
                    d_gamma = by_gamma[0] * s + by_gamma[1] * (n - s) + by_gamma[2] * (T - n)
                    d_rho = by_rho[0] * s + by_rho[1] * (n - s) + by_rho[2] * (T - n)
                    row = [
                        _power(c, p),
                        p * _power(x * c, p - 1) * c,
                        excess * d_gamma,
                        excess * d_rho,
                    ]
                    total = [t + rows * r for t, r in zip(total, row)]
            rows_of[a, b, T] = total
        return rows_of[a, b, T]

    loss = mean = error = ties = arb(0)
    undecided = arb(0)
    slopes = [arb(0)] * 3
    for counts in multisets:
        T = C + sum((a - b) * m for (a, b), m in counts)
        parts = set_part(C, 0, T)
        for (a, b), m in counts:
            parts = [u + m * v for u, v in zip(parts, set_part(a, b, T))]
        inner = nu * T + _power(x, p - 1) * parts[0]
        F = x * inner
        weight = arb(math.factorial(problem.L - 1))
        for set_type, m in counts:
            weight = weight * probability[set_type] ** m / math.factorial(m)
        sigmoid = (-F).exp() / (1 + (-F).exp()) if bool(F > 0) else 1 / (1 + F.exp())
        loss += weight * ((-F).exp().log1p() if bool(F > 0) else F.exp().log1p() - F)
        mean += weight * sigmoid
        pull = [kappa * (nu * T + parts[1]), parts[2], parts[3]]
        slopes = [d - weight * sigmoid * g for d, g in zip(slopes, pull)]
        sign = _sign(problem, state, model, counts, T, inner)
        if sign is None:
            undecided += weight
        elif sign <= 0:
            error += weight
            ties += weight if sign == 0 else 0
    if bool(undecided > 0) and not last:
        return None
    multiplicity = (1, D * (C - 1), D * (D - C))
    if float(state[0]) == 0.0 or problem.beta == float(state[1]) == float(state[2]):
        slopes[1] = slopes[2] = arb(0)  # F is 0 for all gamma and rho, or the attention is uniform
    results = [loss, mean, error, ties, *slopes]
    if not last and not all(_tight(ball) for ball in results):
        return None
    unknown = undecided.union(arb(0))
    return Reference(
        loss,
        tuple(d / m for d, m in zip(slopes, multiplicity)),
        tuple(slopes),
        mean,
        error + unknown,
        ties + unknown,
        float(undecided.mid()),
    )


def _tight(ball) -> bool:
    return ball.rel_accuracy_bits() >= _TIGHT or bool(abs(ball) < _UNDERFLOW)


def _sign(problem, state, model, counts, T, inner):
    """Return the sign of F, or None if it is unknown at this precision."""
    alpha, gamma, rho = map(float, state)
    if alpha == 0.0:
        return 0
    side = 1 if alpha > 0.0 else -1
    if problem.beta == gamma == rho:
        return side * ((T > 0) - (T < 0))
    if T == 0:
        moments = _moments(problem, counts)
        if gamma == rho or not any(moments):
            return 0
        if gamma == problem.beta or rho == problem.beta:
            # P is Y^p sum n^p, or Y^p sum (n - s)^p: an integer times the sign of Y
            known = sum(
                rows * (n if gamma == problem.beta else n - s) ** problem.p
                for s, n, rows in _rows(problem, counts)
            )
            return side * ((known > 0) - (known < 0)) * (1 if gamma > rho else -1)
        # the relative accuracy of each monomial does not depend on the sizes of the weights
        inner = sum(
            (
                math.comb(problem.p, k) * M * _power(model.X, k) * _power(model.Y, problem.p - k)
                for k, M in enumerate(moments)
            ),
            arb(0),
        )
    return side if bool(inner > 0) else -side if bool(inner < 0) else None


def _rows(problem, counts):
    """Yield (s, n, number of rows) for the signal set and the random sets of an image."""
    for (a, b), m in (((problem.C, 0), 1), *counts):
        for s, rows in ((1, a), (-1, b), (0, problem.C - a - b)):
            yield s, a - b, rows * m


def _moments(problem, counts):
    p = problem.p
    return [
        sum(rows * s**k * n ** (p - k) for s, n, rows in _rows(problem, counts)) for k in range(p)
    ]
