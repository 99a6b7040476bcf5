"""The slow manifold: alpha relaxes fast to alpha*(gamma, rho), then the attention moves slowly.

Event I ends when alpha reaches the manifold. To first order in the separation of time scales, the
dynamics after that is a flow in the plane (gamma, rho).
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.interpolate import CubicHermiteSpline

from dynamics.core.checks import finite, require
from dynamics.core.integrate import Path, check_method, integrate
from dynamics.core.risk import Risk
from dynamics.core.trajectory import assemble
from dynamics.positional.problem import State
from dynamics.positional.trajectory import ReducedTrajectory


class Drift(NamedTuple):
    """Velocity on the slow manifold.

    Attributes
    ----------
    alpha
        Velocity of alpha*, by the chain rule from those of gamma and rho.
    gamma, rho
        Velocities of the attention logits.
    curvature
        d^2 ell / d alpha^2 at alpha*; the manifold is attracting where it is positive.
    """

    alpha: float
    gamma: float
    rho: float
    curvature: float


class PathOnManifold(NamedTuple):
    """Dense output of the flow on the manifold: the path of (gamma, rho), and a spline of alpha."""

    plane: Path
    alpha: CubicHermiteSpline

    def at(self, time: float) -> np.ndarray:
        """Return (alpha, gamma, rho) at a time within the trajectory, shape (3,)."""
        return np.array([self.alpha(time), *self.plane.at(time)])


class SlowManifold:
    r"""The quasi-steady :math:`\alpha^*(\gamma,\rho)`: where :math:`\partial_\alpha\ell=0`.

    Parameters
    ----------
    population
        Population risk with the order parameters alpha, gamma and rho.
    """

    def __init__(self, population: Risk) -> None:
        self.population: Any = population

    def alpha(
        self, gamma: float, rho: float, guess: float | None = None, accuracy: float = 1e-13
    ) -> float:
        """Return the quasi-steady alpha at given attention logits.

        Parameters
        ----------
        gamma, rho
            Attention logits.
        guess
            Positive start of the search in the direction of descent; ``None`` means the initial
            alpha of Parametrization 3.1.
        accuracy
            Relative accuracy of the root; the tolerance of the population limits it too.

        Returns
        -------
        float
            The positive root of d ell / d alpha next to the guess in this direction.

        Raises
        ------
        ArithmeticError
            If d ell / d alpha has the same sign for all alpha that can be evaluated.
        """

        @cache  # brentq evaluates both ends of the bracket again
        def slope(log_alpha: float) -> float:
            value = self.population.gradient(State(math.exp(log_alpha), gamma, rho)).alpha
            if value == 0.0:
                raise OverflowError("it underflows")
            return value

        start = self.population.problem.initial_state.alpha if guess is None else guess
        low = high = math.log(max(start, 1e-12))
        stride = 0.05 if guess is None else max(1e-3, math.sqrt(accuracy))
        try:
            sign = math.copysign(1.0, slope(low))
            while sign * slope(high) > 0.0:
                low, high = high, high - sign * stride
                stride = min(4.0 * stride, 1.0)
                if not -60.0 < high < 60.0:
                    raise OverflowError("no sign change")
        except (OverflowError, ArithmeticError) as failure:
            raise ArithmeticError(
                f"no quasi-steady alpha at gamma = {gamma:.6g}, rho = {rho:.6g}: "
                f"d ell / d alpha does not change sign ({failure})"
            ) from failure
        return math.exp(optimize.brentq(slope, min(low, high), max(low, high), xtol=accuracy))

    def drift(self, state: State) -> Drift:
        r"""Return the velocity at a state on the slow manifold.

        Differentiating :math:`\partial_\alpha\ell(\alpha^*(\gamma,\rho),\gamma,\rho)=0` in time
        gives :math:`\dot\alpha^* = -(\ell_{\alpha\gamma}\dot\gamma+\ell_{\alpha\rho}\dot\rho)
        /\ell_{\alpha\alpha}`.
        """
        gradient = self.population.gradient(state)
        along = self.population.jacobian(state)[0]
        gamma, rho = -gradient.gamma, -gradient.rho
        alpha = -(along[1] * gamma + along[2] * rho) / along[0]
        return Drift(float(alpha), gamma, rho, float(along[0]))

    def velocity(self, gamma: float, rho: float, guess: float | None = None) -> Drift:
        """Return the drift at (alpha*(gamma, rho), gamma, rho)."""
        return self.drift(State(self.alpha(gamma, rho, guess), gamma, rho))

    def flow(
        self,
        horizon: float,
        gamma: float = 0.0,
        rho: float = 0.0,
        *,
        method: str = "LSODA",
        rtol: float = 1e-7,
        atol: float = 1e-10,
    ) -> ReducedTrajectory:
        """Integrate the two-dimensional flow of (gamma, rho) on the manifold.

        Parameters
        ----------
        horizon
            End of the integration in flow time, positive.
        gamma, rho
            Initial attention logits.
        method, rtol, atol
            Solver and tolerances, as in :func:`dynamics.core.integrate.integrate`.

        Returns
        -------
        ReducedTrajectory
            States (alpha*(gamma, rho), gamma, rho) at the steps of the solver.
        """
        horizon = finite("horizon", horizon)
        require(horizon > 0.0, "horizon", horizon, "greater than 0")
        check_method(method, rtol, atol)
        latest = [self.population.problem.initial_state.alpha]

        def lift(y: np.ndarray) -> State:
            latest[0] = self.alpha(y[0], y[1], guess=latest[0])
            return State(latest[0], float(y[0]), float(y[1]))

        def velocity(y: np.ndarray) -> np.ndarray:
            return -np.array(self.population.gradient(lift(y))[1:])

        path = integrate(
            velocity,
            lambda y: self.jacobian(lift(y)),
            np.array([gamma, rho]),
            horizon,
            method=method,
            rtol=rtol,
            atol=atol,
        )
        states = [lift(point) for point in path.points]
        return assemble(
            self.population,
            "slow manifold",
            np.array(path.times),
            np.array(states),
            path.status,
            path.message,
            resolution=10.0 * atol,
            settings={"method": method, "rtol": rtol, "atol": atol, "horizon": horizon},
            stats=path.stats,
            interpolant=self._dense(path, states),
        )

    def _dense(self, path: Path, states: list[State]) -> PathOnManifold | None:
        """Return the dense output; ``None`` for a path of a single point."""
        if len(states) < 2:
            return None
        alphas, drifts = zip(*((state.alpha, self.drift(state).alpha) for state in states))
        return PathOnManifold(path, CubicHermiteSpline(path.times, alphas, drifts))

    def jacobian(self, state: State) -> np.ndarray:
        """Return the (2, 2) Jacobian of the velocity (gamma, rho) along the manifold."""
        full = -self.population.jacobian(state)
        return full[1:, 1:] - np.outer(full[1:, 0], full[0, 1:]) / full[0, 0]


def largest_stable_learning_rate(population: Risk, start: State) -> float:
    """Return the largest learning rate that is stable at a state and on the slow manifold.

    alpha relaxes to its quasi-steady value at the given (gamma, rho) long before the attention
    moves, so that the curvature at that value limits the learning rate too.

    Parameters
    ----------
    population
        Population risk with the order parameters alpha, gamma and rho.
    start
        Initial state.
    """
    rates = [population.largest_stable_learning_rate(start)]
    try:
        settled = SlowManifold(population).alpha(start.gamma, start.rho, guess=start.alpha)
        rates.append(population.largest_stable_learning_rate(start._replace(alpha=settled)))
    except ArithmeticError:
        pass  # no quasi-steady value: only the initial state limits the rate
    return min(rates)
