r"""The velocity of the truncated population and its Jacobian, as Taylor series in balls.

Along a curve (alpha, gamma, rho)(u), with x = kappa alpha, :math:`c_i=\Lambda s+\Gamma(n-s)+
\Xi(T-n)` for a row with coefficient s in a set of sum n, and :math:`c_0=\Xi T` in an empty set,

.. math::
   F = N + x\nu T, \quad N = x^p\Big(D c_0^p + \sum_i (c_i^p-c_0^p)\Big), \qquad
   \alpha F_\alpha = pN + x\nu T, \\
   F_\gamma = \frac{p\,x^p\Gamma}{\tau} A, \quad A = \sum_i a_i (c_i^{p-1}-c_0^{p-1}), \quad
   a_i = (n-s)-(C-1)c_i = \frac{\tau}{\Gamma}\frac{\partial c_i}{\partial\gamma}, \\
   F_\rho = \frac{p\,x^p\Xi}{\tau} B, \quad B = \sum_i b_i (c_i^{p-1}-c_0^{p-1}), \quad
   b_i = (T-n)-(D-C)c_i = \frac{\tau}{\Xi}\frac{\partial c_i}{\partial\rho}

(c_0^(p-1) may be subtracted because the sum of all c_i is T for all gamma and rho). With
:math:`S_{aa}=\sum_i a_i^2c_i^{p-2}`, :math:`S_{ab}`, :math:`S_{bb}` likewise and
:math:`k_2 = p(p-1)x^p/\tau^2`,

.. math::
   F_{\alpha\alpha} = \frac{p(p-1)N}{\alpha^2},\quad F_{\alpha\gamma} = \frac{p F_\gamma}{\alpha},
   \quad F_{\gamma\gamma} = \frac{1-2(C-1)\Gamma}{\tau}F_\gamma + k_2\Gamma^2 S_{aa}, \\
   F_{\gamma\rho} = -\frac{(D-C)\Xi F_\gamma+(C-1)\Gamma F_\rho}{\tau} + k_2\Gamma\Xi S_{ab},\quad
   F_{\rho\rho} = \frac{1-2(D-C)\Xi}{\tau}F_\rho + k_2\Xi^2 S_{bb}.

The velocity is :math:`f_i = E[s(-F)F_i]/w_i` and its Jacobian
:math:`(E[s(-F)F_{ij}]-E[s(F)s(-F)F_iF_j])/w_i`, w = (1, D(C-1), D(D-C)). alpha must not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics.core.balls.exact import ball, exact
from dynamics.core.balls.series import Series
from dynamics.positional.problem import Problem
from dynamics.positional.validated.images import Images
from dynamics.positional.validated.sums import (
    Tables,
    jacobian_means,
    linear_means,
    outputs,
    velocity_means,
)

_COEFFICIENTS = np.array([1, -1, 0])  # coefficients s of a patch


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention weights Lambda, Gamma, Xi, their differences, and x = kappa alpha, as series."""

    Lambda: Series
    Gamma: Series
    Xi: Series
    Lambda_minus_Gamma: Series
    Gamma_minus_Xi: Series
    x: Series

    @classmethod
    def along(cls, problem: Problem, theta: Series) -> Attention:
        """Return the weights along a curve theta with the lanes alpha, gamma, rho."""
        alpha, gamma, rho = (theta.lane(slice(i, i + 1)) for i in range(3))
        per_tau = _constant(1 / exact(problem.tau), theta.order)
        same, other = (((logit.plus(-problem.beta)) * per_tau).exp() for logit in (gamma, rho))
        Z = same.times(problem.C - 1.0) + other.times(float(problem.D - problem.C))
        Lambda = Z.plus(1.0).inverse()
        return cls(
            Lambda,
            Lambda * same,
            Lambda * other,
            Lambda * (-same).plus(1.0),
            Lambda * (same - other),
            alpha.times(problem.kappa),
        )


@dataclass(frozen=True)
class Field:
    """Velocity from the images with at most K features, as Taylor series in balls.

    Attributes
    ----------
    problem
        Constants.
    images
        Multisets with at least all images of at most K features.
    K
        Largest number of features outside the signal set.
    nu_radius
        All nu up to this distance from that of the problem are covered.
    """

    problem: Problem
    images: Images
    K: int
    nu_radius: float = 0.0

    @property
    def states(self) -> int:
        """Number of multisets that are summed."""
        return int(self.images.upto[self.K])

    def velocity(self, theta: Series) -> Series:
        """Return the series of (alpha', gamma', rho') along a curve theta, three lanes each."""
        problem = self.problem
        weights = Attention.along(problem, theta)
        tables = self._tables(weights, second=False)
        means = _series(velocity_means(self.images, tables, self.states, problem.p))
        alpha = theta.lane(slice(0, 1))
        pull = weights.x.power(problem.p) * _constant(problem.p / exact(problem.tau), theta.order)
        same, apart = problem.multiplicity[1:]
        parts = [
            means[0] * alpha.inverse(),
            means[1] * (pull * weights.Gamma) * _constant(1 / exact(same), theta.order),
            means[2] * (pull * weights.Xi) * _constant(1 / exact(apart), theta.order),
        ]
        return _concatenated(parts)

    def outputs(self, theta: Series) -> Series:
        """Return the series of F along a curve theta, with one lane per state."""
        weights = Attention.along(self.problem, theta)
        return Series(*outputs(self.images, self._tables(weights, second=False), self.states))

    def by_nu(self, theta: Series) -> Series:
        """Return the series of the derivative of the velocity by nu, three lanes."""
        problem = self.problem
        weights = Attention.along(problem, theta)
        tables = self._tables(weights, second=False)
        sT, wTM, wTA, wTB = _series(linear_means(self.images, tables, self.states, problem.p))
        pull = weights.x.power(problem.p) * _constant(problem.p / exact(problem.tau), theta.order)
        same, apart = problem.multiplicity[1:]
        parts = [
            (sT - wTM).times(problem.kappa),
            -(wTA * weights.x * pull * weights.Gamma) * _constant(1 / exact(same), theta.order),
            -(wTB * weights.x * pull * weights.Xi) * _constant(1 / exact(apart), theta.order),
        ]
        return _concatenated(parts)

    def jacobian(self, theta: Series) -> Series:
        """Return the series of d f_i / d theta_j along a curve theta, nine lanes (by rows)."""
        problem, order = self.problem, theta.order
        C, D, p = problem.C, problem.D, problem.p
        weights = Attention.along(problem, theta)
        Gamma, Xi = weights.Gamma, weights.Xi
        tables = self._tables(weights, second=True)
        sN, sA, sB, saa, sab, sbb, *pairs = _series(
            jacobian_means(self.images, tables, self.states, p)
        )
        per_tau = _constant(1 / exact(problem.tau), order)
        per_alpha = theta.lane(slice(0, 1)).inverse()
        top = weights.x.power(p)
        pull, k_2 = (top * per_tau).times(float(p)), (top * per_tau * per_tau).times(p * (p - 1.0))
        g, r = pull * Gamma, pull * Xi
        g_mean, r_mean = g * sA, r * sB
        same, apart = Gamma.times(C - 1.0), Xi.times(float(D - C))
        second = {
            (0, 0): (sN * per_alpha * per_alpha).times(p * (p - 1.0)),
            (0, 1): (g_mean * per_alpha).times(float(p)),
            (0, 2): (r_mean * per_alpha).times(float(p)),
            (1, 1): g_mean * same.times(-2.0).plus(1.0) * per_tau + k_2 * Gamma * Gamma * saa,
            (1, 2): k_2 * Gamma * Xi * sab - (apart * g_mean + same * r_mean) * per_tau,
            (2, 2): r_mean * apart.times(-2.0).plus(1.0) * per_tau + k_2 * Xi * Xi * sbb,
        }
        slopes = (per_alpha, g, r)
        entries = {}
        for (i, j), mean in zip(second, pairs):
            hessian = second[i, j] - mean * (slopes[i] * slopes[j])
            entries[i, j] = entries[j, i] = hessian
        scale = [_constant(1 / exact(count), order) for count in problem.multiplicity]
        return _concatenated([entries[i, j] * scale[i] for i in range(3) for j in range(3)])

    def _tables(self, weights: Attention, second: bool) -> Tables:
        """Return tables of N, A, B (and S_aa, S_ab, S_bb) by types of sets."""
        problem, C, p = self.problem, self.problem.C, self.problem.p
        T = np.arange(C - self.K, C + self.K + 1)
        n = np.arange(-C, C + 1)
        lanes_T, lanes_n, lanes_s = (
            grid.ravel().astype(float) for grid in np.meshgrid(T, n, _COEFFICIENTS, indexing="ij")
        )
        empty = weights.Xi.times(lanes_T)
        own = weights.Lambda_minus_Gamma.times(lanes_s) + weights.Gamma_minus_Xi.times(lanes_n)
        c = own + empty
        steps, powers = [_unit(c)], [_unit(c), empty]  # sums of c^j c_0^(m-1-j), powers of c_0
        for m in range(1, p):
            steps.append(c * steps[-1] + powers[m])
            powers.append(powers[m] * empty)
        excess = own * steps[p - 2]
        a = (c.times(-(C - 1.0))) + _lanes(lanes_n - lanes_s, c.order)
        b = (c.times(-float(problem.D - C))) + _lanes(lanes_T - lanes_n, c.order)
        top = weights.x.power(p)
        rows = [top * own * steps[p - 1], a * excess, b * excess]
        whole = top * powers[p].times(float(problem.D))
        bases: list[Series | None] = [whole, None, None]
        if second:
            slope = c.power(p - 2)
            rows += [a * a * slope, a * b * slope, b * b * slope]
            bases += [row.times(float(problem.D)) for row in rows[3:]]
        first = np.arange(T.size) * n.size * 3  # the first row of each T
        zero = first + (C * 3 + 2)  # n = 0, s = 0
        plus, minus = self.images.plus, self.images.minus
        composition = [(plus, 0), (minus, 1), (C - plus - minus, 2)]
        base, table = [], []
        for row, whole_row in zip(rows, bases):
            none = row.lane(zero)
            relative = row.lane(first + 2 * C * 3) - none  # a row of the signal set, n = C, s = 1
            start = relative.times(float(C))
            base.append(start if whole_row is None else start + whole_row.lane(zero))
            where = (first[:, None] + (plus - minus + C) * 3).ravel()
            parts = [
                (row.lane(where + s) - none.lane(np.repeat(np.arange(T.size), plus.size))).times(
                    np.tile(count.astype(float), T.size)
                )
                for count, s in composition
            ]
            table.append(parts[0] + parts[1] + parts[2])
        nu = Series.constant(problem.nu, self.nu_radius, weights.x.order)
        linear = weights.x * nu if self.nu_radius else weights.x.times(problem.nu)
        return Tables(
            int(T[0]),
            *_stacked(base, (T.size,)),
            *_stacked(table, (T.size, plus.size)),
            linear.mid,
            linear.rad,
        )


def _constant(number: object, order: int) -> Series:
    """Return an Arb ball as a series that does not depend on u."""
    return Series.constant(*ball(number), order)


def _unit(like: Series) -> Series:
    """Return the constant series 1 with the lanes and the order of another."""
    return _lanes(np.ones(like.mid.shape[1]), like.order)


def _lanes(numbers: np.ndarray, order: int) -> Series:
    """Return constant series, one float per lane."""
    mid = np.zeros((order + 1, numbers.size))
    mid[0] = numbers
    return Series.exact(mid)


def _series(means: tuple[np.ndarray, np.ndarray]) -> list[Series]:
    """Return means (quantities, order + 1) and radii as series of one lane."""
    return [Series(mid[:, None], rad[:, None]) for mid, rad in zip(*means)]


def _concatenated(parts: list[Series]) -> Series:
    """Return one series with the lanes of all parts."""
    return Series(
        np.concatenate([part.mid for part in parts], axis=1),
        np.concatenate([part.rad for part in parts], axis=1),
    )


def _stacked(parts: list[Series], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return quantities (order + 1, lanes) and radii as arrays (*shape, quantities, order + 1)."""
    results = []
    for arrays in ([part.mid for part in parts], [part.rad for part in parts]):
        stacked = np.moveaxis(np.array(arrays), -1, 0)  # lanes, quantities, order + 1
        results.append(np.ascontiguousarray(stacked.reshape(*shape, *stacked.shape[1:])))
    return results[0], results[1]
